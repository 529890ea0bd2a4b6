package loops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestOwnStatusWritesChangeNoConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{}
		g, _ := w.start(n, nil)
		settle()
		assert.True(t, g.Serving())
		status := w.ingress().Status.LoadBalancer.Ingress
		require.Len(t, status, 1)
		assert.Equal(t, "192.0.2.1", status[0].IP)
		changes, last := n.changes()
		assert.Equal(t, 1, changes)
		assert.Equal(t, []string{"shop.example.com"}, hosts(last))
		assert.Equal(t, 1, n.called(), "the status does not even wake the loop")
		version := w.ingress().ResourceVersion
		settle()
		assert.Equal(t, version, w.ingress().ResourceVersion, "nor is it written twice")
	})
}

// refuseHosts refuses servers whose host begins with "bad".
func refuseHosts(c *nginx.Config) (all []nginx.Refusal) {
	for _, s := range c.Servers {
		if strings.HasPrefix(s.Host, "bad") {
			all = append(all, nginx.Refusal{Object: s.Locations[0].Rules[0].Source, Message: "no such host: " + s.Host})
		}
	}
	return all
}

func TestARefusedObjectIsServedAsItWasAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{refuses: refuseHosts}
		g, _ := w.start(n, nil)
		settle()
		w.put(ingressOf("web", "bad") + "---" + ingressOf("other", "other"))
		settle()
		_, last := n.changes()
		assert.Equal(t, []string{"other.example.com", "shop.example.com"}, hosts(last), "others go on")
		assert.Contains(t, w.problems(g), "no such host: bad.example.com")
		calls := n.called()
		settle()
		assert.Equal(t, calls, n.called(), "it comes to rest")

		w.put(ingressOf("web", "well"))
		settle()
		_, last = n.changes()
		assert.Equal(t, []string{"other.example.com", "well.example.com"}, hosts(last))
		assert.Empty(t, w.problems(g))
		assert.Empty(t, g.refusals.refused)
	})
}

// A status is a new version of the object, and no other route: it is refused as before.
func TestTheReportOfARefusalDoesNotUndoIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crds, err := os.ReadFile("../demo/crds.yaml")
		require.NoError(t, err)
		w, n := newWorld(t, katestest.WithManifests(string(crds))), &fakeNginx{refuses: refuseHosts}
		w.put(route)
		g, _ := w.start(n, nil)
		settle()
		changes, last := n.changes()
		assert.Equal(t, 1, changes)
		assert.Contains(t, hosts(last), "shop.example.com")
		assert.NotContains(t, hosts(last), "bad.example.com")
		parents := w.parents()
		require.Len(t, parents, 1)
		assert.Contains(t, fmt.Sprint(parents[0].Conditions), "no such host: bad.example.com")
		calls := n.called()
		settle()
		assert.Equal(t, parents, w.parents())
		w.put(ingressOf("web", "other")) // both loops look at everything again
		settle()
		assert.Equal(t, parents, w.parents())
		assert.Equal(t, calls+1, n.called(), "it is not tried again")
		assert.Contains(t, w.problems(g), "no such host: bad.example.com")

		n.take(3 * time.Second) // the report is quicker
		w.put(strings.ReplaceAll(route, "bad.example.com", "bad.example.org"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, parents, w.parents(), "whether nginx takes it now is not known yet")
		settle()
		assert.Contains(t, fmt.Sprint(w.parents()[0].Conditions), "no such host: bad.example.org")
	})
}

// A report that runs while nginx looks at the fix has nothing to say of the object yet. The end of
// its problem is told after that.
func TestTheEndOfARefusalIsToldHoweverLongNginxTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{refuses: refuseHosts}
		_, _ = w.start(n, nil)
		settle()
		w.put(ingressOf("web", "bad"))
		settle()
		assert.Equal(t, []string{"Refused"}, w.events())
		n.take(5 * time.Second)
		w.put(ingressOf("web", "well"))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"Refused"}, w.events(), "nginx has not taken it yet")
		settle()
		assert.Equal(t, []string{"Refused", "Resolved"}, w.events())
	})
}

// events are the reasons of all events.
func (w *world) events() (reasons []string) {
	w.t.Helper()
	var all []*eventsv1.Event
	require.NoError(w.t, w.admin.List(w.t.Context(), kates.Query{Kind: "events.events.k8s.io"}, &all))
	for _, e := range all {
		reasons = append(reasons, e.Reason)
	}
	slices.Sort(reasons)
	return reasons
}

func TestALastGoodVersionThatIsRefusedLaterIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{refuses: refuseHosts}
		_, _ = w.start(n, nil)
		settle()
		w.put(ingressOf("web", "bad") + "---" + ingressOf("other", "other"))
		settle()
		_, last := n.changes()
		assert.Equal(t, []string{"other.example.com", "shop.example.com"}, hosts(last))
		n.refuse(func(c *nginx.Config) (all []nginx.Refusal) {
			for _, s := range c.Servers {
				if s.Host == "shop.example.com" {
					all = append(all, nginx.Refusal{Object: s.Locations[0].Rules[0].Source, Message: "not any more"})
				}
			}
			return all
		})
		w.put(ingressOf("third", "third"))
		settle()
		_, last = n.changes()
		assert.Equal(t, []string{"other.example.com", "third.example.com"}, hosts(last))
	})
}

func TestARefusalOfNobodyIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{refuses: func(*nginx.Config) []nginx.Refusal {
			return []nginx.Refusal{{Object: nginx.Object{Kind: "Ingress", Namespace: "shop", Name: "gone", UID: "?"}, Message: "no"}}
		}}
		g, stop := w.start(n, nil)
		settle()
		stop()
		assert.False(t, g.Serving())
		assert.Less(t, n.called(), 20, "it is tried again with pauses")
	})
}

func TestAnObjectThatIsRefusedAtTheStartIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{refuses: refuseHosts}
		w.put(ingressOf("other", "bad"))
		g, _ := w.start(n, nil)
		settle()
		_, last := n.changes()
		assert.Equal(t, []string{"shop.example.com"}, hosts(last))
		assert.Contains(t, w.problems(g), "no such host: bad.example.com")
	})
}

// problems are what the reports of the current snapshot say.
func (w *world) problems(g *Gateway) (text string) {
	w.t.Helper()
	snap := katestest.Snapshot[translate.Snapshot](w.t, g.Client, g.Queries...)
	for _, r := range translate.Translate(snap, g.translateOptions(snap)).Reports {
		for _, p := range r.Problems {
			text += p.Message + "\n"
		}
	}
	return text
}

func TestNothingIsConfiguredBeforeEverythingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{}
		faults := katestest.NewFaults(t, 1)
		slices := faults.On(katestest.Match{Resource: "endpointslices"}).Fail(errors.New("not now"))
		w.config.Wrap(faults.Wrap)
		g, _ := w.start(n, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Zero(t, n.called())
		assert.False(t, g.Serving())
		slices.Stop()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		changes, last := n.changes()
		assert.Equal(t, 1, changes)
		assert.Equal(t, []string{"shop.example.com"}, hosts(last))
		assert.Equal(t, []string{"10.0.0.1:8080"}, only(t, last.Upstreams))
	})
}

func TestAGatewayThatStartsDuringAnOutageWaitsForItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{}
		heal := w.server.Network.Refuse()
		g, _ := w.start(n, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Zero(t, n.called())
		assert.False(t, g.Serving())
		heal()
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.True(t, g.Serving())
		assert.Len(t, w.ingress().Status.LoadBalancer.Ingress, 1)
	})
}

func only(t *testing.T, upstreams map[string][]string) (endpoints []string) {
	t.Helper()
	require.Len(t, upstreams, 1)
	for _, endpoints = range upstreams {
		break
	}
	return endpoints
}

func TestAnotherReplicaTakesOverTheReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, first, second := newWorld(t), &fakeNginx{}, &fakeNginx{}
		_, stop := w.start(first, nil)
		settle()
		_, _ = w.start(second, func(g *Gateway) { g.Translate.Published = []string{"192.0.2.2"} })
		settle()
		changes, _ := second.changes()
		assert.Equal(t, 1, changes, "a follower serves")
		assert.Equal(t, "192.0.2.1", w.ingress().Status.LoadBalancer.Ingress[0].IP)
		stop()
		settle()
		assert.Equal(t, "192.0.2.2", w.ingress().Status.LoadBalancer.Ingress[0].IP)
	})
}

func TestNginxIsAskedAgainWhenItWaitsAndWhenItHasDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{again: 700 * time.Millisecond}
		g, _ := w.start(n, nil)
		time.Sleep(600 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 1, n.called())
		assert.False(t, g.Serving(), "the configuration waits")
		settle()
		assert.Equal(t, 2, n.called())
		assert.True(t, g.Serving())
		n.dead.Store(true)
		settle()
		assert.Equal(t, 3, n.called())
		assert.True(t, n.Alive())
	})
}

func TestStatusesSayTheAddressesOfTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{}
		_, _ = w.start(n, func(g *Gateway) {
			g.Translate.Published, g.PublishService = nil, types.NamespacedName{Namespace: "shop", Name: "web"}
			for i := range g.Queries {
				g.Queries[i].Transform = kates.Transform{}
			}
		})
		settle()
		assert.Empty(t, w.ingress().Status.LoadBalancer.Ingress)
		web := &corev1.Service{}
		web.Namespace, web.Name = "shop", "web"
		_, err := kates.ModifyStatus(t.Context(), w.admin, web, func(s *corev1.Service) error {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}, {IP: "192.0.2.7"}}
			return nil
		})
		require.NoError(t, err)
		settle()
		status := w.ingress().Status.LoadBalancer.Ingress
		require.Len(t, status, 2)
		assert.Equal(t, "192.0.2.7", status[0].IP+status[1].IP)
		assert.Equal(t, "lb.example.com", status[0].Hostname+status[1].Hostname)
	})
}

