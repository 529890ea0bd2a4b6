package katestest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/kates-go/kates/kates"
)

// Fake is an in-memory API and a client of it. The package comment says what it can and cannot
// do.
//
// [New] and [NewFake] make one. Fakes share nothing with each other. All fields may be used by
// several goroutines, within the limits of client-go's fake. No field may be set.
type Fake struct {
	// Client is the client to hand to the program under test.
	Client *kates.Client

	// Dynamic is the fake under Client. A write made directly to it is another program's write to
	// Client. Its PrependReactor and PrependWatchReactor inject errors, and its Actions returns
	// the requests that were made. Once Client is in use, hold Dynamic's lock around
	// PrependReactor, which takes none.
	Dynamic *dynamicfake.FakeDynamicClient

	// Mapper knows the kinds that the fake serves.
	Mapper meta.RESTMapper
}

// NewClient returns a client of a fresh in-memory API that holds the given objects, typed or
// unstructured. The client is closed when the test ends. A bad object (no name, no kind, a
// duplicate) fails the test at once.
//
// Objects are copied. An object of a namespaced kind without a namespace is put into "default". A
// kind may be unknown: neither in client-go's scheme nor defined by a CustomResourceDefinition
// among the objects. Then its objects decide how it is served: under the usual plural, and
// cluster-scoped if none of them has a namespace. Use [WithKinds] where that is wrong.
//
// For the result of [kates.ParseManifests] write NewClient(t, objects...).
func NewClient(t testing.TB, objects ...kates.Object) *kates.Client {
	t.Helper()
	return New(t, WithObjects(objects...)).Client
}

// New is NewClient for tests that need more than the client, such as custom kinds or the fake
// itself.
//
// The client of both has a [DetectMutations]: a program that writes to a shared object fails the
// test. [WithoutMutationDetector] switches it off.
func New(t testing.TB, options ...Option) *Fake {
	t.Helper()
	detector := DetectMutations(t) // looks when the client is closed: the last cleanup comes first
	fake, err := newFake(detector, options)
	if err != nil {
		t.Fatalf("starting the fake API: %v", err)
	}
	t.Cleanup(fake.Close)
	return fake
}

// NewFake is New for programs that are not tests: examples, benchmarks, demonstrations. The
// caller calls Close. The error names the wrong object, kind or option.
func NewFake(options ...Option) (*Fake, error) { return newFake(nil, options) }

func newFake(detector kates.Option, options []Option) (*Fake, error) {
	c, err := configOf(detector, options)
	if err != nil {
		return nil, err
	}
	objects, err := c.unstructuredObjects()
	if err != nil {
		return nil, err
	}
	kinds, err := c.kindSet(objects)
	if err != nil {
		return nil, err
	}
	fake := &Fake{Dynamic: kinds.dynamic(), Mapper: kinds.mapper()}
	for _, object := range objects {
		if err := fake.add(object); err != nil {
			return nil, err
		}
	}
	fake.Client, err = kates.NewClientFromDynamic(fake.Dynamic, fake.Mapper, c.clientOptions()...)
	if err != nil {
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	return fake, nil
}

// Close ends the client with all of its watches, and waits until they have ended. It may be
// called more than once.
func (f *Fake) Close() { f.Client.Close() }

// add stores a starting object. It uses the tracker's Create, because the tracker's Add guesses
// the plural.
func (f *Fake) add(object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	mapping, err := f.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("%s: %w", describe(object), err)
	}
	switch namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; {
	case object.GetName() == "":
		return fmt.Errorf("%s: a starting object needs a name", describe(object))
	case namespaced && object.GetNamespace() == "":
		object.SetNamespace("default")
	case !namespaced && object.GetNamespace() != "":
		return fmt.Errorf("%s: the kind is cluster-scoped, the object has a namespace", describe(object))
	}
	if err := f.Dynamic.Tracker().Create(mapping.Resource, object, object.GetNamespace()); err != nil {
		return fmt.Errorf("%s: %w", describe(object), err)
	}
	return nil
}

func describe(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s %q in namespace %q", object.GetAPIVersion(), object.GetKind(), object.GetName(), object.GetNamespace())
}

// dynamic returns an empty fake in which every kind of the set has a list kind. Without one, a
// list panics.
func (s kindSet) dynamic() *dynamicfake.FakeDynamicClient {
	scheme := runtime.NewScheme()
	lists := map[schema.GroupVersionResource]string{}
	for gvk, kind := range s {
		scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		lists[kind.gvr(gvk)] = gvk.Kind + "List"
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, lists)
}
