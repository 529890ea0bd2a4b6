package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	reads   = katestest.Match{Resource: "configmaps", Where: func(r katestest.Request) bool { return r.Verb == "list" || r.Verb == "watch" }}
	lists   = katestest.Match{Resource: "configmaps", Where: func(r katestest.Request) bool { return r.Verb == "list" || r.StreamedList() }}
	watches = katestest.Match{Resource: "configmaps", Verb: "watch"}
	resumed = katestest.Match{Resource: "configmaps", Where: func(r katestest.Request) bool { return r.Verb == "watch" && !r.StreamedList() }}
)

// plain selects HTTP/1. It has no pings, so the library itself has to notice a dead connection.
func plain(c *rest.Config) { c.NextProtos = []string{"http/1.1"} }

// bad makes one round of trouble.
type bad func(f *follower)

func TestG5AWatchSurvivesWhateverTheNetworkDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []kates.Option
		round   bad
	}{
		"delayed": {round: func(f *follower) { f.now(watches).Delay(700 * time.Millisecond) }},
		"cut":     {round: func(f *follower) { f.now(watches).Cut(0) }},
		"cut in the middle of an object": {round: func(f *follower) {
			f.now(watches).Cut(300)
		}},
		"cut again in the middle of an object": {round: func(f *follower) {
			f.faults.On(resumed).Times(2).Cut(250)
			f.now(watches).Cut(10)
		}},
		"ended as if it were complete":              {round: func(f *follower) { f.now(watches).Truncate(0) }},
		"ended in an object as if it were complete": {round: func(f *follower) { f.now(watches).Truncate(300) }},
		"garbage":              {round: func(f *follower) { f.now(watches).Corrupt(0) }},
		"garbage in an object": {round: func(f *follower) { f.now(watches).Corrupt(300) }},
		"503 by chance": {round: func(f *follower) {
			f.faults.On(reads).Times(4).Probability(0.7).Status(http.StatusServiceUnavailable, "", 0)
			f.now(watches).Cut(0)
		}},
		"answers lost": {round: func(f *follower) {
			f.faults.On(reads).Times(2).Lose()
			f.now(watches).Cut(0)
		}},
		"expired": {round: func(f *follower) {
			f.faults.On(resumed).Times(1).Status(http.StatusGone, metav1.StatusReasonExpired, 0)
			f.now(watches).Cut(0)
		}},
		"expired, and the list is cut": {round: func(f *follower) {
			f.faults.On(resumed).Times(1).Status(http.StatusGone, metav1.StatusReasonExpired, 0)
			f.faults.On(lists).Times(1).Cut(400)
			f.now(watches).Cut(0)
		}},
		"expired, and the pages are cut": {options: []kates.Option{kates.Tuning{Lists: kates.PagedLists, PageSize: 3}}, round: func(f *follower) {
			f.faults.On(resumed).Times(1).Status(http.StatusGone, metav1.StatusReasonExpired, 0)
			f.faults.On(lists).After(1).Times(1).Truncate(400)
			f.now(watches).Cut(0)
		}},
		"connections reset": {round: func(f *follower) { f.network.Reset() }},
		"connections reset and refused": {round: func(f *follower) {
			heal := f.network.Refuse()
			f.network.Reset()
			time.AfterFunc(500*time.Millisecond, heal)
		}},
		"slow network": {round: func(f *follower) { f.network.Delay(100 * time.Millisecond) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil, c.options...)
			f.start()
			f.change(0)
			f.arrive()
			for round := 1; round <= 2; round++ { // each failure in a row doubles the pause
				c.round(f)
				f.change(round)
				f.arrive()
				f.faults.Heal()
			}
			f.quiet()
		})
	}
}