func TestEndpointsOfOtherClustersAreServedAndStayWhenTheyDoNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{}
		f, err := fleet.New(fleet.Options{
			Interval: 50 * time.Millisecond, Deadline: 20 * time.Second,
			Client: []kates.Option{kates.WithLogger(slog.New(slog.DiscardHandler))},
		})
		require.NoError(t, err)
		t.Cleanup(f.Close)
		east := w.cluster(f, "east")
		hung := katestest.NewServer(t)
		hung.Network.Blackhole()
		require.NoError(t, f.Add("west", hung.Config))
		g, _ := w.start(n, func(g *Gateway) { g.Clusters = f })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.False(t, g.Serving(), "it waits for west, for a while")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		changes, last := n.changes()
		assert.Equal(t, 1, changes)
		assert.Equal(t, []string{"10.0.0.1:8080", "10.9.0.1:8080"}, only(t, last.Upstreams))
		require.NoError(t, east.Client(t).Upsert(t.Context(), nil, slice("10.9.0.2"), nil))
		settle()
		_, last = n.changes()
		assert.Equal(t, []string{"10.0.0.1:8080", "10.9.0.2:8080"}, only(t, last.Upstreams))
		east.Network.Blackhole()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		changes, _ = n.changes()
		assert.Equal(t, 2, changes)
	})
}

func TestALeaderThatHasLostItsLeaseFollowsAndLeadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{}
		_, _ = w.start(n, nil)
		settle()
		heal := w.server.Network.Blackhole()
		time.Sleep(2 * time.Minute) // the Lease has expired
		heal()
		time.Sleep(5 * time.Minute)
		w.put(ingressOf("web", "other"))
		require.NoError(t, w.admin.Delete(t.Context(), w.ingress(), nil))
		w.put(ingress)
		settle()
		assert.Len(t, w.ingress().Status.LoadBalancer.Ingress, 1)
	})
}

// manyReports counts the reports that are written.
type manyReports struct {
	Reports
	n atomic.Int32
}

func (m *manyReports) Write(ctx context.Context, d *translate.Desired) error {
	m.n.Add(1)
	return m.Reports.Write(ctx, d)
}

func TestEndpointsDoNotWaitForAConfigurationAndNeedNoReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, reports := newWorld(t), &fakeNginx{pushes: true}, &manyReports{}
		_, _ = w.start(n, func(g *Gateway) { reports.Reports, g.Reports = g.Reports, reports })
		settle()
		_, last := n.endpoints()
		assert.Equal(t, map[string][]string{"shop.web.80": {"10.0.0.1:8080"}}, last)

		n.take(time.Minute) // to load a configuration
		w.put(ingressOf("other", "other"))
		settle()
		written := reports.n.Load()
		for _, address := range []string{"10.0.0.7", "10.0.0.8"} {
			w.put(strings.ReplaceAll(endpointSlice, "10.0.0.1", address))
			time.Sleep(2 * endpointsInterval)
			synctest.Wait()
			_, last = n.endpoints()
			assert.Equal(t, map[string][]string{"shop.web.80": {address + ":8080"}}, last)
		}
		assert.Equal(t, written, reports.n.Load(), "reports do not say what the endpoints are")

		time.Sleep(2 * time.Minute)
		n.take(0)
		w.put(strings.ReplaceAll(ingress, "number: 80", "number: 81"))
		settle()
		_, last = n.endpoints()
		assert.Equal(t, map[string][]string{"shop.web.80": {"10.0.0.8:8080"}}, last, "the other Ingress has it")
		w.put(strings.ReplaceAll(ingressOf("other", "other"), "number: 80", "number: 81"))
		settle()
		_, last = n.endpoints()
		assert.Empty(t, last, "no configuration has it any more")
	})
}

func TestEndpointsThatNginxTakesWithoutAReloadMakeNoConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{pushes: true}
		_, _ = w.start(n, nil)
		settle()
		calls := n.called()
		for _, address := range []string{"10.0.0.7", "10.0.0.8"} {
			w.put(strings.ReplaceAll(endpointSlice, "10.0.0.1", address))
			settle()
			_, last := n.endpoints()
			assert.Equal(t, map[string][]string{"shop.web.80": {address + ":8080"}}, last)
		}
		assert.Equal(t, calls, n.called())

		w.put(ingressOf("other", "other"))
		settle()
		assert.Equal(t, calls+1, n.called())
		_, c := n.changes()
		assert.Equal(t, []string{"10.0.0.8:8080"}, c.Upstreams["shop.web.80"], "it has the newest endpoints")
	})
}

func TestWhatChangesAfterAReloadIsInOneConfigurationASecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(t), &fakeNginx{pushes: true}
		_, _ = w.start(n, nil)
		settle()
		n.take(3 * time.Second) // to load a configuration
		calls := n.called()
		for i := range 120 { // for 12 s
			w.put(ingressOf(fmt.Sprint("other-", i), fmt.Sprint("other-", i)))
			time.Sleep(100 * time.Millisecond)
		}
		settle()
		assert.Equal(t, calls+4, n.called(), "at 0 s, 4 s, 8 s and 12 s")
		_, c := n.changes()
		assert.Len(t, hosts(c), 121)
	})
}
