package troubled

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kates-go/kates/kates"
)

// namespaces is how many namespaces the objects are in.
const namespaces = 40

func namespaceOf(i int) string { return fmt.Sprintf("team-%02d", i%namespaces) }

func nameOf(i int) string { return fmt.Sprintf("app-%05d", i) }

// parts is how many objects of each kind there are, of so many in all.
func parts(all int) map[string]int {
	return map[string]int{
		"pods": all * 30 / 100, "configmaps": all * 25 / 100, "services": all * 15 / 100,
		"secrets": all * 10 / 100, "deployments.apps": all * 10 / 100, "endpointslices.discovery.k8s.io": all * 10 / 100,
	}
}

// fill makes the objects.
func fill(ctx context.Context, c *kates.Client, objects int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	create := func(o kates.Object) { g.Go(func() error { return c.Create(ctx, o, nil) }) }
	for i := range namespaces {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}, nil); err != nil {
			return err
		}
	}
	for kind, n := range parts(objects) {
		for i := range n {
			create(made(kind, i))
		}
	}
	for i := range 5 {
		create(widget(i))
	}
	return g.Wait()
}

// widget is an object of the custom kind. One of them does not decode: its size is a text.
func widget(i int) *kates.Unstructured {
	var size any = int64(i)
	if i == 3 {
		size = "large"
	}
	return &kates.Unstructured{Object: map[string]any{
		"apiVersion": "troubled.example/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespaceOf(i), "name": fmt.Sprintf("widget-%d", i)},
		"spec":     map[string]any{"size": size},
	}}
}

func made(kind string, i int) kates.Object {
	labels := map[string]string{"app": nameOf(i)}
	meta := metav1.ObjectMeta{Namespace: namespaceOf(i), Name: nameOf(i), Labels: labels}
	pod := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/app:v1", Env: []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "PEER", Value: nameOf(i + 1)}},
	}}}
	switch kind {
	case "pods":
		return &corev1.Pod{ObjectMeta: meta, Spec: pod}
	case "services":
		return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	case "configmaps":
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"settings": fmt.Sprintf("number: %d\nmode: fast\n", i)}}
	case "secrets":
		return &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"password": fmt.Sprintf("hunter-%d", i)}}
	case "deployments.apps":
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		}}
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i/62500%250, i/250%250, i%250)}}},
	}
}
