package page

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabricated is a client that a test has made up.
type fabricated struct {
	made *inspect.Report
	keys []inspect.ObjectKey
	has  map[inspect.ObjectKey]inspect.Object
	bad  []inspect.InvalidObject
	sick error
	asks int // for an object
}

func (f *fabricated) report() *inspect.Report {
	r := *f.made
	r.Watches, r.Streams, r.Loops = nil, nil, nil
	for _, w := range f.made.Watches {
		of := *w
		of.Queries = nil
		for _, q := range w.Queries {
			query := *q
			of.Queries = append(of.Queries, &query)
		}
		r.Watches = append(r.Watches, &of)
	}
	for _, s := range f.made.Streams {
		of := *s
		r.Streams = append(r.Streams, &of)
	}
	for _, l := range f.made.Loops {
		of := *l
		of.Failing = slices.Clone(l.Failing)
		r.Loops = append(r.Loops, &of)
	}
	r.Leaders, r.Shards = slices.Clone(r.Leaders), slices.Clone(r.Shards)
	return &r
}

func (f *fabricated) unhealthy() error { return f.sick }

func (f *fabricated) objects(*inspect.Watch, string) []inspect.ObjectKey { return f.keys }

func (f *fabricated) object(_ *inspect.Watch, _ string, key inspect.ObjectKey) (inspect.Object, bool) {
	f.asks++
	return f.has[key], true
}

func (f *fabricated) invalid(*inspect.Watch, string, int) []inspect.InvalidObject { return f.bad }

// client has a page about a client that a test has made up.
func client(name string, f *fabricated) Option {
	return func(p *Page) { p.join(name, f) }
}

// serve serves a page as a program does.
func serve(t *testing.T, options ...Option) (p *Page, url string) {
	t.Helper()
	p = New(options...)
	t.Cleanup(p.Close)
	mux := http.NewServeMux()
	mux.Handle("/debug/kates/", p)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return p, s.URL + "/debug/kates/"
}

// get returns an answer.
func get(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := (&http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}).Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer, string(body)
}

// ok returns the body of an answer that is none of an error.
func ok(t *testing.T, url string, header ...string) string {
	t.Helper()
	answer, body := get(t, url, header...)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", url, body)
	return strings.ReplaceAll(body, "<wbr>", "") // names are whole
}

