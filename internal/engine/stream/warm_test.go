package stream

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// packing is a packer that only says how it packs.
type packing string

func (packing) Pack(Object) ([]byte, error)   { return nil, nil }
func (packing) Unpack([]byte) (Object, error) { return nil, nil }
func (p packing) Packing() string             { return string(p) }

// These types have one name, as one type has in two versions of a program.

func taggedName() reflect.Type {
	type brief struct {
		Name string `json:"name"`
	}
	return reflect.TypeFor[brief]()
}

func taggedTitle() reflect.Type {
	type brief struct {
		Name string `json:"title"`
	}
	return reflect.TypeFor[brief]()
}

// filesOf is what the files say of themselves that keep what a query selects of config maps, which
// change may change.
func filesOf(change func(*Resource, *Spec)) warm.Identity {
	r := Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true,
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Storage: "configmaps",
	}
	spec := Spec{Namespace: "ns", Form: Projection{Into: taggedName()}.Form()}
	if change != nil {
		change(&r, &spec)
	}
	s := &shape{key: keyOf(r, spec), resource: r, packer: packing("packed")}
	return s.fileIdentity(warm.Origin{Cluster: "c"})
}

func TestAnotherQueryOrStructHasFilesOfItsOwn(t *testing.T) {
	require.Equal(t, taggedName().String(), taggedTitle().String(), "the name alone does not tell")
	was := filesOf(nil)
	assert.Equal(t, was, filesOf(nil))
	for what, change := range map[string]func(*Resource, *Spec){
		"tags":       func(_ *Resource, s *Spec) { s.Form = Projection{Into: taggedTitle()}.Form() },
		"labels too": func(_ *Resource, s *Spec) { s.Form = Projection{taggedName(), object.Beside{Labels: true}}.Form() },
		"owners too": func(_ *Resource, s *Spec) { s.Form = Projection{taggedName(), object.Beside{Owners: true}}.Form() },
		"whole":      func(_ *Resource, s *Spec) { s.Form = Whole },
		"metadata":   func(_ *Resource, s *Spec) { s.Form = Metadata },
		"namespace":  func(_ *Resource, s *Spec) { s.Namespace = "other" },
		"labels":     func(_ *Resource, s *Spec) { s.Labels = labels.SelectorFromSet(labels.Set{"a": "b"}) },
		"fields":     func(_ *Resource, s *Spec) { s.Fields = fields.OneTermEqualSelector("metadata.name", "x") },
		"shard": func(_ *Resource, s *Spec) {
			s.Shard = shardrange.Shard{Field: shardrange.UID, Ranges: shardrange.Ranges{{First: 0, Last: 1 << 62}}}
		},
		"version": func(r *Resource, _ *Spec) { r.Version = "v2" },
		"group":   func(r *Resource, _ *Spec) { r.Group = "example.com" },
		"kind":    func(r *Resource, _ *Spec) { r.Kind.Kind = "Other" },
		"storage": func(r *Resource, _ *Spec) { r.Storage = "others" },
	} {
		other := filesOf(change)
		assert.NotEmpty(t, was.Differs(other), what)
		assert.NotEqual(t, was.Name(), other.Name(), what)
	}
}

// TestStructsOfOneNameAreOtherForms: two functions may each have a type of that name.
func TestStructsOfOneNameAreOtherForms(t *testing.T) {
	seen := make(map[Form]bool)
	for _, p := range []Projection{
		{Into: taggedName()}, {Into: taggedTitle()}, {taggedName(), object.Beside{Annotations: true}}, {taggedName(), object.Beside{Owners: true}},
	} {
		form := p.Form()
		assert.Equal(t, form, p.Form(), "equal projections share a stream")
		assert.False(t, seen[form], form)
		seen[form] = true
		of, ok := form.Projection()
		assert.True(t, ok)
		assert.Equal(t, p, of)
	}
	_, ok := Whole.Projection()
	assert.False(t, ok)
}
