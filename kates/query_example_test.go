package kates_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

// ready takes a node of any type: on a real client a *corev1.Node, on a fake an *Unstructured.
func ready(o kates.Object) bool {
	var node corev1.Node
	if err := kates.ConvertObject(nil, o, &node); err != nil {
		return false
	}
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
		Signal: func(old, current kates.Object) bool {
			return old == nil || current == nil || ready(old) != ready(current)
		},
		Key: func(o kates.Object) []string { // metadata is the same in all types
			if pool := o.GetLabels()["pool"]; pool != "" {
				return []string{pool}
			}
			return nil
		},
	}

	before := &corev1.Node{}
	before.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	before.Labels = map[string]string{"pool": "blue"}
	after := before.DeepCopy()
	after.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	untypedBefore, _ := kates.NewUnstructuredFromObject(before)
	untypedAfter, _ := kates.NewUnstructuredFromObject(after)

	fmt.Println("a real client:", query.Signal(before, after), query.Signal(after, after), query.Key(after))
	fmt.Println("a fake:       ", query.Signal(untypedBefore, untypedAfter), query.Signal(untypedAfter, untypedAfter), query.Key(untypedAfter))
	// Output:
	// a real client: true false [blue]
	// a fake:        true false [blue]
}
