// Command withkates is the least program that keeps a picture of pods with kates.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/kates-go/kates/kates"
)

type snapshot struct{ Pods []*kates.Pod }

func main() {
	ctx := context.Background()
	client, err := kates.NewClient(kates.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	snapshots, err := kates.Watch[snapshot](ctx, client)
	if err != nil {
		log.Fatal(err)
	}
	for snap, err := range snapshots.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(snap.Pods))
	}
}
