package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// counted are kinds that the server itself does not use.
var counted = []schema.GroupVersionResource{{Version: "v1", Resource: "podtemplates"}, hosts}

// typedCounted and untypedCounted ask for the same objects in other types.
type typedCounted struct {
	Templates []*corev1.PodTemplate
	Hosts     []hostType `kates:"hosts"`
}

type untypedCounted struct {
	Templates []*kates.Unstructured `kates:"podtemplates"`
	Hosts     []map[string]any      `kates:"hosts.getambassador.io"`
}

// server counts which requests a server has served for the counted kinds, and which ones a client
// has made.
type server struct {
	t      *testing.T
	faults *katestest.Faults
	client *kates.Client
	before map[string]int
}

// newServer makes the only client that asks for these kinds: its tests run alone.
func newServer(t *testing.T, options ...kates.Option) *server {
	s := &server{t: t, faults: katestest.NewFaults(t, 0)}
	config := rest.CopyConfig(testCluster.Config)
	config.Wrap(s.faults.Wrap)
	// a server that has just started, or has a new kind, answers 429
	warm, err := tapped(kates.NewClientFromRESTConfig(testCluster.Config))
	require.NoError(t, err)
	for _, kind := range counted {
		_, err := kates.NewLister[*kates.Unstructured](t.Context(), warm, kates.Query{Kind: kind.Resource})
		require.NoError(t, err)
	}
	warm.Close()
	poll(t, func() bool { return s.open() == 0 }, "nobody else watches")
	s.client, err = tapped(kates.NewClientFromRESTConfig(config, append([]kates.Option{kates.WithInterval(0)}, options...)...))
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	s.before = s.served()
	return s
}

// served returns how many requests have been served completely, by verb and resource.
func (s *server) served() map[string]int {
	all := map[string]int{}
	for _, m := range metric(s.t, testCluster.Config, "apiserver_request_total") {
		for _, kind := range counted {
			if m.labels["resource"] == kind.Resource && m.labels["group"] == kind.Group {
				all[m.labels["verb"]+" "+kind.Resource] += m.value
			}
		}
	}
	return all
}

// since returns what has been served since the start.
func (s *server) since() map[string]int {
	all := s.served()
	for what, n := range s.before {
		if all[what] -= n; all[what] == 0 {
			delete(all, what)
		}
	}
	return all
}

// open returns how many watches are open.
func (s *server) open() (n int) {
	watches := watchesOf(s.t, testCluster.Config)
	for _, kind := range counted {
		n += watches[kind.Resource+"."+kind.Group]
	}
	return n
}

// asked returns how many requests the client has made in all.
func (s *server) asked() int { return len(s.faults.Requests(katestest.Match{})) }

// eight opens eight accumulators, half of them typed, from clients with different settings, and
// readers. It waits until all are complete.
func (s *server) eight(ns string) (closers []func()) {
	s.t.Helper()
	queries := []kates.Query{{Name: "Templates", Namespace: ns}, {Name: "Hosts", Namespace: ns}}
	for i := range 4 {
		c := s.client.With(kates.WithInterval(time.Duration(i) * time.Second))
		a, err := kates.Watch[typedCounted](s.t.Context(), c, queries...)
		require.NoError(s.t, err)
		<-a.Changed()
		b, err := kates.Watch[untypedCounted](s.t.Context(), c, queries...)
		require.NoError(s.t, err)
		<-b.Changed()
		closers = append(closers, a.Close, b.Close)
	}
	templates, err := kates.NewLister[*corev1.PodTemplate](s.t.Context(), s.client, kates.Query{Namespace: ns})
	require.NoError(s.t, err)
	custom, err := kates.NewLister[*kates.Unstructured](s.t.Context(), s.client, kates.Query{Kind: "Host", Namespace: ns})
	require.NoError(s.t, err)
	_, err = templates.Get(ns, "x")
	require.NoError(s.t, err)
	return append(closers, templates.Close, custom.Close)
}

// filled returns a namespace with some objects.
func filled(t *testing.T) string {
	ns := namespace(t)
	_, err := foreign(t).Resource(counted[0]).Namespace(ns).Create(t.Context(), &kates.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"name": "x"},
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return ns
}

