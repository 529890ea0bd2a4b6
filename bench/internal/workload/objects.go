// Package workload makes the objects of the benchmarks' API server and their changes: pods as in
// production clusters (with managed fields), a tenth as many services and config maps, and
// changes of the pods.
//
// Start with [New], [Load.Fill] and [Load.Change]. An object depends only on its number, so every
// run has the same objects.
package workload

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	namespaces = 20
	// perApp is how many pods share a service and a config map.
	perApp = 10
)

// Mark is the annotation of a pod that changes write.
const Mark = "bench.kates.io/mark"

// Namespace returns the namespace of the i-th pod, service or config map.
func Namespace(i int) string { return fmt.Sprintf("team-%02d", i%namespaces) }

// PodName returns the name of the i-th pod.
func PodName(i int) string { return fmt.Sprintf("app-%04d-7c9d8b6f54-%06d", i/perApp, i) }

// Key returns the namespace/name of the i-th pod.
func Key(i int) string { return Namespace(i) + "/" + PodName(i) }

// Service returns the i-th service.
func Service(i int) *corev1.Service {
	name := fmt.Sprintf("app-%04d", i)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace(i),
			Labels:      map[string]string{"app": name, "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": name + "-1.14.2"},
			Annotations: map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": Namespace(i)},
		},
		Spec: corev1.ServiceSpec{
			// The Service has no address of its own: the default range has only 254.
			ClusterIP: corev1.ClusterIPNone,
			Selector:  map[string]string{"app": name},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromString("http")},
				{Name: "metrics", Port: 9090, TargetPort: intstr.FromString("metrics")},
			},
		},
	}
}

// ConfigMap returns the i-th config map.
func ConfigMap(i int) *corev1.ConfigMap {
	name := fmt.Sprintf("app-%04d-config", i)
	var b strings.Builder
	for k := range 24 {
		fmt.Fprintf(&b, "feature_%02d: {enabled: true, share: 0.%d, owner: team-%d}\n", k, (i+k)%10, i%namespaces)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace(i),
			Labels: map[string]string{"app": fmt.Sprintf("app-%04d", i), "app.kubernetes.io/managed-by": "Helm"},
		},
		Data: map[string]string{"config.yaml": b.String(), "level": "info"},
	}
}
