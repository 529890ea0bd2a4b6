package owned

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/write"
	objects "github.com/kates-go/kates/internal/object"
)

// outcome is what one object of a set adds to the result.
type outcome struct {
	in  *[]corev1.ObjectReference // nil: it failed, was not tried, or there was nothing to do
	of  corev1.ObjectReference
	err error
}

func (end *outcome) is(in *[]corev1.ObjectReference, r objects.Resource, o objects.Object) {
	apiVersion, kind := r.Kind.ToAPIVersionAndKind()
	end.in, end.of = in, corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}
}

// addToResult adds outcomes in their order.
func (a *call) addToResult(ends []outcome) {
	for _, end := range ends {
		if end.in != nil {
			*end.in = append(*end.in, end.of)
		}
		a.fail(end.err)
	}
}

// applyAll applies the wanted objects, stage by stage. It returns how many it has not tried,
// because ctx has ended.
func (a *call) applyAll(ctx context.Context) (untried int) {
	ends, tried, from := make([]outcome, len(a.wanted)), 0, 0
	for _, to := range a.stages() {
		var open []int // what may have to be applied
		for ; from < to && ctx.Err() == nil; from++ {
			w := a.wanted[from]
			known, ok := a.knownUnchanged(ctx, w)
			if ok && !a.options.Asks && a.Streams.Await(ctx, w.Resource, w.Key, known.GetResourceVersion()) == nil {
				ends[from].is(&a.result.Unchanged, w.Resource, known)
				tried++
			} else {
				open = append(open, from)
			}
		}
		tried += write.SideBySide(ctx, len(open), func(i int) {
			end := &ends[open[i]]
			end.err = guard.Call(func() error { return a.apply(ctx, a.wanted[open[i]], end) })
		})
	}
	for i, end := range ends {
		if end.err != nil {
			a.unapplied[a.wanted[i].Key.Name] = true
		} else if end.of.UID != "" { // an object of a fake has none
			a.applied[end.of.UID] = true
		}
	}
	a.addToResult(ends)
	return len(ends) - tried
}

// foundations are the kinds without which the API server refuses other objects. See
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
var foundations = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:      true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "LimitRange"}:     true,
	{Kind: "ResourceQuota"}:  true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                      true,
}

// stages returns where each stage of the wanted objects ends. Objects of a stage are applied side
// by side. A stage begins when the one before it is done.
func (a *call) stages() (ends []int) {
	kind := func(i int) schema.GroupKind { return a.wanted[i].Resource.Kind.GroupKind() }
	for i := 1; i < len(a.wanted); i++ {
		last, next := kind(i-1), kind(i)
		if a.given.InOrder || last != next && (foundations[last] || foundations[next]) {
			ends = append(ends, i)
		}
	}
	return append(ends, len(a.wanted))
}

// want takes in one object of the set. An object that its owner may not own is reported, but does
// not make the wanted objects uncertain: its error is not returned.
func (a *call) want(ctx context.Context, given objects.Object) error {
	if _, err := jsonform.Dereference(given); err != nil {
		return err
	}
	kind := a.KindOf(given)
	if err := core.Kindless(given, kind); err != nil {
		return err
	}
	mapping, err := a.Kinds.GVK(ctx, kind)
	if err != nil {
		return err
	}
	w := &applied.Wanted{Given: given, Resource: a.Resource(ctx, mapping)}
	a.used = append(a.used, w.Resource)
	w.Key = objects.Key{Namespace: a.namespaceOf(w), Name: given.GetName()}
	o := core.Bare(w.Resource, w.Key)
	if err := o.CheckName(); err != nil {
		return err
	}
	if !a.given.Remote && w.Stored() == a.owner.Stored() {
		return fmt.Errorf("%s is the owner itself", a.owner)
	}
	if a.keys[w.Stored()] {
		return fmt.Errorf("%s is there twice", o)
	}
	a.keys[w.Stored()] = true
	if err := a.set.Refer(w); err != nil {
		a.unapplied[w.Key.Name] = true
		a.fail(o.Failed(write.OpApply, err))
		return nil
	}
	a.wanted = append(a.wanted, w)
	return a.set.Summarize(w)
}

// namespaceOf is the namespace of an object: its own, that of the owner, or the client's default.
func (a *call) namespaceOf(w *applied.Wanted) string {
	if !w.Resource.Namespaced {
		return ""
	}
	return cmp.Or(w.Given.GetNamespace(), a.owner.GetNamespace(), a.Namespace)
}
