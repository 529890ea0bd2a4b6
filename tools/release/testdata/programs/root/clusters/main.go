// Command clusters makes a snapshot of a fleet of two clusters, and records an event in one.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
	"github.com/kates-go/kates/kates/katestest"
)

type snapshot struct{ Services map[string][]*kates.Service } // by cluster

func main() {
	f, err := fleet.New(fleet.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"east", "west"} {
		web := &kates.Service{}
		web.Namespace, web.Name = "prod", "web-"+name
		fake, err := katestest.NewFake(katestest.WithObjects(web))
		if err != nil {
			log.Fatal(err)
		}
		defer fake.Close()
		recorder, err := events.NewRecorder(context.Background(), fake.Client, "example.com/user")
		if err != nil {
			log.Fatal(err)
		}
		defer recorder.Close()
		recorder.Eventf(web, nil, events.Normal, "Found", "Look", "in %s", name)
		if err := f.Set(fleet.Member{Name: name, Client: fake.Client}); err != nil {
			log.Fatal(err)
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	err = fleet.Run(ctx, f, func(_ context.Context, all *snapshot) error {
		if len(all.Services) == 2 {
			fmt.Println(all.Services["east"][0].Name, all.Services["west"][0].Name)
			cancel()
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: web-east web-west
}
