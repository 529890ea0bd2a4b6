package katestest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// Option says what a [Fake] serves and holds. Options add up: each may be given several times, in
// any order.
type Option func(*config) error

// adding returns an option that cannot fail.
func adding(add func(*config)) Option {
	return func(c *config) error {
		add(c)
		return nil
	}
}

type config struct {
	schemes []*runtime.Scheme // the last one that knows a type decides its kind
	kinds   []Kind
	objects []kates.Object
	client  []kates.Option

	uncontrolled bool // the server has no controllers
	sharded      bool // it sends shares of lists and watches

	detector kates.Option // of writes to shared objects; nil: none
}

// configOf applies options.
func configOf(detector kates.Option, options []Option) (*config, error) {
	c := &config{schemes: []*runtime.Scheme{clientgoscheme.Scheme}, detector: detector}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("an option is nil")
		}
		if err := option(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// WithShardedLists has a [Server] send shares of lists and watches to those who ask for them, as
// one with the feature gate ShardedListAndWatch does (KEP-5866). Without it the server sends
// everything. A fake ignores it.
func WithShardedLists() Option {
	return func(c *config) error {
		c.sharded = true
		return nil
	}
}

// WithObjects adds starting objects, like the arguments of [NewClient].
func WithObjects(objects ...kates.Object) Option {
	return adding(func(c *config) { c.objects = append(c.objects, objects...) })
}

// WithManifests adds the objects in a YAML or JSON text, which may hold several documents.
func WithManifests(text string) Option {
	return func(c *config) error {
		objects, err := kates.ParseManifests(text)
		if err != nil {
			return fmt.Errorf("parsing manifests: %w", err)
		}
		c.objects = append(c.objects, objects...)
		return nil
	}
}

// WithKinds adds custom kinds, or corrects how a known kind is served.
func WithKinds(kinds ...Kind) Option {
	return adding(func(c *config) { c.kinds = append(c.kinds, kinds...) })
}

// WithScheme adds a scheme's types to client-go's, for starting objects and for the client. It
// differs from [kates.WithScheme], which puts a scheme in the place of client-go's: a test that
// passes does not show that the program has added client-go's types to its own scheme. To give the
// client exactly the program's scheme, pass kates.WithScheme by [WithClientOptions], too.
//
// Kinds that are not built in count as namespaced with regular plurals; [WithKinds] corrects that.
func WithScheme(scheme *runtime.Scheme) Option {
	return adding(func(c *config) { c.schemes = append(c.schemes, scheme) })
}

// WithClientOptions passes options on to the client.
func WithClientOptions(options ...kates.Option) Option {
	return adding(func(c *config) { c.client = append(c.client, options...) })
}

// WithoutMutationDetector switches off what [New], [NewClient] and [NewServer] switch on:
// [DetectMutations].
// That is for benchmarks, and for tests with so many objects that the detector's time, or the
// memory that it holds, matters.
func WithoutMutationDetector() Option {
	return func(c *config) error {
		c.detector = nil
		return nil
	}
}

// WithoutControllers leaves out of a [Server] what are controllers in a cluster: then nobody
// empties a namespace that is deleted, and nobody looks at owner references. It is then like a
// lone API server, such as envtest's.
func WithoutControllers() Option {
	return adding(func(c *config) { c.uncontrolled = true })
}

// clientOptions gives the client one scheme with the types of all schemes, unless the test has
// set another.
func (c *config) clientOptions() []kates.Option {
	all := runtime.NewScheme()
	for _, scheme := range slices.Backward(c.schemes) {
		for gvk, goType := range scheme.AllKnownTypes() {
			if object, ok := reflect.New(goType).Interface().(runtime.Object); ok && !all.Recognizes(gvk) {
				all.AddKnownTypeWithName(gvk, object)
			}
		}
	}
	options := []kates.Option{kates.WithScheme(all)}
	if c.detector != nil {
		options = append(options, c.detector)
	}
	return append(options, c.client...)
}

// unstructuredObjects returns copies of the starting objects, with apiVersion and kind filled in.
func (c *config) unstructuredObjects() ([]*unstructured.Unstructured, error) {
	all := make([]*unstructured.Unstructured, 0, len(c.objects))
	for i, object := range c.objects {
		if object == nil {
			return nil, fmt.Errorf("starting object %d is nil", i)
		}
		u, err := c.unstructuredObject(object)
		if err != nil {
			return nil, fmt.Errorf("starting object %d (%T %q): %w", i, object, object.GetName(), err)
		}
		all = append(all, u)
	}
	return all, nil
}

func (c *config) unstructuredObject(object kates.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetAPIVersion() == "" || u.GetKind() == "" {
		for _, scheme := range slices.Backward(c.schemes) {
			if gvks, _, err := scheme.ObjectKinds(object); err == nil {
				u.SetGroupVersionKind(gvks[0])
				break
			}
		}
	}
	if u.GetAPIVersion() == "" || u.GetKind() == "" {
		return nil, fmt.Errorf("it has no apiVersion and kind, and no scheme knows its type: set them, or use WithScheme")
	}
	// Manifests printed by older programs have an explicit null here, which no server sends.
	if u.GetCreationTimestamp().Time.IsZero() {
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	}
	return u, nil
}

// kindSet collects what the fake serves. Explicit kinds win over what the objects suggest.
func (c *config) kindSet(objects []*unstructured.Unstructured) (kindSet, error) {
	var all []Kind
	for _, scheme := range c.schemes {
		all = append(all, kindsOf(kinds.OfScheme(scheme))...)
	}
	all = append(all, kindsOf(kinds.Unschemed())...)
	for _, object := range objects {
		all = append(all, kindsOfCRD(object)...)
	}
	all = append(all, c.kinds...)
	known, err := newKindSet(all)
	if err != nil {
		return nil, err
	}
	suggested := map[string]Kind{}
	for _, object := range objects {
		if _, ok := known[object.GroupVersionKind()]; ok {
			continue
		}
		kind, seen := suggested[object.GroupVersionKind().String()]
		if !seen {
			kind = Kind{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), ClusterScoped: true}
		}
		kind.ClusterScoped = kind.ClusterScoped && object.GetNamespace() == ""
		suggested[object.GroupVersionKind().String()] = kind
	}
	for _, kind := range suggested {
		all = append(all, kind)
	}
	return newKindSet(all)
}
