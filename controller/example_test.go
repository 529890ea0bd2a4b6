package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// SiteParts is a site, which a config map describes here, and the deployment that serves it.
type SiteParts struct {
	Site        *corev1.ConfigMap    `kates:",root"`
	Deployments []*appsv1.Deployment `kates:",owned"`
	Info        controller.Info
}

// reconcileSite makes the deployment of a site. It creates it once: the next reconcile sees it,
// however late the watch is.
func reconcileSite(ctx context.Context, client *kates.Client, p *SiteParts) (controller.Result, error) {
	if p.Info.Departure != "" {
		fmt.Println(p.Info.Key, p.Info.Departure)
		return controller.Done, nil
	}
	if p.Site.Data["image"] == "" {
		// no more tries until it has one
		return controller.Done, kates.Permanent(errors.New("the site has no image"))
	}
	if len(p.Deployments) > 0 {
		fmt.Println(p.Info.Key, "is served by", p.Deployments[0].Name)
		return controller.Done, nil
	}
	labels := map[string]string{"site": p.Site.Name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Site.Namespace, Name: p.Site.Name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "site", Image: p.Site.Data["image"]}}},
			},
		},
	}
	if err := kates.SetControllerReference(p.Site, d); err != nil {
		return controller.Done, err
	}
	return controller.Done, client.Create(ctx, d, nil)
}

// A controller that makes a deployment for each site.
func ExampleNew() {
	fake, err := katestest.NewFake(katestest.WithClientOptions(kates.WithLogger(slog.New(slog.DiscardHandler))),
		katestest.WithObjects(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "blog", UID: "1", Labels: map[string]string{"site": ""}},
			Data:       map[string]string{"image": "blog:1"},
		}))
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client := fake.Client

	ctx, cancel := context.WithCancel(context.Background())
	sites, err := controller.New(client, "sites", func(ctx context.Context, p *SiteParts) (controller.Result, error) {
		if len(p.Deployments) > 0 {
			defer cancel() // the example is over
		}
		return reconcileSite(ctx, client, p)
	}, kates.Query{Name: "Site", LabelSelector: "site"})
	if err != nil {
		log.Fatal(err)
	}
	if err := sites.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: prod/blog is served by blog
}
