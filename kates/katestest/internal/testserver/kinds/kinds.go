// Package kinds says how an API server serves each kind: its names, its versions, and the rules by
// which it creates, changes and deletes objects of it. Built-in kinds come from client-go's scheme
// and a table ([BuiltIn]), custom ones from their definitions ([Define]). A [Set] has all of them.
package kinds

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Kind is one version of a kind, as it is served.
type Kind struct {
	schema.GroupVersionKind
	Resource   string // the plural
	Singular   string
	ShortNames []string
	Categories []string
	Namespaced bool
	// Storage is where its objects are stored. All versions of a kind have the same.
	Storage string
	// Subresources are the names of those that it has.
	Subresources []string
	Rules        Rules
	// Custom is what a definition says of a custom kind, nil for a built-in one.
	Custom *Custom
	// ZeroStatus is the status of a built-in kind with nothing in it, nil if it has none.
	ZeroStatus map[string]any
}

// GVR is the resource with its group and version.
func (k *Kind) GVR() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

// GR is the resource with its group, as errors name it.
func (k *Kind) GR() schema.GroupResource { return k.GVR().GroupResource() }

// IsNamespace reports whether it is the kind of namespaces.
func (k *Kind) IsNamespace() bool { return k.Group == "" && k.Kind == "Namespace" }

// Strict reports whether the server checks objects of the kind by rules of its own, in addition to
// those for all kinds: it does so for built-in kinds, but not for definitions of custom ones.
func (k *Kind) Strict() bool { return k.Custom == nil && k.Group != "apiextensions.k8s.io" }

// Has reports whether the kind has a subresource.
func (k *Kind) Has(subresource string) bool { return slices.Contains(k.Subresources, subresource) }

// Rules are what differs from kind to kind in how objects are created, changed and deleted.
type Rules struct {
	// Generation: objects have a generation, which rises with the spec.
	Generation bool
	// KeepsStatus: an object may be created with its status.
	KeepsStatus bool
	// StartStatus is the status of a new object.
	StartStatus map[string]any
	// StatusKeepsLabels: an update of the status does not change the labels.
	StatusKeepsLabels bool
	// StatusKeepsOwners: an update of the status does not change the owners.
	StatusKeepsOwners bool
	// Counted are the fields of the metadata whose changes raise the generation.
	Counted []string
	// UpsertByPut: a PUT of an object that does not exist creates it.
	UpsertByPut bool
	// Versioned: a PUT has to say from which version it starts.
	Versioned bool
	// AnswersObject: a DELETE is answered by the object, not by a Status.
	AnswersObject bool
	// Grace: the object may go away later than it is deleted (pods).
	Grace bool
	// Name says what is wrong with a name.
	Name func(name string, prefix bool) []string
	// Fields are the fields that lists and watches can be selected by, as paths in the content,
	// beside metadata.name and metadata.namespace.
	Fields []string
	// Fixed are the paths of fields that never change.
	Fixed []string
	// Immutable: its data never changes once the field immutable is true.
	Immutable []string
}

// Set is the kinds that a server serves. It does not change.
type Set struct {
	byResource map[schema.GroupVersionResource]*Kind
	all        []*Kind
}

// NewSet makes a set. Of two kinds of one group, version and resource the last counts.
func NewSet(all ...*Kind) *Set {
	s := &Set{byResource: map[schema.GroupVersionResource]*Kind{}}
	for _, k := range all {
		s.byResource[k.GVR()] = k
	}
	for _, k := range s.byResource {
		s.all = append(s.all, k)
	}
	slices.SortFunc(s.all, func(a, b *Kind) int {
		return cmp.Or(
			strings.Compare(a.Group, b.Group),
			-version.CompareKubeAwareVersionStrings(a.Version, b.Version),
			strings.Compare(a.Resource, b.Resource),
		)
	})
	return s
}

// Find returns the kind of a resource.
func (s *Set) Find(r schema.GroupVersionResource) *Kind { return s.byResource[r] }

// All returns the kinds, ordered by group, preferred version and resource.
func (s *Set) All() []*Kind { return s.all }

// OfKind returns a kind by its name.
func (s *Set) OfKind(gvk schema.GroupVersionKind) *Kind {
	for _, k := range s.all {
		if k.GroupVersionKind == gvk {
			return k
		}
	}
	return nil
}

// Stored returns the kinds whose objects are stored in one place, with the preferred version
// first.
func (s *Set) Stored(storage string) (found []*Kind) {
	for _, k := range s.all {
		if k.Storage == storage {
			found = append(found, k)
		}
	}
	return found
}
