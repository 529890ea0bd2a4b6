package hostile

import (
	"context"
	"io"
	"log"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

var quiet = log.New(io.Discard, "", 0)

// bound is the largest object that the tests' clients read.
const bound = 256 << 10

// The forms in which the tests' clients watch.
const (
	untyped = "untyped"
	typed   = "typed from json"
	proto   = "typed from protobuf"
	short   = "metadata"
)

var (
	all       = []string{untyped, typed, proto, short}
	inJSON    = []string{untyped, typed}
	protobufs = []string{proto, short}
)

// reader is a client that watches config maps.
type reader struct {
	t      *testing.T
	client *kates.Client
	query  func() kates.QueryStatus
	take   func() shown
	ready  func() error
}

// shown is what a snapshot has. Objects are name@version.
type shown struct{ objects, deltas, invalid []string }

type things[T any] struct {
	Maps    []T `kates:"configmaps"`
	Deltas  []*kates.Delta
	Invalid []kates.Invalid
}

func newReader(t *testing.T, s *server, form string, tuning kates.Tuning) *reader {
	t.Helper()
	s.json = form == typed
	tuning.MaxObjectBytes = bound
	c, err := kates.NewClientFromRESTConfig(s.config(), kates.WithLogger(slog.New(slog.DiscardHandler)), tuning)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	switch form {
	case untyped:
		return watch[*kates.Unstructured](t, c)
	case short:
		return watch[*metav1.PartialObjectMetadata](t, c)
	}
	return watch[*corev1.ConfigMap](t, c)
}

func watch[T metav1.Object](t *testing.T, c *kates.Client) *reader {
	t.Helper()
	snapshots, err := kates.Watch[things[T]](t.Context(), c, kates.Query{Name: "Maps", Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	var snap things[T]
	return &reader{
		t: t, client: c, ready: snapshots.Ready,
		query: func() kates.QueryStatus { return snapshots.Status().Queries[0] },
		take: func() (got shown) {
			changed, err := snapshots.Update(context.Background(), &snap)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range snap.Maps {
				got.objects = append(got.objects, o.GetName()+"@"+o.GetResourceVersion())
			}
			for _, i := range snap.Invalid {
				got.invalid = append(got.invalid, i.Object.GetName())
			}
			for _, d := range snap.Deltas {
				if changed {
					got.deltas = append(got.deltas, d.DeltaType.String()+" "+d.Name)
				}
			}
			return got
		},
	}
}

// expect compares what is shown.
func (r *reader) expect(want ...string) (got shown) {
	r.t.Helper()
	synctest.Wait()
	got = r.take()
	if !slices.Equal(got.objects, want) {
		r.t.Fatalf("%v is shown, and not %v; the status: %+v", got.objects, want, r.query())
	}
	return got
}

// says fails unless the error in the status has the text, and not too much of it.
func (r *reader) says(want string) {
	r.t.Helper()
	got := r.query().Error
	if want == "" && got != "" || !strings.Contains(got, want) {
		r.t.Fatalf("the status says %q, and not %q", got, want)
	}
	if len(got) > 3000 {
		r.t.Fatalf("the status has %d bytes of an error", len(got))
	}
}

// heals waits until all is well, for as long as the longest pause takes.
func (r *reader) heals(want ...string) {
	r.t.Helper()
	time.Sleep(5 * time.Minute)
	r.expect(want...)
	r.says("")
}
