// Command kit runs a loop of whole snapshots against the server in memory, and writes.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type snapshot struct {
	Services   []*kates.Service
	ConfigMaps []*kates.ConfigMap
}

func main() {
	server, err := katestest.StartServer(katestest.WithManifests(
		"{apiVersion: v1, kind: Service, metadata: {namespace: prod, name: web}}"))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := kates.NewClientFromRESTConfig(server.Config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, cancel := context.WithCancel(context.Background())
	err = kates.Run(ctx, client, func(ctx context.Context, all *snapshot) error {
		if len(all.ConfigMaps) > 0 {
			fmt.Println(all.Services[0].Name, "is in", all.ConfigMaps[0].Name)
			cancel()
			return nil
		}
		made := &kates.ConfigMap{}
		made.Namespace, made.Name = "prod", "names"
		return client.Create(ctx, made, nil)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: web is in names
}
