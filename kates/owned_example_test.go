package kates_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// Objects that an owner no longer wants are pruned. Objects of others stay.
func ExampleClient_ApplyOwned() {
	fake, err := katestest.NewFake(katestest.WithManifests(`
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	ctx, client := context.Background(), fake.Client
	owner, err := kates.GetCached[corev1.Service](ctx, client, "default", "web")
	if err != nil {
		panic(err)
	}
	blue, green := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	blue.Name, green.Name = "blue", "green"
	for _, wanted := range [][]kates.Object{{blue, green}, {green}} {
		result, err := client.ApplyOwned(ctx, kates.OwnedSet{Owner: owner, SetName: "example", Objects: wanted})
		if err != nil {
			panic(err)
		}
		fmt.Println(len(result.Applied), "applied,", len(result.Unchanged), "unchanged,", len(result.Pruned), "pruned")
	}
	// Output:
	// 2 applied, 0 unchanged, 0 pruned
	// 0 applied, 1 unchanged, 1 pruned
}

// The finalizer is there before the first effect, and stays until the cleanup has succeeded.
func ExampleUnderFinalizer() {
	fake, err := katestest.NewFake(katestest.WithManifests(`
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
---
apiVersion: v1
kind: Service
metadata: {name: old, namespace: default, deletionTimestamp: "2020-01-01T00:00:00Z", finalizers: [example.com/dns]}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	ctx, client := context.Background(), fake.Client
	put := func(_ context.Context, s *corev1.Service) error {
		fmt.Println("put", s.Name, s.Finalizers)
		return nil
	}
	remove := func(_ context.Context, s *corev1.Service) error {
		fmt.Println("remove", s.Name)
		return errors.New("try again")
	}
	for _, name := range []string{"web", "old"} {
		s := &corev1.Service{}
		s.Namespace, s.Name = "default", name
		if err := kates.UnderFinalizer(ctx, client, s, "example.com/dns", put, remove); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// put web [example.com/dns]
	// remove old
	// try again
}
