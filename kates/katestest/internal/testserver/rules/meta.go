package rules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// metadataValid says what is wrong with the metadata of an object.
func metadataValid(k *kinds.Kind, o *unstructured.Unstructured) field.ErrorList {
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(o, k.Namespaced, k.Rules.Name, path)
	return append(errs, finalizersValid(k, o.GetFinalizers(), path.Child("finalizers"))...)
}

// metadataUpdated says what is wrong with the metadata after an update. Of a custom kind a real
// server checks some of it several times, and reports it as often.
func metadataUpdated(k *kinds.Kind, is, was *unstructured.Unstructured) field.ErrorList {
	kept := validation.ValidateObjectMetaAccessorUpdate(is, was, field.NewPath("metadata"))
	errs := append(metadataValid(k, is), kept...)
	if k.Custom != nil {
		return append(errs, kept...)
	}
	said := map[string]bool{}
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		again := said[err.Error()]
		said[err.Error()] = true
		return again
	})
}

// known are the finalizers without a domain that a server takes.
var known = []string{
	"kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
}

// finalizersValid checks what a server asks of the finalizers of built-in kinds alone: those that
// are not Kubernetes' own have a domain.
func finalizersValid(k *kinds.Kind, finalizers []string, path *field.Path) (errs field.ErrorList) {
	if !k.Strict() {
		return nil
	}
	for i, f := range finalizers {
		if !strings.Contains(f, "/") && !slices.Contains(known, f) {
			errs = append(errs, field.Invalid(path.Index(i), f, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// Warnings are what a server says of an object that it takes. Old is nil for a new one.
func Warnings(k *kinds.Kind, old, c Content) (all []string) {
	if k.Strict() || k.GroupKind().String() == definitionKind {
		return nil
	}
	had := object(old).GetFinalizers()
	for _, f := range object(c).GetFinalizers() {
		if !strings.Contains(f, "/") && !slices.Contains(known, f) && !slices.Contains(had, f) {
			all = append(all, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", f))
		}
	}
	return all
}

// OneReferenceEach leaves out the references to an owner that is named already. If there are
// any, it returns a warning, which says when they were found.
func OneReferenceEach(c Content, found string) (warning string) {
	o := object(c)
	seen, twice := map[types.UID]bool{}, []string{}
	owners := slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		again := seen[r.UID]
		if again && !slices.Contains(twice, string(r.UID)) {
			twice = append(twice, string(r.UID))
		}
		seen[r.UID] = true
		return again
	})
	if len(twice) == 0 {
		return ""
	}
	o.SetOwnerReferences(owners)
	return ".metadata.ownerReferences contains duplicate entries" + found + "; API server dedups owner references in 1.20+, " +
		"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: " + strings.Join(twice, ", ")
}