// The test runs alone, since the server counts the requests of all clients.
func TestG11EqualQueriesAreOneListAndOneWatchHoweverManyAsk(t *testing.T) {
	for form, test := range map[string]struct {
		options []kates.Option
		forms   int // of each kind: whole objects, and Go types or some fields
		lists   []string
	}{
		"paged":          {[]kates.Option{kates.Tuning{Lists: kates.PagedLists}}, 2, []string{"LIST podtemplates", "LIST podtemplates", "LIST hosts", "LIST hosts"}},
		"by default":     {nil, 2, []string{"LIST podtemplates", "LIST hosts"}},
		"untyped, paged": {[]kates.Option{kates.Tuning{UntypedStreams: true}, kates.Tuning{Lists: kates.PagedLists}}, 1, []string{"LIST podtemplates", "LIST hosts"}},
	} {
		t.Run(form, func(t *testing.T) {
			ns := filled(t)
			s := newServer(t, test.options...)
			closers := s.eight(ns)
			assert.Len(t, s.client.Status().Queries, 18)
			watches := 2 * test.forms
			poll(t, func() bool { return s.open() == watches }, "there is one watch for each kind and form", func() any { return s.open() })
			asked := s.asked()
			late := s.eight(ns)
			assert.Equal(t, asked, s.asked(), "who comes later asks nobody")
			assert.Equal(t, watches, s.open())
			assert.Len(t, s.faults.Open(katestest.Match{Verb: "watch"}), watches)
			for _, end := range append(closers, late...)[2:] {
				end()
			}
			assert.Equal(t, watches, s.open(), "one of each form is left")
			closers[0]()
			closers[1]()
			s.ended()
			want := map[string]int{"WATCH podtemplates": test.forms, "WATCH hosts": test.forms}
			for _, list := range test.lists {
				want[list]++
			}
			s.comesTo(want)
			for _, kind := range counted {
				requests := want["WATCH "+kind.Resource] + want["LIST "+kind.Resource]
				assert.Len(t, s.faults.Requests(katestest.Match{Resource: kind.Resource}), requests, fmt.Sprint(kind))
			}
		})
	}
}

// ended waits until the client has no open watch.
func (s *server) ended() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	assert.NoError(s.t, s.faults.Wait(ctx, func() bool { return len(s.faults.Open(katestest.Match{Verb: "watch"})) == 0 }))
}

// comesTo waits until the server has no open watch, and has served exactly this.
func (s *server) comesTo(want map[string]int) {
	s.t.Helper()
	poll(s.t, func() bool { return s.open() == 0 && assert.ObjectsAreEqual(want, s.since()) }, fmt.Sprint("no watch is open, and what was served is ", want),
		func() any { return s.open() }, func() any { return s.since() })
}

// The test runs alone, too.
func TestG11AWatchOutlivesItsLastUserByTheGraceAndTheClientEndsAll(t *testing.T) {
	const grace = 2 * time.Second
	ns := filled(t)
	s := newServer(t, kates.Tuning{Linger: grace})
	leave := func(closers []func()) {
		for _, end := range closers {
			end()
		}
	}
	closers := s.eight(ns)
	left := time.Now()
	leave(closers)
	s.ended()
	assert.GreaterOrEqual(t, time.Since(left), grace)
	// Of each kind one form is listed, and the other one streamed.
	want := map[string]int{"LIST podtemplates": 1, "LIST hosts": 1, "WATCH podtemplates": 2, "WATCH hosts": 2}
	s.comesTo(want)
	s.client.Close()

	s = newServer(t, kates.Tuning{Linger: time.Hour})
	closers = s.eight(ns)
	poll(t, func() bool { return s.open() == 4 }, "four watches are open")
	asked := s.asked()
	leave(closers)
	s.eight(ns)
	assert.Equal(t, asked, s.asked(), "within the grace it goes on")
	s.client.Close()
	assert.Empty(t, s.faults.Open(katestest.Match{Verb: "watch"}), "whoever uses them")
	s.comesTo(want)
	_, err := s.client.Watch(t.Context(), kates.Query{Name: "Hosts", Kind: "hosts"})
	assert.ErrorIs(t, err, kates.ErrClosed)
}
