// Package rules makes the next state of an object from a request, as an API server does it: what
// may be set, what is kept, what is filled in, and when an object is gone. It stores nothing, and
// knows nothing of HTTP. Begin at [Create], [Update] and [Delete].
package rules

import (
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// Content is that of an object.
type Content = map[string]any

func object(c Content) *unstructured.Unstructured { return &unstructured.Unstructured{Object: c} }

// generated is how many characters the server adds to metadata.generateName, and mostName is how
// long the name may be before that.
const (
	generated = 5
	mostName  = 63 - generated
)

// GenerateName gives an object a name if it asks for one.
func GenerateName(c Content) {
	o := object(c)
	if prefix := o.GetGenerateName(); o.GetName() == "" && prefix != "" {
		o.SetName(prefix[:min(len(prefix), mostName)] + rand.String(generated))
	}
}

// Create makes a new object. It changes the content.
func Create(k *kinds.Kind, c Content, uid types.UID, now time.Time) error {
	o := object(c)
	o.SetUID(uid)
	o.SetCreationTimestamp(metav1.NewTime(now.Truncate(time.Second)))
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetResourceVersion("")
	if k.Rules.Generation {
		o.SetGeneration(1)
	}
	start(k, c)
	if err := Valid(k, c); err != nil {
		return err
	}
	return nil
}

// start sets the status of a new object, and what else is filled in.
func start(k *kinds.Kind, c Content) {
	if k.Has("status") && !k.Rules.KeepsStatus {
		if delete(c, "status"); k.ZeroStatus != nil {
			c["status"] = runtime.DeepCopyJSON(k.ZeroStatus)
		}
	}
	if k.Rules.StartStatus != nil {
		c["status"] = runtime.DeepCopyJSON(k.Rules.StartStatus)
	}
	switch k.GroupKind().String() {
	case definitionKind:
		define(c)
	case "Pod":
		kinds.Admit(c)
		_ = unstructured.SetNestedField(c, qualityOf(c), "status", "qosClass") // the status is a map
	case "Service":
		kinds.Allocate(c, nil)
	case "Namespace":
		kinds.Label(c)
		own, _, _ := unstructured.NestedStringSlice(c, "spec", "finalizers")
		if !slices.Contains(own, "kubernetes") {
			own = append(own, "kubernetes")
		}
		_ = unstructured.SetNestedStringSlice(c, own, "spec", "finalizers") // the spec is a map
	}
}

// Valid says what is wrong with an object.
func Valid(k *kinds.Kind, c Content) error {
	metadata := metadataValid(k, object(c))
	errs := slices.Concat(metadata, dataValid(k, c), definitionValid(k, nil, c))
	errs = append(errs, selects(k, c)...)
	if k.Custom != nil {
		errs = append(errs, k.Custom.Validate(c, metadata)...)
	}
	return Invalid(k, object(c).GetName(), errs)
}

// Invalid is the error of an object in which something is wrong; nil if nothing is.
func Invalid(k *kinds.Kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.GroupVersionKind.GroupKind(), name, errs)
}

// Update makes the next state of an object from what was sent. It changes next. By is the
// subresource, "" for the object itself.
func Update(k *kinds.Kind, by string, old, next Content) error {
	was, is := object(old), object(next)
	switch by {
	case "":
		keep(k, was, is)
	case "status":
		keepAllButStatus(k, was, is)
		keepQuality(k, old, next)
	case "finalize":
		take(next, old, "status")
	}
	if is.GetUID() == "" {
		is.SetUID(was.GetUID())
	}
	is.SetCreationTimestamp(was.GetCreationTimestamp())
	is.SetGeneration(was.GetGeneration())
	if t := was.GetDeletionTimestamp(); t != nil {
		is.SetDeletionTimestamp(t)
		if is.GetDeletionGracePeriodSeconds() == nil {
			is.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
		}
	}
	if by == "" {
		switch k.GroupKind().String() {
		case "Pod":
			kinds.Admit(next)
		case "Service":
			kinds.Allocate(next, old)
		case definitionKind:
			addStored(next)
		}
	}
	metadata := metadataUpdated(k, is, was)
	errs := slices.Concat(metadata, definitionValid(k, old, next), immutable(k, old, next), dataValid(k, next), phaseValid(k, by, is))
	if by == "" {
		errs = slices.Concat(errs, fixed(k, old, next), selects(k, next))
	}
	if k.Custom != nil {
		errs = append(errs, k.Custom.Validate(next, metadata)...)
	}
	if err := Invalid(k, is.GetName(), errs); err != nil {
		return err
	}
	if k.Rules.Generation && by != "status" && was.GetGeneration() > 0 && !sameSpec(k, old, next) {
		is.SetGeneration(was.GetGeneration() + 1)
	}
	return nil
}

