package prometheus

import (
	"fmt"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// BenchmarkCollect is a scrape of a program with 20 queries and 20 streams.
func BenchmarkCollect(b *testing.B) {
	r := &reporting{}
	r.At = now
	w := watchOf(1, "w", 1)
	for i := range 20 {
		w.Queries = append(w.Queries, wholeQuery(fmt.Sprint(i), kates.StateSynced))
		r.Streams = append(r.Streams, wholeStream(int64(i), fmt.Sprint("kind", i, ".v1")))
	}
	r.Watches = []*inspect.Watch{w}
	m := New()
	_, _ = m.add("", r.now)
	b.ReportAllocs()
	for b.Loop() {
		to := make(chan prom.Metric, 10_000)
		m.Collect(to)
	}
}

// BenchmarkRequest is a request and its answer.
func BenchmarkRequest(b *testing.B) {
	o, _ := New().add("", (&reporting{}).now)
	info := kates.RequestInfo{Verb: "get", Group: "apps", Version: "v1", Resource: "deployments"}
	b.ReportAllocs()
	for b.Loop() {
		_, answered := o.Request(b.Context(), info)
		answered(kates.RequestResult{Code: 200, Duration: time.Millisecond})
	}
}

// BenchmarkUpdated is a snapshot.
func BenchmarkUpdated(b *testing.B) {
	o, _ := New().add("", (&reporting{}).now)
	b.ReportAllocs()
	for b.Loop() {
		o.Updated(kates.UpdateInfo{Watch: "w", Duration: time.Millisecond, Changes: 3})
	}
}
