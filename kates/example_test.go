package kates_test

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// A program gets everything that it needs as one struct. The next one has its own writes.
func ExampleWatch() {
	fake, err := katestest.NewFake(katestest.WithManifests(`
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: v1
kind: Service
metadata: {name: api}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	client := fake.Client // in a program: kates.NewClient(kates.ClientConfig{})

	type Snapshot struct {
		Services []*corev1.Service
		Tables   []*corev1.ConfigMap
		Deltas   []*kates.Delta
	}
	ctx := context.Background()
	snapshots, err := kates.Watch[Snapshot](ctx, client)
	if err != nil {
		panic(err)
	}
	for snap, err := range snapshots.All(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(len(snap.Services), "services,", len(snap.Tables), "tables")
		for _, d := range snap.Deltas {
			fmt.Println(" ", d.DeltaType, d.Kind, d.Name)
		}
		if len(snap.Tables) == 1 {
			break
		}
		table := &corev1.ConfigMap{Data: map[string]string{"first": snap.Services[0].Name}}
		table.Name = "table"
		if err := client.Create(ctx, table, nil); err != nil {
			panic(err)
		}
	}
	// Output:
	// 2 services, 0 tables
	//   add Service api
	//   add Service web
	// 2 services, 1 tables
	//   add ConfigMap table
}

func ExampleClient_Watch() {
	fake, err := katestest.NewFake(katestest.WithManifests(`
apiVersion: v1
kind: Pod
metadata: {name: web-1, labels: {app: web}}
---
apiVersion: v1
kind: Pod
metadata: {name: db-1, labels: {app: db}}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	ctx := context.Background()
	acc, err := fake.Client.Watch(ctx, kates.Query{Name: "Pods", Kind: "po", LabelSelector: "app=web"})
	if err != nil {
		panic(err)
	}
	var snap struct{ Pods []*corev1.Pod }
	<-acc.Changed()
	changed, err := acc.Update(ctx, &snap)
	fmt.Println(changed, err, len(snap.Pods), snap.Pods[0].Name)
	// Output: true <nil> 1 web-1
}

func ExampleClient_Upsert() {
	fake, err := katestest.NewFake()
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	ctx := context.Background()
	cm := &corev1.ConfigMap{Data: map[string]string{"a": "1"}}
	cm.Name = "settings"
	for _, label := range []string{"one", "two"} {
		cm.Labels = map[string]string{label: "yes"}
		var stored corev1.ConfigMap
		if err := fake.Client.Upsert(ctx, nil, cm, &stored); err != nil {
			panic(err)
		}
		fmt.Println(stored.Labels)
	}
	// Output:
	// map[one:yes]
	// map[one:yes two:yes]
}

// A change gets the newest object that the client knows. It may run again with a newer one.
func ExampleModify() {
	fake, err := katestest.NewFake(katestest.WithManifests(`
apiVersion: v1
kind: ConfigMap
metadata: {name: counter, namespace: default}
data: {count: "41"}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	counter := &corev1.ConfigMap{}
	counter.Name = "counter"
	got, err := kates.Modify(context.Background(), fake.Client, counter, func(cm *corev1.ConfigMap) error {
		n, err := strconv.Atoi(cm.Data["count"])
		cm.Data["count"] = strconv.Itoa(n + 1)
		return err
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(got.Data["count"])
	// Output: 42
}

func ExampleClient_DeleteAll() {
	fake, err := katestest.NewFake(katestest.WithManifests(`
apiVersion: v1
kind: Pod
metadata: {name: web-1, labels: {app: web}}
---
apiVersion: v1
kind: Pod
metadata: {name: db-1, labels: {app: db}}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	ctx := context.Background()
	if err := fake.Client.DeleteAll(ctx, kates.Query{Kind: "po", LabelSelector: "app=web"}); err != nil {
		panic(err)
	}
	var pods []*corev1.Pod
	if err := fake.Client.List(ctx, kates.Query{Kind: "po"}, &pods); err != nil {
		panic(err)
	}
	fmt.Println(len(pods), pods[0].Name)
	// Output: 1 db-1
}
