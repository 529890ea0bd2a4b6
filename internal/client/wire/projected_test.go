//go:build !kates_safe

package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/footprint"
	"github.com/kates-go/kates/internal/client/wire/frames"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

func TestAPodOfSixFieldsTakesAFewHundredBytes(t *testing.T) {
	const pods, most = 1000, 480 // and some 100 for each place where it is held
	for _, e := range []frames.Encoding{frames.Protobuf, frames.JSON} {
		d := projecting(objects.Beside{})
		all := make([]objects.Object, pods)
		for i := range all {
			o, err := d.decode(podIn(t, i, e), e)
			require.NoError(t, err)
			d.Compact(o, nil, true)
			all[i] = o
		}
		per := footprint.Of(all...) / pods
		t.Logf("%s: %d bytes", e, per)
		assert.Less(t, per, int64(most))
	}
}

func TestAProjectionIsOneWhateverTheEncodingAndForTheAnswerToAWriteToo(t *testing.T) {
	for _, beside := range []objects.Beside{
		{}, {Labels: true}, {Annotations: true}, {Owners: true}, {Generation: true},
		{Labels: true, Annotations: true, Owners: true, Generation: true},
	} {
		d := projecting(beside)
		inProto, err := d.decode(podIn(t, 1, frames.Protobuf), frames.Protobuf)
		require.NoError(t, err)
		inJSON, err := d.decode(podIn(t, 1, frames.JSON), frames.JSON)
		require.NoError(t, err)
		u := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal(podIn(t, 1, frames.JSON), &u.Object))
		answer, err := d.Typed(u)
		require.NoError(t, err)
		assert.True(t, objects.SameContent(inProto, inJSON))
		assert.True(t, objects.SameContent(inProto, answer))
		assert.Equal(t, beside, objects.Beside{
			Labels: len(inProto.GetLabels()) > 0, Annotations: len(inProto.GetAnnotations()) > 0,
			Owners: len(inProto.GetOwnerReferences()) > 0, Generation: inProto.GetGeneration() > 0,
		}, "each is held where somebody reads it")
		got := inProto.(*objects.Projected).Value().(*sixFields)
		want := realistic.Pod(1)
		assert.Equal(t, want.Spec.NodeName+" "+want.Status.PodIP+" "+string(want.Status.Phase), got.Spec.NodeName+" "+got.Status.PodIP+" "+got.Status.Phase)
	}
}

// TestTheLastAnnotationOwnerAndLabelOfAProjectedObjectGoAway: in a version of it, in the answer to
// an own write, and in a file.
func TestTheLastAnnotationOwnerAndLabelOfAProjectedObjectGoAway(t *testing.T) {
	d := projecting(objects.Beside{Labels: true, Annotations: true, Owners: true, Finalizers: true, Generation: true})
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "ns", UID: "u", ResourceVersion: "7", Generation: 3, Labels: map[string]string{"k": "v"},
		Annotations: map[string]string{"a": "b"}, Finalizers: []string{"f"}, OwnerReferences: []metav1.OwnerReference{{Kind: "Owner", Name: "o", UID: "o"}},
	}}
	p.APIVersion, p.Kind = "v1", "Pod"
	inProto := func(p *corev1.Pod) (objects.Object, error) {
		raw, err := p.Marshal()
		require.NoError(t, err)
		return d.decode(raw, frames.Protobuf)
	}
	for how, make := range map[string]func(*corev1.Pod) (objects.Object, error){
		"protobuf": inProto,
		"JSON": func(p *corev1.Pod) (objects.Object, error) {
			raw, err := json.Marshal(p)
			require.NoError(t, err)
			return d.decode(raw, frames.JSON)
		},
		"an answer": func(p *corev1.Pod) (objects.Object, error) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
			require.NoError(t, err)
			return d.Typed(&unstructured.Unstructured{Object: content})
		},
		"a file": func(p *corev1.Pod) (objects.Object, error) {
			source := &typedSource{rest: &restSource{resource: d.resource}, decoder: d}
			o, err := inProto(p)
			require.NoError(t, err)
			raw, err := source.Pack(o)
			require.NoError(t, err)
			return source.Unpack(raw)
		},
	} {
		before, err := make(p)
		require.NoError(t, err, how)
		assert.Equal(t, []string{"f"}, before.GetFinalizers(), how)
		d.Compact(before, nil, true)
		bare := p.DeepCopy()
		bare.Labels, bare.Annotations, bare.OwnerReferences, bare.Finalizers = nil, nil, nil, nil
		now, err := make(bare)
		require.NoError(t, err, how)
		assert.Empty(t, now.GetFinalizers(), how)
		d.Compact(now, before, true)
		assert.Empty(t, now.GetAnnotations(), how)
		assert.Empty(t, now.GetOwnerReferences(), how)
		assert.Empty(t, now.GetLabels(), how)
		assert.Equal(t, int64(3), now.GetGeneration(), how)
		assert.Equal(t, p.Annotations, before.GetAnnotations(), how)
		assert.False(t, objects.SameContent(before, now), how)
	}
}

