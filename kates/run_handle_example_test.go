package kates_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kates-go/kates/kates"
)

// An operator's configuration says which namespaces count. When it changes, both queries change in
// one snapshot: the function never sees Ingresses without their Services.
func ExampleHandle() {
	type edge struct {
		Ingresses []*networkingv1.Ingress
		Services  []*corev1.Service
	}
	in := func(namespaces ...string) []kates.Query {
		return []kates.Query{
			{Name: "Ingresses", Namespaces: namespaces},
			{Name: "Services", Namespaces: namespaces},
		}
	}
	var client *kates.Client // of kates.NewClient
	handle := new(kates.Handle)
	run := func(ctx context.Context) error {
		first := in("shop")
		return kates.Run(ctx, client, func(_ context.Context, snap *edge) error {
			fmt.Println(len(snap.Ingresses), len(snap.Services))
			return nil
		}, handle, first[0], first[1])
	}
	reconfigured := func(ctx context.Context, namespaces []string) error {
		return handle.Replace(ctx, in(namespaces...)...)
	}
	_, _ = run, reconfigured
}
