package rules

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// fixed checks that what never changes in objects of a built-in kind has not changed.
func fixed(k *kinds.Kind, old, next Content) (errs field.ErrorList) {
	for _, path := range k.Rules.Fixed {
		steps := strings.Split(path, ".")
		was, _, _ := unstructured.NestedFieldNoCopy(old, steps...)
		is, _, _ := unstructured.NestedFieldNoCopy(next, steps...)
		if !reflect.DeepEqual(was, is) {
			errs = append(errs, field.Invalid(field.NewPath(path), is, "field is immutable"))
		}
	}
	if k.GroupKind().String() == "Pod" {
		errs = append(errs, fixedPod(old, next)...)
	}
	return errs
}

// fixedPod checks that a pod's spec has changed in nothing but what may change: images, the
// deadline, and tolerations that come in addition. See
// https://kubernetes.io/docs/concepts/workloads/pods/#pod-update-and-replacement.
func fixedPod(old, next Content) (errs field.ErrorList) {
	was, _ := runtime.DeepCopyJSONValue(old["spec"]).(map[string]any)
	is, _ := runtime.DeepCopyJSONValue(next["spec"]).(map[string]any)
	if had, there := was["activeDeadlineSeconds"].(int64); there {
		if has, still := is["activeDeadlineSeconds"].(int64); !still || has > had {
			errs = append(errs, field.Invalid(field.NewPath("spec", "activeDeadlineSeconds"), has, "must be less than or equal to previous value"))
		}
	}
	for _, list := range []string{"initContainers", "containers"} {
		if a, b := entries(was, list), entries(is, list); len(a) != len(b) {
			return field.ErrorList{field.Forbidden(field.NewPath("spec", list), "pod updates may not add or remove containers")}
		}
	}
	for _, spec := range []map[string]any{was, is} {
		delete(spec, "activeDeadlineSeconds")
		delete(spec, "schedulingGates")
		for _, list := range []string{"initContainers", "containers"} {
			for _, c := range entries(spec, list) {
				if c, ok := c.(map[string]any); ok {
					delete(c, "image")
				}
			}
		}
	}
	had, has := entries(was, "tolerations"), entries(is, "tolerations")
	if len(has) >= len(had) && reflect.DeepEqual(has[:len(had)], had) {
		delete(was, "tolerations")
		delete(is, "tolerations")
	}
	if reflect.DeepEqual(was, is) {
		return errs
	}
	return append(errs, field.Forbidden(field.NewPath("spec"),
		"pod updates may not change fields other than images, activeDeadlineSeconds, and tolerations that are added"))
}

// entries are those of a list.
func entries(c map[string]any, list string) []any {
	all, _ := c[list].([]any)
	return all
}

// selects checks that the selector of a workload selects its own pods.
func selects(k *kinds.Kind, c Content) field.ErrorList {
	if k.Group != "apps" || k.Kind == "ControllerRevision" {
		return nil
	}
	raw, _, _ := unstructured.NestedMap(c, "spec", "selector")
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), raw, err.Error())}
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), raw, err.Error())}
	}
	if selector.Empty() {
		return nil
	}
	own, _, _ := unstructured.NestedStringMap(c, "spec", "template", "metadata", "labels")
	if selector.Matches(labels.Set(own)) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), own,
		fmt.Sprintf("`selector` does not match template `labels`: %s", selector))}
}