func TestAnObjectThatNoServerHasStoredIsAnErrorInAProjectionToo(t *testing.T) {
	d := projecting(objects.Beside{})
	for text, says := range map[string]string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns"},"spec":{"nodeName":"a","nodeName":"b"}}`: "nodeName",
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","name":"b"}}`:                                              "name",
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"`:                                                           "damaged",
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\xff\"}}":                                       "UTF-8",
		`{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}`:                                                        "of kind Node",
		`{"kind":"Pod","apiVersion":"v1","metadata":{}}`:                                                                   "without a name",
		`[]`:   "without a name",
		`null`: "without a name",
	} {
		_, err := d.decode([]byte(text), frames.JSON)
		assert.ErrorContains(t, err, says, text)
	}
	_, err := d.decode([]byte{0x0a, 0x7f}, frames.Protobuf)
	require.ErrorContains(t, err, "without a name")
	custom := newProjecting(objects.Resource{Kind: schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Y"}}, objects.Projection{Into: reflect.TypeFor[sixFields]()}, runtime.NewScheme())
	_, err = custom.decode(podIn(t, 1, frames.Protobuf), frames.Protobuf)
	require.ErrorContains(t, err, "nobody asked for that")
}

func TestG8AProjectedSecretIsNotQuotedWhenItDoesNotDecode(t *testing.T) {
	type numbers struct {
		Data map[string]int `json:"data"`
	}
	secrets := objects.Resource{Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespaced: true}
	d := newProjecting(secrets, objects.Projection{Into: reflect.TypeFor[numbers]()}, runtime.NewScheme())
	o, err := d.decode([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"ns"},"data":{"k":"SENSITIVE"}}`), frames.JSON)
	require.NoError(t, err)
	require.Error(t, objects.Fault(o))
	assert.NotContains(t, objects.Fault(o).Error(), "SENSITIVE")
	assert.True(t, strings.HasPrefix(objects.Fault(o).Error(), `convert Secret "ns/a"`), "%v", objects.Fault(o))
}

func FuzzAProjectionOfAnyBytes(f *testing.F) {
	f.Add(podIn(f, 1, frames.Protobuf), true)
	f.Add(podIn(f, 2, frames.JSON), false)
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"a":1}},"spec":null}`), false)
	d := projecting(objects.Beside{Labels: true})
	f.Fuzz(func(t *testing.T, raw []byte, proto bool) {
		e := frames.JSON
		if proto {
			e = frames.Protobuf
		}
		o, err := d.decode(raw, e)
		if err != nil || objects.Fault(o) != nil {
			return
		}
		d.Compact(o, o, true)
		if proto {
			return
		}
		var want sixFields // whatever was decoded is what encoding/json makes of it
		if err := json.Unmarshal(raw, &want); err != nil || !objects.SameValue(&want, o.(*objects.Projected).Value()) {
			t.Fatalf("%s: %v, %v", raw, err, o.(*objects.Projected).Value())
		}
	})
}

// TestAProjectionHasTheTextsOfItsIdentityOnce decodes a pod of a node of the same name, and one of
// a node whose name is as long.
func TestAProjectionHasTheTextsOfItsIdentityOnce(t *testing.T) {
	d := projecting(objects.Beside{})
	for node, once := range map[string]bool{"pod-1": true, "pod-2": false} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-1", Namespace: "a", UID: "u", ResourceVersion: "7"}}
		p.Spec.NodeName, p.Status.PodIP = node, "10.0.0.7"
		raw, err := p.Marshal()
		require.NoError(t, err)
		o, err := d.decode(raw, frames.Protobuf)
		require.NoError(t, err)
		got := o.(*objects.Projected).Value().(*sixFields)
		assert.Equal(t, "a/pod-1 on "+node+" 10.0.0.7", got.Metadata.Namespace+"/"+got.Metadata.Name+" on "+got.Spec.NodeName+" "+got.Status.PodIP)
		assert.Same(t, unsafe.StringData(o.GetName()), unsafe.StringData(got.Metadata.Name))
		assert.Same(t, unsafe.StringData(o.GetNamespace()), unsafe.StringData(got.Metadata.Namespace))
		assert.Equal(t, once, unsafe.StringData(o.GetName()) == unsafe.StringData(got.Spec.NodeName))
	}
}

func TestAProjectionIsPackedAsItWas(t *testing.T) {
	d := projecting(objects.Beside{Labels: true, Annotations: true, Owners: true, Generation: true})
	source := &typedSource{rest: &restSource{resource: d.resource}, decoder: d}
	o, err := d.decode(podIn(t, 1, frames.Protobuf), frames.Protobuf)
	require.NoError(t, err)
	raw, err := source.Pack(o)
	require.NoError(t, err)
	again, err := source.Unpack(raw)
	require.NoError(t, err)
	assert.True(t, objects.SameContent(o, again))
	assert.Equal(t, o.GetOwnerReferences(), again.GetOwnerReferences())
	assert.NotEmpty(t, again.GetAnnotations())
}
