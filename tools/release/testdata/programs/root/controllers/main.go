// Command controllers runs a controller on the fake client.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type parts struct {
	Site    *kates.ConfigMap `kates:",root"`
	Secrets []*kates.Secret  `kates:",owned"`
	Info    controller.Info
}

func main() {
	site := &kates.ConfigMap{}
	site.Namespace, site.Name, site.UID = "prod", "blog", "1"
	fake, err := katestest.NewFake(katestest.WithObjects(site))
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()

	ctx, cancel := context.WithCancel(context.Background())
	sites, err := controller.New(fake.Client, "sites", func(ctx context.Context, p *parts) (controller.Result, error) {
		if len(p.Secrets) > 0 {
			fmt.Println(p.Info.Key, "owns", p.Secrets[0].Name)
			cancel()
			return controller.Done, nil
		}
		secret := &kates.Secret{}
		secret.Namespace, secret.Name = p.Site.Namespace, "password"
		if err := kates.SetControllerReference(p.Site, secret); err != nil {
			return controller.Done, err
		}
		return controller.Done, fake.Client.Create(ctx, secret, nil)
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := sites.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: prod/blog owns password
}
