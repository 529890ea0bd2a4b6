// Command clusters gives the clusters of a fleet to a manager of multicluster-runtime.
package main

import (
	"context"
	"fmt"
	"log"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mc "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/multicluster"
)

// manager is told which clusters there are.
type manager chan mc.ClusterName

func (m manager) Engage(_ context.Context, name mc.ClusterName, _ cluster.Cluster) error {
	m <- name
	return nil
}

func (m manager) Start(ctx context.Context) error { return ctx.Err() }

func main() {
	f, err := fleet.New(fleet.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if err := f.Add("east", &rest.Config{Host: "http://127.0.0.1:1"}); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	clusters, done := make(manager), make(chan error)
	go func() { done <- multicluster.NewProvider(f, multicluster.Options{}).Start(ctx, clusters) }()
	fmt.Println(<-clusters)
	cancel()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output: east
}
