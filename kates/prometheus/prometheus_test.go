package prometheus

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

func TestEveryMetricIsThereAndTheLinterFindsNothing(t *testing.T) {
	m, observers, _ := fed(map[string]func() *inspect.Report{"eu": whole, "": whole})
	happen(t, observers["eu"])
	m.Derived(graphOf(t, "rows"))
	found := map[string]bool{}
	for _, family := range gathered(t, m) {
		found[family.GetName()] = true
	}
	for _, one := range all {
		assert.True(t, found[one.name], one.name)
	}
	assert.Len(t, found, len(all))
	r := prom.NewRegistry()
	r.MustRegister(m)
	problems, err := testutil.GatherAndLint(r)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestAReportBecomesSeries(t *testing.T) {
	m, observers, _ := fed(map[string]func() *inspect.Report{"eu": whole})
	happen(t, observers["eu"])
	for _, c := range []struct {
		of   *metric
		want map[string]float64
	}{
		{clients, map[string]float64{"eu": 1}},
		{watches, map[string]float64{"eu,hosts,snapshots": 1, "eu,tenants,partitions": 1}},
		{watchesIncomplete, map[string]float64{"eu,hosts": 0, "eu,tenants": 1}},
		{watchIncompleteAge, map[string]float64{"eu,hosts": 0, "eu,tenants": 30}},
		{watchFirst, map[string]float64{"eu,hosts": 3}},
		{watchSignals, map[string]float64{"eu,hosts": 7, "eu,tenants": 0}},
		{watchUpdates, map[string]float64{"eu,hosts": 6, "eu,tenants": 0}},
		{watchSnapshots, map[string]float64{"eu,hosts": 5, "eu,tenants": 0}},
		{watchChanges, map[string]float64{"eu,hosts": 50, "eu,tenants": 0}},
		{updateDuration, map[string]float64{"eu,hosts": 0.001}},
		{updateChanges, map[string]float64{"eu,hosts": 12}},
		{queryObjects, map[string]float64{"eu,hosts,Services": 10, "eu,hosts,Hosts": 10, "eu,tenants,Services": 10}},
		{queryBytes, map[string]float64{"eu,hosts,Services": 1000, "eu,hosts,Hosts": 1000, "eu,tenants,Services": 1000}},
		{queryInvalid, map[string]float64{"eu,hosts,Services": 1, "eu,hosts,Hosts": 1, "eu,tenants,Services": 1}},
		{queryAbsent, map[string]float64{"eu,hosts,Services": 0, "eu,hosts,Hosts": 1, "eu,tenants,Services": 0}},
		{queryEvents, map[string]float64{"eu,hosts,Services": 40, "eu,hosts,Hosts": 40, "eu,tenants,Services": 40}},
		{queryCoalesced, map[string]float64{"eu,hosts,Services": 30, "eu,hosts,Hosts": 30, "eu,tenants,Services": 30}},
		{queryUntaken, map[string]float64{"eu,hosts,Services": 3, "eu,hosts,Hosts": 3, "eu,tenants,Services": 3}},
		{queryUntakenAge, map[string]float64{"eu,hosts,Services": 4, "eu,hosts,Hosts": 4, "eu,tenants,Services": 4}},
		{queryStaleness, map[string]float64{"eu,hosts,Services": 20, "eu,hosts,Hosts": 20, "eu,tenants,Services": 20}},
		{queryLag, map[string]float64{"eu,hosts,Services": 2, "eu,hosts,Hosts": 2, "eu,tenants,Services": 2}},
		{streamListeners, map[string]float64{"eu,services.v1,metadata": 4, "eu,hosts.v1.x.io,metadata": 2}},
		{streamObjects, map[string]float64{"eu,services.v1,metadata": 20, "eu,hosts.v1.x.io,metadata": 10}},
		{streamBytes, map[string]float64{"eu,services.v1,metadata": 2000, "eu,hosts.v1.x.io,metadata": 1000}},
		{streamListing, map[string]float64{"eu,services.v1,metadata": 10, "eu,hosts.v1.x.io,metadata": 5}},
		{streamStaleness, map[string]float64{"eu,services.v1,metadata": 11, "eu,hosts.v1.x.io,metadata": 12}},
		{streamEvents, map[string]float64{"eu,services.v1,metadata": 200, "eu,hosts.v1.x.io,metadata": 100}},
		{streamBookmarks, map[string]float64{"eu,services.v1,metadata": 18, "eu,hosts.v1.x.io,metadata": 9}},
		{streamUndecodable, map[string]float64{"eu,services.v1,metadata": 2, "eu,hosts.v1.x.io,metadata": 1}},
		{writesPending, map[string]float64{"eu,services.v1": 4, "eu,hosts.v1.x.io": 2}},
		{writesPendingAge, map[string]float64{"eu,services.v1": 6, "eu,hosts.v1.x.io": 6}},
		{writesUnsettled, map[string]float64{"eu,services.v1": 2, "eu,hosts.v1.x.io": 1}},
		{requests, map[string]float64{"eu,get,deployments.v1.apps,200": 1}},
		{requestDuration, map[string]float64{"eu,get,deployments.v1.apps": 0.03}},
		{partitions, map[string]float64{
			"eu,tenants,idle": 90, "eu,tenants,waiting": 1, "eu,tenants,ready": 2, "eu,tenants,running": 3, "eu,tenants,resting": 4,
		}},
		{partitionQueueAge, map[string]float64{"eu,tenants": 11}},
		{reconciles, map[string]float64{
			"eu,tenants,success": 0, "eu,tenants,error": 1, "eu,tenants,requeue_after": 0, "eu,tenants,terminal": 0, "eu,tenants,cut": 0,
		}},
		{reconcileRetries, map[string]float64{"eu,tenants": 1}},
		{reconcileDuration, map[string]float64{"eu,tenants": 2}},
		{reconcileQueue, map[string]float64{"eu,tenants": 1}},
		{reconcileWorkers, map[string]float64{"eu,tenants": 4}},
		{reconcilesRunning, map[string]float64{"eu,tenants": 2}},
		{reconcileLongest, map[string]float64{"eu,tenants": 8}},
		{reconcileFailing, map[string]float64{"eu,tenants": 2}},
		{reconcileAttempts, map[string]float64{"eu,tenants": 9}},
		{leaderElections, map[string]float64{"eu": 2}},
		{leaderLeading, map[string]float64{"eu": 1}},
		{leaderErrors, map[string]float64{"eu": 1}},
		{shardGroups, map[string]float64{"eu": 2}},
		{shardMemberships, map[string]float64{"eu": 1}},
		{shardMembers, map[string]float64{"eu": 3}},
		{shardErrors, map[string]float64{"eu": 1}},
	} {
		assert.Equal(t, c.want, values(t, m, c.of), c.of.name)
	}
	assert.Equal(t, 1.0, values(t, m, queries)["eu,hosts,Hosts,forbidden"])
	assert.Equal(t, 0.0, values(t, m, queries)["eu,hosts,Hosts,synced"])
	assert.Equal(t, 2.0, values(t, m, streams)["eu,services.v1,metadata,synced"])
	assert.Equal(t, 4.0, values(t, m, streamLists)["eu,services.v1,metadata,expired"])
	assert.Contains(t, values(t, m, streamLists), "eu,services.v1,metadata,history", "a reason that never occurred")
	assert.Equal(t, 6.0, values(t, m, streamWatches)["eu,services.v1,metadata,listed"])
}

// reporting is a client whose report a test sets.
type reporting struct{ inspect.Report }

func (r *reporting) now() *inspect.Report { return &r.Report }

func watchOf(id int64, name string, signals uint64) *inspect.Watch {
	return &inspect.Watch{ID: id, Name: name, Signals: signals}
}

func TestACounterDoesNotFallWhenOneOfSeveralWatchesOfANameHasEnded(t *testing.T) {
	one, two := &reporting{}, &reporting{}
	m := New()
	_, _ = m.add("", one.now)
	_, closed := m.add("", two.now)
	signals := func() map[string]float64 { return values(t, m, watchSignals) }
	one.Watches = []*inspect.Watch{watchOf(1, "a", 10), watchOf(2, "a", 5)}
	two.Watches = []*inspect.Watch{watchOf(3, "a", 100)}
	assert.Equal(t, map[string]float64{",a": 115}, signals())
	one.Watches = []*inspect.Watch{watchOf(1, "a", 11)}
	assert.Equal(t, map[string]float64{",a": 116}, signals(), "the second watch has ended")
	one.Watches = append(one.Watches, watchOf(4, "a", 3))
	assert.Equal(t, map[string]float64{",a": 119}, signals(), "another one has begun")
	closed()
	assert.Equal(t, map[string]float64{",a": 119}, signals(), "a client of the same cluster is closed")
	one.Watches = nil
	assert.Empty(t, signals(), "no watch has the name")
	one.Watches = []*inspect.Watch{watchOf(5, "a", 2)}
	assert.Equal(t, map[string]float64{",a": 2}, signals(), "as after a restart")
}

func TestACounterGoesOnWhenAQueryIsReplaced(t *testing.T) {
	r := &reporting{}
	m := New()
	_, _ = m.add("", r.now)
	for _, c := range []struct {
		events uint64
		want   float64
	}{{10, 10}, {12, 12}, {3, 15}, {4, 16}} {
		w := watchOf(1, "a", 0)
		w.Queries = []*inspect.Query{{QueryStatus: kates.QueryStatus{Name: "q"}, Events: c.events}}
		r.Watches = []*inspect.Watch{w}
		assert.Equal(t, map[string]float64{",a,q": c.want}, values(t, m, queryEvents))
	}
}

func TestAClusterWhoseClientsAreClosedLeavesNothing(t *testing.T) {
	m, observers, remove := fed(map[string]func() *inspect.Report{"eu": whole, "us": whole})
	happen(t, observers["eu"])
	happen(t, observers["us"])
	_, second := m.add("us", whole)
	remove["us"]()
	assert.Equal(t, map[string]float64{"eu": 1, "us": 1}, values(t, m, clients), "it has another client")
	second()
	happen(t, observers["us"]) // the last answers come late
	for _, family := range gathered(t, m) {
		for _, one := range family.GetMetric() {
			assert.Equal(t, "eu", one.GetLabel()[0].GetValue(), family.GetName())
		}
	}
	remove["eu"]()
	assert.Empty(t, gathered(t, m))
	_, remove["us"] = m.add("us", whole)
	assert.Empty(t, values(t, m, requests), "it begins anew")
	remove["us"]()
	assert.Empty(t, m.clusters)
}

func TestSomeScrapeAndSomeReportAtTheSameTime(t *testing.T) {
	r := prom.NewPedanticRegistry()
	m := New()
	require.NoError(t, r.Register(m))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 50 {
				o, remove := m.add(fmt.Sprint(j%3), whole)
				happen(t, o)
				if i > 0 {
					remove()
				}
			}
		})
		all.Go(func() {
			for range 20 {
				_, err := r.Gather()
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	assert.Equal(t, map[string]float64{"0": 17, "1": 17, "2": 16}, values(t, m, clients))
}

func TestTheMetricsThemselvesAreNoClient(t *testing.T) {
	m := New()
	happenNothing(t, m)
	assert.Empty(t, gathered(t, m))
}

func happenNothing(t testing.TB, m *Metrics) {
	ctx, answered := m.Request(t.Context(), kates.RequestInfo{Verb: "get"})
	assert.Nil(t, answered)
	_, returned := m.Call(ctx, kates.CallInfo{})
	assert.Nil(t, returned)
	m.Updated(kates.UpdateInfo{})
}

func TestNothingOfAReportButItsNamesGetsIntoAMetric(t *testing.T) {
	m, observers, _ := fed(map[string]func() *inspect.Report{"eu": whole})
	happen(t, observers["eu"])
	m.Derived(graphOf(t, "rows"))
	for _, family := range gathered(t, m) {
		assert.False(t, strings.Contains(family.String(), "secret"), family.String())
	}
}