func TestG1AFirstListThatBreaksIsMadeAgainAndNothingOfItIsShown(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*katestest.Trigger) *katestest.Rule{
		"cut":       func(t *katestest.Trigger) *katestest.Rule { return t.Cut(700) },
		"truncated": func(t *katestest.Trigger) *katestest.Rule { return t.Truncate(700) },
		"garbage":   func(t *katestest.Trigger) *katestest.Rule { return t.Corrupt(700) },
		"lost":      (*katestest.Trigger).Lose,
		"503":       func(t *katestest.Trigger) *katestest.Rule { return t.Status(503, "", 0) },
	} {
		for form, options := range map[string][]kates.Option{"streamed": nil, "paged": {kates.Tuning{Lists: kates.PagedLists, PageSize: 2}}} {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				f := newFollower(t, nil, options...)
				for i := range 3 {
					f.change(i)
				}
				rule := breaks(f.faults.On(lists).Times(3))
				f.start()
				f.arrive()
				assert.Equal(t, 1, f.updates, "no part of a list is shown")
				assert.Equal(t, 3, rule.Hits())
				f.quiet()
			})
		}
	}
}

func TestG8RetryAfterIsRespectedAndNoListIsMadeForIt(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	f.start()
	f.arrive()
	before := len(f.faults.Requests(lists))
	f.faults.On(reads).Times(3).Status(http.StatusTooManyRequests, "", time.Second)
	began := time.Now()
	f.now(watches).Cut(0)
	f.change(0)
	f.arrive()
	assert.GreaterOrEqual(t, time.Since(began), 3*time.Second)
	probes := len(f.faults.Requests(katestest.Match{Verb: "list", Resource: "configmaps", Where: func(r katestest.Request) bool { return r.Query.Get("limit") == "1" }}))
	assert.Equal(t, probes, len(f.faults.Requests(lists))-before, "the watch goes on where it was")
	assert.LessOrEqual(t, len(f.faults.Requests(reads))-before, 6)
	f.quiet()
}

func TestG8AStalledListHoldsItsKindAloneAndEndsWhenItsConnectionDoes(t *testing.T) {
	t.Parallel()
	for form, options := range map[string][]kates.Option{"streamed": nil, "paged": {kates.Tuning{Lists: kates.PagedLists, PageSize: 2}}} {
		for end, heal := range map[string]func(*follower){
			"it goes on": func(f *follower) { f.faults.Heal() },
			"it is cut":  func(f *follower) { f.now(lists).Cut(0) },
		} {
			t.Run(form+" "+end, func(t *testing.T) {
				t.Parallel()
				f := newFollower(t, nil, options...)
				f.change(0)
				f.faults.On(lists).Times(1).Stall(300)
				f.start()
				f.wait(func() bool { return len(f.faults.Open(lists)) == 1 }, "the list is being read")
				other, err := f.client.Watch(t.Context(), kates.Query{Name: "Secrets", Kind: "secrets", Namespace: f.ns})
				require.NoError(t, err)
				<-other.Changed()
				require.Error(t, f.acc.Ready(), "it is not complete")
				require.NoError(t, other.Ready())
				heal(f)
				f.arrive()
				f.quiet()
			})
		}
	}
}

// Over HTTP/1 only the library notices.
func TestG2AHalfOpenConnectionIsNoticedBySilence(t *testing.T) {
	t.Parallel()
	f := newFollower(t, plain, kates.Tuning{IdleTimeout: 2 * time.Second})
	f.start()
	f.arrive()
	frozen := 0
	for round := range 2 {
		f.idle(5, frozen)
		dialed := f.network.Dialed()
		f.network.Freeze()
		frozen = f.network.Open()
		f.change(round)
		f.arrive()
		assert.Greater(t, f.network.Dialed(), dialed)
	}
	f.quiet()
}

// Over HTTP/2 all requests share the connection, and client-go's health check ends it. The test
// runs alone, because it sets the check's intervals in the environment.
func TestG2AHalfOpenConnectionIsNoticedByPings(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	f := newFollower(t, nil, kates.Tuning{IdleTimeout: time.Hour}) // the silence tells it nothing
	f.start()
	f.arrive()
	f.network.Freeze()
	f.change(0)
	f.arrive()
	f.quiet()
}
