package wire

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/tree"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// fourFields are those that are kept, as a struct.
type fourFields struct {
	Spec struct {
		NodeName    string `json:"nodeName"`
		HostNetwork bool   `json:"hostNetwork"`
	} `json:"spec"`
	Status struct {
		PodIP string `json:"podIP"`
		Phase string `json:"phase"`
	} `json:"status"`
}

// BenchmarkHeld decodes realistic pods into each form in which they may be held, whole and with
// four fields; B/pod is what stays of each on the heap.
func BenchmarkHeld(b *testing.B) {
	const n = 10_000
	k, err := project.ParseKeep("spec.nodeName, spec.hostNetwork, status.podIP, status.phase")
	require.NoError(b, err)
	k, err = project.NewKeep(append(k.Paths(), objects.Identity...)...)
	require.NoError(b, err)
	protobuf, text, short := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i := range n {
		p := realistic.Pod(i)
		protobuf[i], text[i] = encoded(b, p, frames.Protobuf), encoded(b, p, frames.JSON)
		short[i], err = (&metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}).Marshal()
		require.NoError(b, err)
	}
	r := podDecoder().resource
	untyped := func(form objects.Form) decode {
		return (&restSource{resource: r, only: onlyOf(form, nil), trees: new(tree.Table), shared: true}).decode
	}
	typed := func(form objects.Form) decode {
		var d *decoder
		if p, projects := form.Projection(); projects {
			d = newProjecting(r, p, scheme.Scheme)
		} else {
			d = sharingDecoder()
			d.only = onlyOf(form, d.typ)
		}
		return func(raw []byte, e frames.Encoding) (objects.Object, bool, error) {
			o, silent, err := d.item(raw, e)
			d.Compact(o, nil, true)
			return o, silent, err
		}
	}
	for _, c := range []struct {
		name string
		raw  [][]byte
		as   frames.Encoding
		with func(objects.Form) decode
		form objects.Form
	}{
		{"typed", protobuf, frames.Protobuf, typed, objects.Typed},
		{"typed/four fields", protobuf, frames.Protobuf, typed, objects.Typed.Keeping(k)},
		{"struct of four fields", protobuf, frames.Protobuf, typed, objects.Projection{Into: reflect.TypeFor[fourFields]()}.Form()},
		{"typed from JSON", text, frames.JSON, typed, objects.Typed},
		{"typed from JSON/four fields", text, frames.JSON, typed, objects.Typed.Keeping(k)},
		{"untyped", text, frames.JSON, untyped, objects.Whole},
		{"untyped/four fields", text, frames.JSON, untyped, objects.Whole.Keeping(k)},
		{"metadata", short, frames.Protobuf, func(objects.Form) decode {
			s := &metadataSource{rest: &restSource{resource: r}}
			s.Shared()
			return s.decode
		}, objects.Metadata},
	} {
		b.Run(c.name, func(b *testing.B) {
			var before, after runtime.MemStats
			for b.Loop() {
				b.StopTimer()
				decode, held, scratch := c.with(c.form), make([]objects.Object, n), make([]byte, 0, 64<<10)
				runtime.GC()
				runtime.ReadMemStats(&before)
				b.StartTimer()
				for i := range n {
					o, _, err := decode(append(scratch, c.raw[i]...), c.as)
					if held[i] = o; err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/n, "B/pod")
				runtime.KeepAlive(held)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pod")
		})
	}
}