// keep keeps what an update of the object itself cannot change.
func keep(k *kinds.Kind, was, is *unstructured.Unstructured) {
	if k.Has("status") {
		take(is.Object, was.Object, "status")
	}
	if k.IsNamespace() {
		take(is.Object, was.Object, "spec")
	}
}

// keepAllButStatus keeps what an update of the status cannot change.
func keepAllButStatus(k *kinds.Kind, was, is *unstructured.Unstructured) {
	status, there := is.Object["status"]
	meta := is.Object["metadata"]
	managed := is.GetManagedFields()
	for name := range is.Object {
		delete(is.Object, name)
	}
	for name, value := range runtime.DeepCopyJSON(was.Object) {
		is.Object[name] = value
	}
	delete(is.Object, "status")
	if there {
		is.Object["status"] = status
	}
	if k.Custom == nil {
		is.Object["metadata"] = meta
		if k.Rules.StatusKeepsOwners {
			is.SetOwnerReferences(was.GetOwnerReferences())
		}
		if k.Rules.StatusKeepsLabels {
			is.SetLabels(was.GetLabels())
		}
		return
	}
	is.SetManagedFields(managed)
}

// take takes a member from another object.
func take(into, from Content, name string) {
	delete(into, name)
	if value, there := from[name]; there {
		into[name] = runtime.DeepCopyJSONValue(value)
	}
}

// sameSpec reports whether two states differ in nothing that the generation counts.
func sameSpec(k *kinds.Kind, a, b Content) bool {
	for _, c := range []Content{a, b} {
		for name := range c {
			if name == "metadata" || name == "status" && k.Has("status") {
				continue
			}
			if !reflect.DeepEqual(a[name], b[name]) {
				return false
			}
		}
	}
	was, is := object(a), object(b)
	for _, name := range k.Rules.Counted {
		before, _, _ := unstructured.NestedFieldNoCopy(a, "metadata", name)
		after, _, _ := unstructured.NestedFieldNoCopy(b, "metadata", name)
		if !reflect.DeepEqual(before, after) {
			return false
		}
	}
	return (was.GetDeletionTimestamp() == nil) == (is.GetDeletionTimestamp() == nil)
}

// phaseValid checks the phase that a namespace is given: it says what the server has done.
func phaseValid(k *kinds.Kind, by string, is *unstructured.Unstructured) field.ErrorList {
	if !k.IsNamespace() || by != "status" {
		return nil
	}
	want := "Active"
	if is.GetDeletionTimestamp() != nil {
		want = "Terminating"
	}
	phase, _, _ := unstructured.NestedString(is.Object, "status", "phase")
	if phase == want {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("status", "Phase"), phase, "may only be "+want+" now")}
}

// immutable are the fields that may not change any more.
func immutable(k *kinds.Kind, old, next Content) (errs field.ErrorList) {
	if fixed, _, _ := unstructured.NestedBool(old, "immutable"); !fixed || k.Rules.Immutable == nil {
		return nil
	}
	if still, _, _ := unstructured.NestedBool(next, "immutable"); !still {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	for _, name := range k.Rules.Immutable {
		if !reflect.DeepEqual(old[name], next[name]) {
			errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
		}
	}
	return errs
}

// Ended reports whether a change has ended a terminating object: nothing keeps it any more.
func Ended(k *kinds.Kind, c Content) bool {
	o := object(c)
	if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0 {
		return false
	}
	if k.IsNamespace() {
		own, _, _ := unstructured.NestedSlice(c, "spec", "finalizers")
		return len(own) == 0
	}
	grace := o.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
