// Command usage reads the usage of a pod from the metrics API.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/metrics"
)

func main() {
	pod := &metrics.PodMetrics{
		TypeMeta:   kates.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics"},
		ObjectMeta: kates.ObjectMeta{Namespace: "prod", Name: "web"},
		Containers: []metrics.ContainerMetrics{{
			Name: "app", Usage: kates.ResourceList{kates.ResourceCPU: kates.MustParseQuantity("250m")},
		}},
	}
	fake, err := katestest.NewFake(katestest.WithObjects(pod), katestest.WithKinds(katestest.Kind{
		APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics", Plural: "pods",
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	var got metrics.PodMetrics
	if err := fake.Client.Get(context.Background(), pod, &got); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Name, got.Containers[0].Usage.Cpu())
	// Output: web 250m
}
