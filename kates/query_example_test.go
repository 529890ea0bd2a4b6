package kates_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// ready reports whether a node is ready.
func ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func ExampleQuery_functions() {
	query := kates.Query{
		Name: "Nodes",
		Signal: kates.SignalOf(func(old, current *corev1.Node) bool {
			return old == nil || current == nil || ready(old) != ready(current)
		}),
		Key: kates.KeyOf(func(o metav1.Object) []string { // the metadata suffices
			if pool := o.GetLabels()["pool"]; pool != "" {
				return []string{pool}
			}
			return nil
		}),
	}

	node := &corev1.Node{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	node.Labels = map[string]string{"pool": "blue"}
	untyped, _ := kates.NewUnstructuredFromObject(node)

	inProduction, _ := query.Key.Keys(node)
	inTests, _ := query.Key.Keys(untyped)
	fmt.Println(inProduction, inTests)
	// Output: [blue] [blue]
}
