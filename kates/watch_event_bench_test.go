//go:build unix

package kates_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/framer"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/realistic"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// podServer answers a list with many realistic pods, and a watch with the bytes sent to events.
// Both are protobuf.
type podServer struct {
	pods   []*corev1.Pod
	reads  *io.PipeReader
	events *io.PipeWriter
}

func (s *podServer) WrappedRoundTripper() http.RoundTripper { return http.DefaultTransport }

func (s *podServer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}}}
	switch {
	case !strings.HasSuffix(r.URL.Path, "/pods"):
		resp.StatusCode, resp.Body = http.StatusNotFound, http.NoBody
	case r.URL.Query().Get("watch") == "true":
		resp.Body = s.reads
	default:
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1000000000"}}
		for _, p := range s.pods {
			list.Items = append(list.Items, *p)
		}
		resp.Body = io.NopCloser(bytes.NewReader(enveloped("PodList", must(list.Marshal()))))
	}
	return resp, nil
}

// enveloped is an object of a kind of v1, as servers send it.
func enveloped(kind string, raw []byte) []byte {
	typ := field(1, append(field(1, []byte("v1")), field(2, []byte(kind))...))
	return slices.Concat([]byte("k8s\x00"), typ, field(2, raw))
}

// restarted returns the events of a restart in every pod.
func (s *podServer) restarted(b *testing.B, round int) []byte {
	var out bytes.Buffer
	for i, p := range s.pods {
		raw := enveloped("Pod", must(realistic.Restarted(p, round*len(s.pods)+i+1).Marshal()))
		e := metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: raw}}
		_, err := framer.NewLengthDelimitedFrameWriter(&out).Write(must(e.Marshal()))
		require.NoError(b, err)
	}
	return out.Bytes()
}

// BenchmarkEvents sends one event of each of many realistic pods over the wire to a reader that
// takes a snapshot every 20 ms. CPU is the process's.
func BenchmarkEvents(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := &podServer{}
			for i := range n {
				s.pods = append(s.pods, realistic.Pod(i))
			}
			s.reads, s.events = io.Pipe()
			mapper, err := katestest.NewMapper()
			require.NoError(b, err)
			c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: "http://server.invalid", Transport: s},
				kates.WithRESTMapper(mapper), kates.WithInterval(20*time.Millisecond))
			require.NoError(b, err)
			b.Cleanup(c.Close)
			b.Cleanup(func() { _ = s.events.CloseWithError(io.EOF) })
			type snapshot struct{ Pods []*kates.Pod }
			w, err := kates.Watch[snapshot](b.Context(), c)
			require.NoError(b, err)
			var snap snapshot
			until := func(done func() bool) {
				for !done() {
					<-w.Changed()
					_, err := w.Update(b.Context(), &snap)
					require.NoError(b, err)
				}
			}
			until(func() bool { return len(snap.Pods) == n })
			// the last pod has its event
			last := slices.IndexFunc(snap.Pods, func(p *kates.Pod) bool { return p.Name == s.pods[n-1].Name })
			var cpu time.Duration
			round := 0
			for b.Loop() {
				b.StopTimer()
				events := s.restarted(b, round)
				round++
				before := usage(b)
				b.StartTimer()
				_, err := s.events.Write(events)
				require.NoError(b, err)
				until(func() bool { return snap.Pods[last].ResourceVersion == fmt.Sprint(1_000_000_000+round*n) })
				b.StopTimer()
				cpu += usage(b) - before
				b.StartTimer()
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N)/float64(n), "cpu-ns/event")
		})
	}
}

// usage is the CPU time of the process.
func usage(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
