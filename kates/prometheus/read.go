package prometheus

import (
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

var states = []kates.State{
	kates.StateWaiting, kates.StateListing, kates.StateSynced, kates.StateRetrying, kates.StateForbidden,
	kates.StateMissing,
}

// read adds up a client's report.
func (g *gathering) read(r *inspect.Report) {
	for _, w := range r.Watches {
		g.readWatch(r.At, w)
	}
	for _, s := range r.Streams {
		g.readStream(r.At, s)
	}
	for _, l := range r.Loops {
		g.readLoop(r.At, l)
	}
	g.readLeases(r)
}

// since is how many seconds ago a time was; 0 if there is none.
func since(at, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(0, at.Sub(then).Seconds())
}

func (g *gathering) readWatch(at time.Time, w *inspect.Watch) {
	watch := g.observed.names.watches.admit(w.Name)
	g.add(watches, 1, watch, string(w.Kind))
	incomplete, age := 0.0, 0.0
	if w.Completed.IsZero() {
		incomplete, age = 1, since(at, w.Opened)
	}
	g.add(watchesIncomplete, incomplete, watch)
	g.most(watchIncompleteAge, age, watch)
	g.count(watchSignals, w.ID, "", w.Signals, watch)
	g.count(watchUpdates, w.ID, "", w.Updates, watch)
	g.count(watchSnapshots, w.ID, "", w.Snapshots, watch)
	g.count(watchChanges, w.ID, "", w.Changes, watch)
	for _, q := range w.Queries {
		g.readQuery(at, w, watch, q)
	}
	if k := w.Keys; k != nil {
		g.add(partitions, float64(k.All-k.Waiting-k.Ready-k.Running-k.Resting), watch, string(inspect.KeyIdle))
		g.add(partitions, float64(k.Waiting), watch, string(inspect.KeyWaiting))
		g.add(partitions, float64(k.Ready), watch, string(inspect.KeyReady))
		g.add(partitions, float64(k.Running), watch, string(inspect.KeyRunning))
		g.add(partitions, float64(k.Resting), watch, string(inspect.KeyResting))
		g.most(partitionQueueAge, since(at, k.ReadySince), watch)
	}
}

func (g *gathering) readQuery(at time.Time, w *inspect.Watch, watch string, q *inspect.Query) {
	query := g.observed.names.queries.admit(q.Name)
	for _, state := range states {
		g.add(queries, one(q.State == state), watch, query, string(state))
	}
	g.add(queryAbsent, one(q.Absent), watch, query)
	g.add(queryObjects, float64(q.Objects), watch, query)
	g.add(queryBytes, float64(q.Bytes), watch, query)
	g.add(queryInvalid, float64(q.Invalid), watch, query)
	g.count(queryEvents, w.ID, q.Name, q.Events, watch, query)
	if w.Kind != inspect.OfLister { // which has no snapshots, and so nothing that waits for one
		g.count(queryCoalesced, w.ID, q.Name, q.Coalesced, watch, query)
		g.add(queryUntaken, float64(q.Untaken), watch, query)
		g.most(queryUntakenAge, since(at, q.UntakenSince), watch, query)
	}
	g.most(queryLag, q.Lag.Seconds(), watch, query)
	if !q.Heard.IsZero() {
		g.most(queryStaleness, since(at, q.Heard), watch, query)
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

var (
	listReasons = []inspect.ListReason{
		inspect.ListFirst, inspect.ListAgain, inspect.ListExpired, inspect.ListOwnWrites, inspect.ListNoRoom,
		inspect.ListHistory, inspect.ListUnread, inspect.ListRefused,
	}
	watchReasons = []inspect.WatchReason{
		inspect.WatchListed, inspect.WatchEnded, inspect.WatchShort, inspect.WatchError, inspect.WatchIdle,
		inspect.WatchMoved, inspect.WatchKept,
	}
)

// readStream adds up streams of a resource. A query of named objects has a stream for each of
// them, and one of many namespaces a stream for each.
func (g *gathering) readStream(at time.Time, s *inspect.Stream) {
	resource, form := g.observed.names.resources.admit(s.Resource), g.observed.names.forms.admit(s.Form)
	for _, state := range states {
		g.add(streams, one(s.State == state), resource, form, string(state))
	}
	g.add(streamListeners, float64(s.Listeners), resource, form)
	g.add(streamObjects, float64(s.Objects), resource, form)
	g.add(streamBytes, float64(s.Bytes), resource, form)
	g.add(streamListing, float64(s.Listing), resource, form)
	if !s.Heard.IsZero() {
		g.most(streamStaleness, since(at, s.Heard), resource, form)
	}
	g.count(streamEvents, s.ID, "", s.Events, resource, form)
	g.count(streamBookmarks, s.ID, "", s.Bookmarks, resource, form)
	g.count(streamUndecodable, s.ID, "", s.Undecodable, resource, form)
	for _, reason := range listReasons { // all of them: a rise from nothing is not seen
		g.count(streamLists, s.ID, "", s.Lists[reason], resource, form, string(reason))
	}
	for _, reason := range watchReasons {
		g.count(streamWatches, s.ID, "", s.Watches[reason], resource, form, string(reason))
	}
	g.add(writesPending, float64(s.Pending), resource)
	g.most(writesPendingAge, since(at, s.PendingSince), resource)
	g.add(writesUnsettled, float64(s.Unsettled), resource)
}

func (g *gathering) readLoop(at time.Time, l *inspect.Loop) {
	loop := g.observed.names.loops.admit(l.Name)
	g.add(reconcileWorkers, float64(l.Workers), loop)
	g.add(reconcilesRunning, float64(len(l.Running)), loop)
	longest := 0.0
	for _, call := range l.Running {
		longest = max(longest, since(at, call.Since))
	}
	g.most(reconcileLongest, longest, loop)
	g.add(reconcileFailing, float64(l.FailingAll), loop)
	attempts := 0
	for _, failure := range l.Failing {
		attempts = max(attempts, failure.Attempt)
	}
	g.most(reconcileAttempts, float64(attempts), loop)
}

func (g *gathering) readLeases(r *inspect.Report) {
	g.add(leaderElections, float64(len(r.Leaders)))
	g.add(leaderLeading, 0)
	g.add(leaderErrors, 0)
	for _, l := range r.Leaders {
		g.add(leaderLeading, one(l.Leading))
		g.add(leaderErrors, one(l.Error != ""))
	}
	g.add(shardGroups, float64(len(r.Shards)))
	g.add(shardMemberships, 0)
	g.add(shardMembers, 0)
	g.add(shardErrors, 0)
	for _, s := range r.Shards {
		g.add(shardMemberships, one(s.Member))
		g.add(shardMembers, float64(s.Members))
		g.add(shardErrors, one(s.Error != ""))
	}
}
