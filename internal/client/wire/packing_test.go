package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/tree"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/warm/files"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

func TestWhatIsPackedIsUnpackedAsItWas(t *testing.T) {
	rest := &restSource{resource: podDecoder().resource, trees: new(tree.Table)}
	inJSON := podDecoder()
	inJSON.proto = false
	for name, source := range map[string]source.Packer{
		"protobuf": &typedSource{rest: rest, decoder: podDecoder()},
		"shared":   &typedSource{rest: rest, decoder: sharingDecoder()},
		"json":     &typedSource{rest: rest, decoder: inJSON},
	} {
		for i := range 20 {
			o, err := podDecoder().decode(encoded(t, realistic.Restarted(realistic.Pod(i%3), i), frames.Protobuf), frames.Protobuf)
			require.NoError(t, err)
			raw, err := source.Pack(o)
			require.NoError(t, err, name)
			again, err := source.Unpack(raw)
			require.NoError(t, err, name)
			assert.True(t, objects.SameContent(o, again), name)
			assert.Equal(t, o.GetObjectKind().GroupVersionKind(), again.GetObjectKind().GroupVersionKind())
		}
		_, err := source.Pack(&unstructured.Unstructured{})
		assert.Error(t, err)
	}
	o, err := rest.Unpack(encoded(t, realistic.Pod(1), frames.JSON))
	require.NoError(t, err)
	raw, err := rest.Pack(o)
	require.NoError(t, err)
	again, err := rest.Unpack(raw)
	require.NoError(t, err)
	assert.True(t, objects.SameContent(o, again))
}

func TestAnObjectThatItsJSONDoesNotGiveBackIsNotPacked(t *testing.T) {
	rest := &restSource{resource: podDecoder().resource, trees: new(tree.Table)}
	for name, value := range map[string]any{"a whole float": 1.0, "a text that is no UTF-8": "\xff", "what JSON has not": func() {}} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "x": value}}
		_, err := rest.Pack(o)
		assert.ErrorIs(t, err, errChanges, name)
	}
	inJSON := podDecoder()
	inJSON.proto = false
	pod := realistic.Pod(1)
	pod.Labels = map[string]string{"a": "\xff"}
	_, err := (&typedSource{rest: rest, decoder: inJSON}).Pack(pod)
	assert.ErrorIs(t, err, errChanges)
}

func TestMetadataIsPackedAsItWas(t *testing.T) {
	source := &metadataSource{rest: &restSource{resource: podDecoder().resource}}
	m := &metav1.PartialObjectMetadata{ObjectMeta: realistic.Pod(1).ObjectMeta}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	raw, err := source.Pack(m)
	require.NoError(t, err)
	again, err := source.Unpack(raw)
	require.NoError(t, err)
	short, err := objects.Shorten(again, m.GroupVersionKind())
	require.NoError(t, err)
	assert.True(t, objects.SameContent(m, short))
}

func TestPackingsOfOtherFormsHaveOtherNames(t *testing.T) {
	rest := &restSource{resource: podDecoder().resource}
	kept, inJSON := podDecoder(), podDecoder()
	kept.keep, inJSON.proto = true, false
	seen := make(map[string]bool)
	for _, p := range []source.Packer{
		rest, &metadataSource{}, &typedSource{decoder: podDecoder()}, &typedSource{decoder: kept}, &typedSource{decoder: inJSON},
		&typedSource{decoder: projecting(objects.Beside{})}, &typedSource{decoder: projecting(objects.Beside{Owners: true})},
	} {
		assert.False(t, seen[p.Packing()], p.Packing())
		seen[p.Packing()] = true
	}
}

// BenchmarkWarm writes a base of realistic pods, and reads it: what a warm start of 50,000 pods
// takes beside its requests.
func BenchmarkWarm(b *testing.B) {
	const n = 10_000
	d := sharingDecoder()
	source := &typedSource{rest: &restSource{resource: d.resource}, decoder: d}
	all := make([]objects.Object, n)
	size := 0
	for i := range all {
		raw := encoded(b, realistic.Pod(i), frames.Protobuf)
		size += len(raw)
		all[i], _ = d.decode(raw, frames.Protobuf)
	}
	var file bytes.Buffer
	head := files.Head{Identity: files.Identity{Format: files.Format}}
	write := func() {
		file.Reset()
		w, err := files.Codec{}.NewWriter(&file, head)
		require.NoError(b, err)
		for _, o := range all {
			raw, err := source.Pack(o)
			require.NoError(b, err)
			require.NoError(b, w.Put(raw))
		}
		require.NoError(b, w.Close())
	}
	write()
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			write()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pod")
		b.ReportMetric(float64(file.Len())/n, "file-B/pod")
		b.ReportMetric(float64(size)/n, "wire-B/pod")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			fresh := &typedSource{rest: source.rest, decoder: sharingDecoder()}
			r, err := files.Codec{}.Open(bytes.NewReader(file.Bytes()))
			require.NoError(b, err)
			got := 0
			for {
				chunk, err := r.Next()
				require.NoError(b, err)
				if chunk == nil {
					break
				}
				require.NoError(b, chunk.Each(func(one files.Record) error {
					got++
					_, err := fresh.Unpack(one.Raw)
					return err
				}))
			}
			require.Equal(b, n, got)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pod")
	})
}
