package katestest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// hostnames is a program under test: it renders what is in the cluster.
func hostnames(ctx context.Context, client *kates.Client) ([]string, error) {
	type snapshot struct {
		Services []*corev1.Service
		Hosts    []map[string]any `kates:"hosts.getambassador.io"`
	}
	snapshots, err := kates.Watch[snapshot](ctx, client)
	if err != nil {
		return nil, err
	}
	defer snapshots.Close()
	for snap, err := range snapshots.All(ctx) {
		if err != nil {
			return nil, err
		}
		var lines []string
		for i, host := range snap.Hosts {
			lines = append(lines, fmt.Sprintf("%v -> %s", host["spec"].(map[string]any)["hostname"], snap.Services[i].Name))
		}
		return lines, nil
	}
	return nil, ctx.Err()
}

func ExampleNewFake() {
	fake, err := katestest.NewFake(
		katestest.WithKinds(katestest.Kind{APIVersion: "getambassador.io/v3alpha1", Kind: "Host"}),
		katestest.WithObjects(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web"}}),
		katestest.WithManifests(`
apiVersion: getambassador.io/v3alpha1
kind: Host
metadata: {namespace: prod, name: web}
spec: {hostname: www.example.com}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()

	lines, err := hostnames(context.Background(), fake.Client)
	fmt.Println(lines, err)
	// Output: [www.example.com -> web] <nil>
}
