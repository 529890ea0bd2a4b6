package prometheus

import (
	"strings"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func ago(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }

// whole is a report in which everything has a value.
func whole() *inspect.Report {
	return &inspect.Report{
		At: now,
		Watches: []*inspect.Watch{
			{
				ID: 1, Name: "hosts", Kind: inspect.OfSnapshots, Opened: ago(100), Completed: ago(99),
				Signals: 7, Updates: 6, Snapshots: 5, Changes: 50,
				Queries: []*inspect.Query{wholeQuery("Services", kates.StateSynced), wholeQuery("Hosts", kates.StateForbidden)},
			},
			{
				ID: 2, Name: "tenants", Kind: inspect.OfPartitions, Opened: ago(30), Incomplete: "Services",
				Queries: []*inspect.Query{wholeQuery("Services", kates.StateListing)},
				Keys:    &inspect.Keys{All: 100, Waiting: 1, Ready: 2, Running: 3, Resting: 4, ReadySince: ago(11)},
			},
		},
		Streams: []*inspect.Stream{wholeStream(10, "services.v1"), wholeStream(11, "services.v1"), wholeStream(12, "hosts.v1.x.io")},
		Loops: []*inspect.Loop{{
			Name: "tenants", Workers: 4, Running: []inspect.Call{{Key: "a", Since: ago(3)}, {Key: "b", Since: ago(8)}},
			Failing: []inspect.Failure{{Key: "c", Attempt: 2, Error: "x"}, {Key: "d", Attempt: 9, Error: "x"}}, FailingAll: 2,
		}},
		Leaders: []kates.LeaderStatus{{Lease: "n/a", Leading: true}, {Lease: "n/b", Error: "refused"}},
		Shards:  []kates.ShardStatus{{Group: "n/c", Member: true, Members: 3}, {Group: "n/d", Error: "refused"}},
	}
}

func wholeQuery(name string, state kates.State) *inspect.Query {
	return &inspect.Query{
		QueryStatus: kates.QueryStatus{
			Name: name, State: state, Absent: state == kates.StateForbidden, Heard: ago(20), Lag: 2 * time.Second,
			Objects: 10, Invalid: 1,
		},
		Bytes: 1000, Events: 40, Coalesced: 30, Untaken: 3, UntakenSince: ago(4),
	}
}

func wholeStream(id int64, resource string) *inspect.Stream {
	return &inspect.Stream{
		ID: id, Resource: resource, Namespace: "secret-namespace", Labels: "secret=label", Form: "metadata",
		State: kates.StateSynced, Error: "secret error", Heard: ago(int(id)), Objects: 10, Bytes: 1000, Listing: 5,
		Listeners: 2, Events: 100, Bookmarks: 9, Undecodable: 1,
		Lists:   map[inspect.ListReason]uint64{inspect.ListFirst: 1, inspect.ListExpired: 2},
		Watches: map[inspect.WatchReason]uint64{inspect.WatchListed: 3},
		Pending: 2, PendingSince: ago(6), Unsettled: 1,
		Writes: []inspect.OwnWrite{{Namespace: "secret-namespace", Name: "secret-name"}},
	}
}

// happen tells an observer of something of each kind.
func happen(t testing.TB, o kates.Observer) {
	ctx, answered := o.Request(t.Context(), kates.RequestInfo{
		Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "secret-namespace", Name: "secret-name",
	})
	answered(kates.RequestResult{Code: 200, Duration: 30 * time.Millisecond})
	_, returned := o.Call(ctx, kates.CallInfo{Loop: "tenants", Key: "secret-key", ID: "x", Attempt: 2, Queued: time.Second})
	returned(kates.CallResult{Outcome: kates.CallFailed, Duration: 2 * time.Second})
	o.Updated(kates.UpdateInfo{
		Watch: "hosts", ID: 1, Key: "secret-key", First: true, Opened: 3 * time.Second, Duration: time.Millisecond, Changes: 12,
	})
}

// fed returns metrics of clients whose reports are those, by the name of the cluster.
func fed(reports map[string]func() *inspect.Report) (m *Metrics, observers map[string]kates.Observer, remove map[string]func()) {
	m, observers, remove = New(), map[string]kates.Observer{}, map[string]func(){}
	for name, report := range reports {
		observers[name], remove[name] = m.add(name, report)
	}
	return m, observers, remove
}

// gathered returns all metrics, as a pedantic registry does: it checks that they are as described.
func gathered(t testing.TB, m *Metrics) []*dto.MetricFamily {
	t.Helper()
	r := prom.NewPedanticRegistry()
	require.NoError(t, r.Register(m))
	all, err := r.Gather()
	require.NoError(t, err)
	return all
}

// values returns the series of a metric, by their labels: "cluster,a,b" in the order of the names.
func values(t testing.TB, m *Metrics, of *metric) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, family := range gathered(t, m) {
		for _, one := range family.GetMetric() {
			if family.GetName() != of.name {
				continue
			}
			labels := map[string]string{}
			for _, l := range one.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			var parts []string
			for _, name := range of.allLabels() {
				parts = append(parts, labels[name])
			}
			all[strings.Join(parts, ",")] = one.GetGauge().GetValue() + one.GetCounter().GetValue() +
				one.GetHistogram().GetSampleSum()
		}
	}
	return all
}
