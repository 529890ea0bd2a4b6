package fleet_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// SiteParts is a site, which a config map describes here, and the service that it owns in the same
// cluster.
type SiteParts struct {
	Site     *corev1.ConfigMap `kates:",root"`
	Services []*corev1.Service `kates:",owned"`
}

// A controller that makes a service for each site, in each cluster.
func ExampleNewController() {
	fake, err := katestest.NewFake(katestest.WithClientOptions(kates.WithLogger(slog.New(slog.DiscardHandler))),
		katestest.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "blog", UID: "1"}}))
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	f, err := fleet.New(fleet.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if err := f.Set(fleet.Member{Name: "east", Client: fake.Client}); err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	sites, err := fleet.NewController(f, "sites", func(ctx context.Context, cluster *fleet.Cluster, p *SiteParts) (controller.Result, error) {
		if len(p.Services) > 0 {
			fmt.Println(cluster.Name(), "has", p.Services[0].Name)
			cancel() // the example is over
			return controller.Done, nil
		}
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.Site.Namespace, Name: p.Site.Name}}
		if err := kates.SetControllerReference(p.Site, s); err != nil {
			return controller.Done, err
		}
		return controller.Done, cluster.Client().Create(ctx, s, nil)
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := sites.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: east has blog
}
