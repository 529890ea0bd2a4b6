package warm

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
)

// packing is a packer that only says how it packs.
type packing string

func (packing) Pack(object.Object) ([]byte, error)   { return nil, nil }
func (packing) Unpack([]byte) (object.Object, error) { return nil, nil }
func (p packing) Packing() string                    { return string(p) }

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
func filesOf(change func(*object.Resource, *object.Spec)) files.Identity {
	r := object.Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true,
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Storage: "configmaps",
	}
	spec := object.Spec{Namespace: "ns", Form: object.Projection{Into: taggedName()}.Form()}
	if change != nil {
		change(&r, &spec)
	}
	k := &Keeper{Stream: Stream{Intake: &intake.Intake{Key: intake.KeyOf(r, spec), Resource: r, Packer: packing("packed")}}}
	return k.fileIdentity(files.Origin{Cluster: "c"})
}

func TestAnotherQueryOrStructHasFilesOfItsOwn(t *testing.T) {
	require.Equal(t, taggedName().String(), taggedTitle().String(), "the name alone does not tell")
	was := filesOf(nil)
	assert.Equal(t, was, filesOf(nil))
	for what, change := range map[string]func(*object.Resource, *object.Spec){
		"tags": func(_ *object.Resource, s *object.Spec) { s.Form = object.Projection{Into: taggedTitle()}.Form() },
		"labels too": func(_ *object.Resource, s *object.Spec) {
			s.Form = object.Projection{Into: taggedName(), Beside: object.Beside{Labels: true}}.Form()
		},
		"owners too": func(_ *object.Resource, s *object.Spec) {
			s.Form = object.Projection{Into: taggedName(), Beside: object.Beside{Owners: true}}.Form()
		},
		"whole":     func(_ *object.Resource, s *object.Spec) { s.Form = object.Whole },
		"metadata":  func(_ *object.Resource, s *object.Spec) { s.Form = object.Metadata },
		"namespace": func(_ *object.Resource, s *object.Spec) { s.Namespace = "other" },
		"labels":    func(_ *object.Resource, s *object.Spec) { s.Labels = labels.SelectorFromSet(labels.Set{"a": "b"}) },
		"fields":    func(_ *object.Resource, s *object.Spec) { s.Fields = fields.OneTermEqualSelector("metadata.name", "x") },
		"shard": func(_ *object.Resource, s *object.Spec) {
			s.Shard = shardrange.Shard{Field: shardrange.UID, Ranges: shardrange.Ranges{{First: 0, Last: 1 << 62}}}
		},
		"version": func(r *object.Resource, _ *object.Spec) { r.Version = "v2" },
		"group":   func(r *object.Resource, _ *object.Spec) { r.Group = "example.com" },
		"kind":    func(r *object.Resource, _ *object.Spec) { r.Kind.Kind = "Other" },
		"storage": func(r *object.Resource, _ *object.Spec) { r.Storage = "others" },
	} {
		other := filesOf(change)
		assert.NotEmpty(t, was.Differs(other), what)
		assert.NotEqual(t, was.Name(), other.Name(), what)
	}
}

// TestStructsOfOneNameAreOtherForms: two functions may each have a type of that name.
func TestStructsOfOneNameAreOtherForms(t *testing.T) {
	seen := make(map[object.Form]bool)
	for _, p := range []object.Projection{
		{Into: taggedName()}, {Into: taggedTitle()}, {Into: taggedName(), Beside: object.Beside{Annotations: true}}, {Into: taggedName(), Beside: object.Beside{Owners: true}},
	} {
		form := p.Form()
		assert.Equal(t, form, p.Form(), "equal projections share a stream")
		assert.False(t, seen[form], form)
		seen[form] = true
		of, ok := form.Projection()
		assert.True(t, ok)
		assert.Equal(t, p, of)
	}
	_, ok := object.Whole.Projection()
	assert.False(t, ok)
}

func TestAnObjectWithSeveralNamesIsNoWitness(t *testing.T) {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a\uFFFD", UID: "u1", ResourceVersion: "1"}}
	w := &witnesses{}
	w.add(o)
	assert.Empty(t, w.all(), "the server may know it by another name")
	o.Name = "a"
	w.add(o)
	assert.Len(t, w.all(), 1)
}
