package rules

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// qualityOf is the quality of service of a pod:
// https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
func qualityOf(pod Content) string {
	spec, _ := pod["spec"].(map[string]any)
	some, all := false, true
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range entries(spec, list) {
			c, _ := c.(map[string]any)
			limits, _, _ := unstructured.NestedMap(c, "resources", "limits")
			requests, _, _ := unstructured.NestedMap(c, "resources", "requests")
			for _, name := range []string{"cpu", "memory"} {
				some = some || limits[name] != nil || requests[name] != nil
				all = all && limits[name] != nil && reflect.DeepEqual(limits[name], requests[name])
			}
		}
	}
	switch {
	case !some:
		return "BestEffort"
	case all:
		return "Guaranteed"
	}
	return "Burstable"
}

// keepQuality keeps the quality of service of a pod, which never changes.
func keepQuality(k *kinds.Kind, old, next Content) {
	if k.GroupKind().String() != "Pod" {
		return
	}
	if was, there, _ := unstructured.NestedString(old, "status", "qosClass"); there {
		_ = unstructured.SetNestedField(next, was, "status", "qosClass") // the status is a map
	}
}
