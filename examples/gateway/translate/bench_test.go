package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeSnapshot is that of a large cluster: 1,000 Ingresses, 2,000 Services, 20,000 endpoints.
func largeSnapshot(b *testing.B) *Snapshot {
	var text []string
	for n := range 2000 {
		service := fmt.Sprintf("s-%d", n)
		text = append(text, strings.ReplaceAll(webService, "name: web", "name: "+service))
		var endpoints []string
		for e := range 10 {
			endpoints = append(endpoints, fmt.Sprintf("{addresses: [10.%d.%d.%d]}", n/250, n%250, e))
		}
		text = append(text, strings.ReplaceAll(slice(service, endpoints...), "service-name: web", "service-name: "+service))
	}
	for n := range 1000 {
		text = append(text, ingressOf(fmt.Sprintf("in-%d", n), "rules:\n"+rule(fmt.Sprintf("h-%d.example.com", n),
			to("/", "Prefix", fmt.Sprintf("s-%d", 2*n)), to("/api", "Prefix", fmt.Sprintf("s-%d", 2*n+1)))))
	}
	return snapshotOf(b, ourClass, strings.Join(text, "---"))
}

func BenchmarkTranslate(b *testing.B) {
	snap := largeSnapshot(b)
	b.ReportAllocs()
	for b.Loop() {
		d := Translate(snap, Options{Published: []string{"192.0.2.1"}})
		require.Len(b, d.Config.Upstreams, 2000)
	}
}
