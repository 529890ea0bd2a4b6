package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/kates"
)

// largeSnapshot is that of a cluster with so many Ingresses, of which 10 have a certificate, a
// tenth as many HTTPRoutes, twice as many Services, and 20 times as many endpoints.
func largeSnapshot(b testing.TB, ingresses int) *Snapshot {
	text := []string{gatewayOf("edge", `{name: http, port: 8080, protocol: HTTP}`)}
	for n := range 2 * ingresses {
		service := fmt.Sprintf("s-%04d", n)
		text = append(text, strings.ReplaceAll(webService, "name: web", "name: "+service))
		var endpoints []string
		for e := range 10 {
			endpoints = append(endpoints, fmt.Sprintf("{addresses: [10.%d.%d.%d]}", n/250, n%250, e))
		}
		text = append(text, strings.ReplaceAll(slice(service, endpoints...), "service-name: web", "service-name: "+service))
	}
	for n := range ingresses {
		tls := ""
		if n < 10 {
			tls = fmt.Sprintf("tls: [{secretName: cert-%d}]\n", n)
		}
		text = append(text, ingressOf(fmt.Sprintf("in-%04d", n), tls+"rules:\n"+rule(fmt.Sprintf("h-%d.example.com", n),
			to("/", "Prefix", fmt.Sprintf("s-%04d", 2*n)), to("/api", "Prefix", fmt.Sprintf("s-%04d", 2*n+1)))))
	}
	for n := range ingresses / 10 {
		text = append(text, routeOf(fmt.Sprintf("r-%04d", n), toEdge+fmt.Sprintf("\n  hostnames: [r-%d.example.com]", n),
			fmt.Sprintf("backendRefs: [{name: s-%04d, port: 80}]", n)))
	}
	snap := snapshotOf(b, cluster, ourClass, strings.Join(text, "---"))
	ca := newAuthority(b)
	for n := range 10 {
		chain, key := ca.issue(b, "*.example.com")
		put(b, snap, secret(fmt.Sprintf("cert-%d", n), chain, key))
	}
	byName(snap.Services)
	byName(snap.Slices)
	return snap
}

// byName sorts objects as a snapshot has them.
func byName[T kates.Object](all []T) {
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
}

func BenchmarkTranslate(b *testing.B) {
	snap := largeSnapshot(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		d := Translate(snap, Options{Published: []string{"192.0.2.1"}})
		require.Len(b, d.Config.Upstreams, 2000)
	}
}

// changedAt gives a list with another version of one of its objects, as the next snapshot has it.
func changedAt[T any, P interface {
	*T
	kates.Object
}](all *[]P, at int) {
	*all = slices.Clone(*all)
	next := runtime.Object((*all)[at]).DeepCopyObject().(P)
	next.SetResourceVersion(fmt.Sprint(at, time.Now().UnixNano()))
	(*all)[at] = next
}

// BenchmarkAfterOneChange is the translation after one object has changed.
func BenchmarkAfterOneChange(b *testing.B) {
	o := Options{Published: []string{"192.0.2.1"}, Now: born}
	base := largeSnapshot(b, 1000)
	for _, test := range []struct {
		kind   string
		change func(*Snapshot, int)
	}{
		{"Ingress", func(s *Snapshot, n int) { changedAt(&s.Ingresses, n%1000) }},
		{"HTTPRoute", func(s *Snapshot, n int) { changedAt(&s.Routes, n%100) }},
		{"EndpointSlice", func(s *Snapshot, n int) { changedAt(&s.Slices, n%2000) }},
		{"Service", func(s *Snapshot, n int) { changedAt(&s.Services, n%2000) }},
		{"Secret", func(s *Snapshot, n int) { changedAt(&s.Secrets, n%10) }},
		{"Nothing", func(*Snapshot, int) {}},
	} {
		b.Run(test.kind, func(b *testing.B) {
			snap, translator := *base, new(Translator)
			_, err := translator.Translate(&snap, o)
			require.NoError(b, err)
			b.ReportAllocs()
			began := cpu(b)
			for n := 0; b.Loop(); n++ {
				test.change(&snap, n)
				o.Now = o.Now.Add(time.Millisecond)
				d, err := translator.Translate(&snap, o)
				require.NoError(b, err)
				require.Len(b, d.Config.Servers, 1111)
			}
			b.ReportMetric(float64((cpu(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// cpu is what the process has taken, which other processes do not change.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