// full is a client about which there is something on each page.
func full() *fabricated {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	query := func(name, kind string, s kates.State, id int64) *inspect.Query {
		return &inspect.Query{
			QueryStatus: kates.QueryStatus{Name: name, Kind: kind, State: s, Since: ago(time.Hour), Heard: ago(time.Second), Objects: 3},
			Streams:     []int64{id}, Bytes: 12345, Events: 100, Coalesced: 90,
		}
	}
	forbidden := query("Hosts", "hosts.getambassador.io", kates.StateForbidden, 3)
	forbidden.Error = `hosts.getambassador.io is forbidden: User "x" cannot list resource "hosts"`
	gone := query("Mappings", "mappings.getambassador.io", kates.StateMissing, 4)
	gone.Absent, gone.Optional = true, true
	retrying := query("Ingresses", "ingresses", kates.StateRetrying, 5)
	retrying.Error = "the server is overloaded"
	stuck := query("Services", "services", kates.StateSynced, 1)
	stuck.Untaken, stuck.UntakenSince, stuck.Invalid = 7, ago(time.Minute), 2
	return &fabricated{
		made: &inspect.Report{
			At: now, Server: "https://10.0.0.1:6443",
			Watches: []*inspect.Watch{
				{ID: 1, Name: "app.Snapshot", Kind: inspect.OfSnapshots, Opened: ago(time.Hour), Incomplete: "hosts are forbidden",
					Queries: []*inspect.Query{forbidden, gone, retrying}, Signals: 4},
				{ID: 2, Name: "app.Other", Kind: inspect.OfSnapshots, Opened: ago(time.Hour), Completed: ago(time.Hour),
					Queries: []*inspect.Query{stuck, query("Secrets", "secrets", kates.StateSynced, 2)}, Signals: 4, Updates: 3, Snapshots: 2, Changes: 9},
				{ID: 3, Name: "deployer", Kind: inspect.OfPartitions, Opened: ago(time.Hour), Completed: ago(time.Hour),
					Queries: []*inspect.Query{query("Apps", "apps.example.com", kates.StateSynced, 6)},
					Keys: &inspect.Keys{All: 10, Ready: 2, Running: 1, Resting: 1, ReadySince: ago(time.Minute), Some: []inspect.Key{
						{Key: "prod/a", State: inspect.KeyRunning, Since: ago(2 * time.Minute)},
						{Key: "prod/b", State: inspect.KeyResting, Failures: 3, Until: now.Add(time.Minute)},
					}}},
			},
			Streams: []*inspect.Stream{
				{ID: 1, Resource: "services.v1", State: kates.StateSynced, Since: ago(time.Hour), Heard: ago(3 * time.Minute), Objects: 3,
					Listeners: 1, Events: 100, Lists: map[inspect.ListReason]uint64{inspect.ListFirst: 1},
					Watches: map[inspect.WatchReason]uint64{inspect.WatchListed: 1, inspect.WatchIdle: 2}},
				{ID: 2, Resource: "secrets.v1", State: kates.StateSynced, Since: ago(time.Hour), Heard: ago(time.Second), Listeners: 1},
				{ID: 6, Resource: "apps.v1.example.com", State: kates.StateSynced, Since: ago(time.Hour), Heard: ago(time.Second), Listeners: 1,
					Pending: 1, Unsettled: 1, PendingSince: ago(time.Minute), Version: "12",
					Writes: []inspect.OwnWrite{{Namespace: "prod", Name: "a", Since: ago(time.Minute), Version: "13"}}},
			},
			Loops: []*inspect.Loop{{
				Name: "deployer", Workers: 2, Running: []inspect.Call{{Key: "prod/a", ID: "c1", Since: ago(2 * time.Minute), Attempt: 1}},
				Returned: map[kates.CallOutcome]uint64{kates.CallSucceeded: 5, kates.CallFailed: 3},
				Failing:  []inspect.Failure{{Key: "prod/b", Attempt: 3, Error: "the image does not exist", At: ago(time.Second), ID: "c2"}}, FailingAll: 1,
			}},
			Leaders: []kates.LeaderStatus{{Lease: "ns/lease", Identity: "me", Error: "leases is forbidden", Since: ago(time.Hour)}},
			Shards:  []kates.ShardStatus{{Group: "ns/group", Identity: "me", Member: true, Members: 3, Since: ago(time.Hour)}},
		},
		keys: []inspect.ObjectKey{{Namespace: "prod", Name: "a"}, {Namespace: "prod", Name: "b"}, {Namespace: "test", Name: "a"}},
		has:  map[inspect.ObjectKey]inspect.Object{},
		bad:  []inspect.InvalidObject{{ObjectKey: inspect.ObjectKey{Namespace: "prod", Name: "bad"}, Why: "spec.replicas: want int32"}},
	}
}

// addresses are the pages, as they are asked for.
func addresses() (all []string) {
	for _, of := range pages {
		all = append(all, of.name)
	}
	return append(all, "?span=hour", "streams?span=hour", "queries?client=one", "objects?query=Services&watch=2",
		"objects?query=Services&watch=2&invalid=1", "objects?query=Services&namespace=prod&name=a",
		"object?query=Services&watch=2&namespace=prod&name=a", "?client=nobody", "derived?graph=graph&node=rows&key=prod%2Fa",
		"derived?graph=graph&node=broken&key=prod%2Fa", "derived?graph=graph&node=all", "derived?graph=none&node=none")
}

// empty is a client that has done nothing yet.
func empty() *fabricated { return &fabricated{made: &inspect.Report{At: time.Now()}} }
