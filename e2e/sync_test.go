package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// forms are the two ways to list.
var forms = map[string][]kates.Option{"streamed": nil, "paged": {kates.Tuning{Lists: kates.PagedLists, PageSize: 2}}}

// What others created, changed or deleted before the call is in the next Update.
func TestG2SyncReturnsWhenALateWatchHasCaughtUp(t *testing.T) {
	t.Parallel()
	for form, options := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil, options...)
			f.start()
			f.change(0)
			f.arrive()
			for round := 1; round <= 3; round++ {
				late := f.now(watches).Delay(time.Hour)
				f.change(round)
				require.NoError(t, f.others.Resource(f.kind).Namespace(f.ns).Delete(t.Context(), "o-0-0", metav1.DeleteOptions{}))
				before := f.updates
				f.update()
				require.Equal(t, before, f.updates, "the watch is late")
				asked := len(f.faults.Requests(katestest.Match{Verb: "list", Resource: "configmaps"}))
				synced := make(chan error, 1)
				go func() { synced <- f.client.Sync(t.Context()) }()
				f.wait(func() bool {
					return len(f.faults.Requests(katestest.Match{Verb: "list", Resource: "configmaps"})) > asked
				}, "the server is asked how new it is")
				require.Empty(t, synced, "the watch has not caught up")
				late.Stop()
				require.NoError(t, <-synced)
				f.update()
				require.Equal(t, f.server(), f.shown, "and it is in one Update")
				_, err := f.others.Resource(f.kind).Namespace(f.ns).Create(t.Context(), object(f.kind, f.ns, "o-0-0", nil), metav1.CreateOptions{})
				require.NoError(t, err)
				f.arrive()
			}
			f.quiet()
		})
	}
}

// TestG2ASyncOfManyObjectsListsOne: also while nothing changes, since the server says that by a
// bookmark. A server that is slow to say so is asked for all of them, so one Sync of many counts.
func TestG2ASyncOfManyObjectsListsOne(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil, kates.Tuning{Lists: kates.PagedLists, PageSize: 2})
	for round := range 4 { // leaves eight
		f.change(round)
	}
	f.start()
	f.arrive()
	listed := katestest.Match{Verb: "list", Resource: "configmaps"}
	require.Eventually(t, func() bool {
		before := len(f.faults.Requests(listed))
		if err := f.client.Sync(t.Context()); !assert.NoError(t, err) {
			return true
		}
		all := f.faults.Requests(listed)[before:]
		for _, r := range all {
			if r.Query.Get("limit") != "1" {
				return false
			}
		}
		return len(all) > 0
	}, 3*time.Minute, time.Millisecond)
	f.arrive()
	f.quiet()
}

func TestG2SyncSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	f.start()
	f.arrive()
	late := f.now(watches).Delay(time.Hour)
	f.change(0)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := f.client.Sync(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "configmaps", "the watch does not come")
	late.Stop()

	heal := f.network.Refuse()
	f.network.Reset()
	require.ErrorContains(t, f.client.Sync(t.Context()), "configmaps", "the server cannot be asked")
	heal()
	f.arrive()
	f.quiet()
}

func TestG2AnIdleTimeoutThatIsShorterThanTheSilenceCostsNoList(t *testing.T) {
	t.Parallel()
	for form, options := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil, append(options, kates.Tuning{IdleTimeout: 300 * time.Millisecond})...)
			f.change(0)
			f.start()
			f.arrive()
			// The first list may itself be silent for longer, on a machine that is loaded.
			lists, restarts := f.whole(), f.acc.Status().Queries[0].Restarts
			resumptions := len(f.faults.Requests(resumed))
			f.wait(func() bool { return len(f.faults.Requests(resumed)) >= resumptions+4 }, "it has been tried four times")
			f.change(1)
			f.arrive()
			assert.Equal(t, lists, f.whole())
			assert.Equal(t, restarts, f.acc.Status().Queries[0].Restarts)
			f.quiet()
		})
	}
}

func TestG1ListsComeInPagesOfTheSizeThatWasSet(t *testing.T) {
	t.Parallel()
	paged := katestest.Match{Verb: "list", Resource: "configmaps"}
	for _, c := range []struct {
		size  int64
		limit string
		pages int
	}{{3, "3", 3}, {0, "500", 1}} {
		f := newFollower(t, nil, kates.Tuning{Lists: kates.PagedLists, PageSize: c.size})
		for round := range 4 { // leaves eight
			f.change(round)
		}
		f.start()
		f.arrive()
		pages := f.faults.Requests(paged)
		require.Len(t, pages, c.pages, "%v", pages)
		for i, r := range pages {
			assert.Equal(t, http.StatusOK, r.Status)
			assert.Equal(t, c.limit, r.Query.Get("limit"))
			assert.Equal(t, i > 0, r.Query.Has("continue"))
		}
		assert.Empty(t, f.faults.Requests(katestest.Match{Where: katestest.Request.StreamedList}))
		assert.Equal(t, 1, f.updates, "and are shown as one")
	}
	f := newFollower(t, nil)
	f.start()
	f.arrive()
	assert.Empty(t, f.faults.Requests(paged), "by default they are streamed")
	assert.Len(t, f.faults.Requests(katestest.Match{Where: katestest.Request.StreamedList}), 1)
}
