package page

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// BenchmarkASnapshot is what the page costs for each snapshot, however large: some names are
// copied. Events cost nothing: the page is not told of them.
func BenchmarkASnapshot(b *testing.B) {
	for _, changes := range []int{0, 1, 20, 10_000} {
		b.Run(fmt.Sprint(changes, "-changes"), func(b *testing.B) {
			p := New()
			defer p.Close()
			o, _ := p.join("one", &fabricated{made: &inspect.Report{}})
			u := kates.UpdateInfo{Watch: "w", ID: 1, Changes: changes, Each: func(yield func(q, ns, n string, t kates.DeltaType) bool) {
				for range changes {
					if !yield("ConfigMaps", "default", "name", kates.ObjectUpdate) {
						return
					}
				}
			}}
			b.ReportAllocs()
			for b.Loop() {
				o.Updated(u)
			}
		})
	}
}

// BenchmarkASample is what the page costs each second while somebody looks, for 20 streams.
func BenchmarkASample(b *testing.B) {
	f := full()
	for i := range 20 {
		f.made.Streams = append(f.made.Streams, &inspect.Stream{ID: int64(100 + i), Heard: time.Now()})
	}
	p := New(client("one", f))
	defer p.Close()
	b.ReportAllocs()
	for b.Loop() {
		p.takeSample(time.Now())
	}
}

// BenchmarkAPageOf100000Objects is what it costs to look at the objects of a large query.
func BenchmarkAPageOf100000Objects(b *testing.B) {
	f := full()
	f.keys = nil
	for i := range 100_000 {
		f.keys = append(f.keys, inspect.ObjectKey{Namespace: "default", Name: fmt.Sprintf("object-%05d", i)})
	}
	p := New(client("one", f))
	defer p.Close()
	b.ReportAllocs()
	for b.Loop() {
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/objects?query=Services&watch=2", nil))
	}
}

// BenchmarkAPage is what an open page costs every two seconds, with the timelines of five minutes.
func BenchmarkAPage(b *testing.B) {
	p := New(client("one", full()))
	defer p.Close()
	for i := range 300 {
		p.takeSample(time.Now().Add(time.Duration(i-300) * time.Second))
	}
	for _, name := range []string{"", "queries", "streams"} {
		b.Run("of "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/"+name, nil))
			}
		})
	}
}
