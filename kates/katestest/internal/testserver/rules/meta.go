package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// metadataValid says what is wrong with the metadata of an object. apimachinery checks it, but for
// the owners: a server of Kubernetes 1.36 reports those in another way than apimachinery 0.37.
func metadataValid(k *kinds.Kind, o *unstructured.Unstructured) field.ErrorList {
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(unowned(o), k.Namespaced, k.Rules.Name, path)
	errs = append(errs, ownersValid(o.GetOwnerReferences(), path.Child("ownerReferences"))...)
	return append(errs, finalizersValid(k, o.GetFinalizers(), path.Child("finalizers"))...)
}

// metadataUpdated says what is wrong with the metadata after an update. A real server checks some
// of it several times, and reports it as often: for all kinds together, and by the rules of the
// kind.
func metadataUpdated(k *kinds.Kind, by string, is, was *unstructured.Unstructured) field.ErrorList {
	errs := append(metadataValid(k, is), metadataKept(is, was)...)
	errs = append(errs, metadataKept(is, was)...)
	if by == "" && k.Rules.MetadataAgain {
		errs = append(errs, metadataValid(k, is)...)
	}
	return errs
}

// metadataKept says what of the metadata may not change as it does.
func metadataKept(is, was *unstructured.Unstructured) field.ErrorList {
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessorUpdate(unowned(is), was, path)
	return append(errs, ownersValid(is.GetOwnerReferences(), path.Child("ownerReferences"))...)
}

func unowned(o *unstructured.Unstructured) *unstructured.Unstructured {
	c := maps.Clone(o.Object)
	meta, _ := c["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	delete(meta, "ownerReferences")
	c["metadata"] = meta
	return object(c)
}

func ownersValid(owners []metav1.OwnerReference, path *field.Path) (errs field.ErrorList) {
	controller := ""
	for _, r := range owners {
		version, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil || version.Version == "" {
			errs = append(errs, field.Invalid(path.Child("apiVersion"), r.APIVersion, "version must not be empty"))
		}
		for _, f := range [][2]string{{"kind", r.Kind}, {"name", r.Name}, {"uid", string(r.UID)}} {
			if f[1] == "" {
				errs = append(errs, field.Invalid(path.Child(f[0]), f[1], "must not be empty"))
			}
		}
		kind := version.WithKind(r.Kind)
		if _, banned := validation.BannedOwners[kind]; banned {
			errs = append(errs, field.Invalid(path, r, fmt.Sprintf("%s is disallowed from being an owner", kind)))
		}
	}
	for _, r := range owners {
		if r.Controller == nil || !*r.Controller {
			continue
		}
		name := r.Kind + "/" + r.Name
		if controller != "" {
			const says = "Only one reference can have Controller set to true. Found \"true\" in references for %v and %v"
			errs = append(errs, field.Invalid(path, owners, fmt.Sprintf(says, controller, name)))
			continue
		}
		controller = name
	}
	return errs
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
