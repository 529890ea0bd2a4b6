package mutants

// peer is a mistake that another library of this kind makes, or has made.
type peer string

const (
	blockingSend   peer = "a blocking send stops collection"
	evicted        peer = "the overlay of own writes is evicted early"
	byUIDOnly      peer = "objects are told apart by UID or name only"
	ignoresQuery   peer = "the overlay ignores namespace or selector"
	firstPage      peer = "a first page counts as the list"
	emptied        peer = "a 403 empties the kind"
	silent404      peer = "a kind blocks everything in silence"
	undecodable    peer = "one bad object fails its kind"
	lockHeld       peer = "a lock is held across requests"
	reencoded      peer = "the whole kind is converted for one change"
	blockingReads  peer = "reads wait for the cache"
	slowStalls     peer = "the slowest subscriber stalls all"
	lateNothing    peer = "late subscribers get nothing"
	noDeletes      peer = "deletes are not dispatched"
	trailingOnly   peer = "constant churn hides updates for ever"
	oneBackoff     peer = "one backoff for all watches"
	neverSynced    peer = "create+delete is never synced"
	failedStart    peer = "a failed start is remembered as success"
	checkThenAct   peer = "check, then remove: a dead stream is handed out"
	neverCoalesces peer = "bursts are never coalesced"
	keepsEvents    peer = "every update of an unread subscriber is kept"
	torn           peer = "several watches of one query tear it"
)

// peers are all such mistakes but one: ignored rotated credentials. Not this library but
// client-go rotates credentials.
var peers = []peer{
	blockingSend, evicted, byUIDOnly, ignoresQuery, firstPage, emptied, silent404, undecodable, lockHeld, reencoded, blockingReads,
	slowStalls, lateNothing, noDeletes, trailingOnly, oneBackoff, neverSynced, failedStart, checkThenAct, neverCoalesces, keepsEvents, torn,
}

// collecting are mistakes between a watch and its readers.
var collecting = []mutant{
	{
		name: "Changed blocks", peer: blockingSend,
		in: "pacer.note", caught: "TestG2ASignalWaitsForNobody",
		old: `if p.closed || len(p.out) == cap(p.out) || (p.armed && p.pace.Quiet == 0) {
				return
			}`,
		new: `if len(p.out) == cap(p.out) {
				p.out <- struct{}{}
			}
			if p.closed || (p.armed && p.pace.Quiet == 0) {
				return
			}`,
	},
	{
		name: "an event waits until all have read the one before", peer: slowStalls,
		in: "Stream.event", caught: "TestG2ASlowReaderStopsNothingAndGetsTheLatest",
		old: `s.mu.Lock()`,
		new: `s.mu.Lock()
			for l := range s.listeners {
				for l.untaken.Counts().Dirty > 0 && !s.shared.Closed() {
					s.mu.Unlock()
					time.Sleep(time.Second)
					s.mu.Lock()
				}
			}`,
	},
	{
		name: "a late subscriber starts with nothing", peer: lateNothing,
		in: "Listener.TakeAll", caught: "TestG1ALateSubscriberHasEverythingFromTheStore",
		old: `l.untaken.Restart()`,
		new: `if l.untaken.Nothing() && len(l.stream.listeners) > 1 {
				l.stream.mu.Unlock()
				return audience.Batch{Extent: audience.Some}
			}
			l.untaken.Restart()`,
	},
	{
		name: "a DELETED event is not passed on", peer: noDeletes,
		in: "Stream.event", caught: "TestG7DeltasAreExact",
		old: `var seen coherence.Object`,
		new: `var seen coherence.Object
			if deleted {
				s.mu.Unlock()
				return nil
			}`,
	},
	{
		name: "news is asked for while the pacer's lock is held", peer: lockHeld,
		in: "pacer.unlock", caught: "TestG11ThePacerAsksForNewsWithoutItsLock",
		old: `p.mu.Unlock()
			news := p.news()
			p.mu.Lock()`,
		new: `news := p.news()`,
	},
	{
		name: "a debounce only trails", peer: trailingOnly,
		in: "pacer.due", caught: "TestG2ConstantChurnIsNeverStarvedOfSignals/debounce",
		old: `limit.Before(due)`,
		new: `false && limit.Before(due)`,
	},
	{
		name: "a signal for each change", peer: neverCoalesces,
		in: "pacer.due", caught: "TestG3AFirstChangeAfterQuietIsSignalledAtOnceThenOnePerInterval",
		old: `!p.last.IsZero()`,
		new: `false`,
	},
	{
		name: "Changed queues", peer: neverCoalesces,
		in: "newPacer", caught: "TestG3ChangedHoldsOneSignal",
		old: `1`,
		new: `1000`,
	},
	{
		name: "what came and went unread is kept", peer: keepsEvents,
		in: "Untaken.Mark", caught: "TestG3AHundredThousandUnreadEventsAreOneKeyOrNone",
		old: `delete(u.dirty, key)
		delete(u.signals.dirty, key)`,
		new: `u.dirty[key] = known`,
	},
	{
		name: "a first snapshot without a kind", peer: silent404,
		in: "Collector.Complete", caught: "TestG1NoSignalBeforeEveryQueryHasItsWholeList",
		old: `false`,
		new: `true`,
	},
	{
		name: "the status does not say what fails", peer: silent404,
		in: "Stream.Failed", caught: "TestG8AKindWhoseListFailsForEverHoldsOnlyTheFirstSignal",
		old: `s.health.set(state, err)`,
		new: `s.health.set(state, nil)`,
	},
	{
		name: "one page is a list", peer: firstPage,
		in: "Pages", caught: "TestG1AllPagesCount",
		old: `o.Continue = m.Continue`,
		new: `o.Continue = ""`,
	},
	{
		name: "a stream that was stopped stays in the table", peer: checkThenAct,
		in: "Set.drop", caught: "TestG11AStreamThatHasEndedIsNeverHandedOut",
		old: `delete(s.streams, m.Key)`,
	},
	{
		name: "a kind that is unknown is a kind that is empty", peer: failedStart,
		in: "FindKind", caught: "TestG11AFailingNewLeavesNothingBehind",
		old: `q.Optional && ctx.Err() == nil && !errors.Is(err, ErrUnfit)`,
		new: `ctx.Err() == nil`,
	},
	{
		name: "a list that failed counts", peer: failedStart,
		in: "Pages", caught: "TestG1NoSignalBeforeEveryQueryHasItsWholeList",
		old: `case err != nil:
			return "", err`,
		new: `case err != nil:
			return "1", nil`,
	},
	{
		name: "a stream that is no longer wanted stays", peer: torn,
		in: "union.switchOver", caught: "TestG8AVersionThatIsNoLongerServedIsFollowedWithoutAGap",
		old: `left = u.now.listeners()`,
		new: `left = nil`,
	},
	{
		name: "queries that are replaced together are shown one by one", peer: torn,
		in: "roster.enqueue", caught: "TestG1QueriesThatAreReplacedTogetherChangeInOneSnapshot",
		old: `r.changes = append(apart, ch)`,
		new: `for r.changes = apart; len(r.changes) < len(apart)+len(ch.fields); {
				r.changes = append(r.changes, &change[S]{ch.fields[len(r.changes)-len(apart):][:1]})
			}`,
	},
	{
		name: "a kind whose lists hang delays the help for others", peer: torn,
		in: "upkeep.run", caught: "TestG8AKindWhoseListsHangDelaysNoHelpForAnother",
		old: `if busy[task] {
					continue
				}`,
		new: `if len(busy) > 0 {
					continue
				}`,
	},
}

// isolation are faults of one kind or object that affect all.
var isolation = []mutant{
	{
		name: "a refused list is an empty one", peer: emptied,
		in: "Stream.Failed", caught: "TestG8AKindThatFailsAfterTheFirstSnapshotKeepsItsObjectsAndStopsNobody/forbidden",
		old: `state := classify(err)`,
		new: `state := classify(err)
			if state == Forbidden {
				s.store.Objects = make(map[object.Key]object.Object)
				for l := range s.listeners {
					l.untaken.Restart()
				}
			}`,
	},
	{
		name: "a bad object takes its kind along", peer: undecodable,
		in: "Accumulator.changed", caught: "TestG8APanicInAPredicateIsOneInvalidObject",
		old: `out.Put(c.Key, a.rowOf(i, c.Object))`,
		new: `row := a.rowOf(i, c.Object)
			if row.Err != nil {
				*out = tables.Changes{}
				return
			}
			out.Put(c.Key, row)`,
	},
	{
		name: "a settling list under the set's lock", peer: lockHeld,
		in: "Write.askAndRecord", caught: "TestG11NoLockIsHeldDuringARequest",
		old: `object, version, err := st.Requests().Lookup(ctx, o.Key, o.Version)`,
		new: `w.set.mu.Lock()
			object, version, err := st.Requests().Lookup(ctx, o.Key, o.Version)
			w.set.mu.Unlock()`,
	},
	{
		name: "every Update converts everything", peer: reencoded,
		in: "Accumulator.rebind", caught: "TestG3AnUpdateConvertsNothingButWhatChanged",
		old: `f.Shown.spans == spans`,
		new: `f.Shown.spans != spans`,
	},
	{
		name: "Update waits until the watch has caught up", peer: blockingReads,
		in: "accumulator.Accumulator.Update", caught: "TestG4UpdateDoesNotWaitForTheWatch",
		old: `if err != nil {
				return Result{}, err
			}`,
		new: `if err != nil {
				return Result{}, err
			}
			for _, st := range a.Status() {
				for st.Pending > 0 && a.Err() == nil {
					time.Sleep(1e9)
					st = a.Status()[0]
				}
			}`,
	},
	{
		name: "one backoff for all", peer: oneBackoff,
		in: "Stream.Failed", caught: "TestG8TheFailuresOfOneKindDoNotSlowAnother",
		old: `s.mu.Lock()
	state := classify(err)`,
		new: `pause := time.Duration(s.shared.deletions.Add(1)) * time.Second / 4 // all streams count there
			time.Sleep(pause)
			s.mu.Lock()
			state := classify(err)`,
	},
}

// overlay are mistakes with a client's own writes.
var overlay = []mutant{
	{
		name: "a write evicts the one before, and itself", peer: evicted,
		in: "View.enter", caught: "TestModelG4G5G6OwnWritesAreShownUntilTheWatchShowsThem",
		old: `if !Newer(w.Version, old.atRV) {
				return // a newer write of ours was answered first
			}`,
		new: `if !Newer(w.Version, old.atRV) {
				return // a newer write of ours was answered first
			}
			v.drop(w.Key)
			return`,
	},
	{
		name: "an object made again is the one that was", peer: byUIDOnly,
		in: "AppendDifferences", caught: "TestG7DeltasAreExact",
		old: `d.Old != nil && d.New != nil && object.UIDOf(d.Old) != object.UIDOf(d.New)`,
		new: `d.Old != nil && d.New != nil && object.UIDOf(d.Old) != object.UIDOf(d.New) && false`,
	},
	{
		name: "a write of another namespace is shown", peer: ignoresQuery,
		in: "Intake.Covers", caught: "TestModelG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming",
		old: `s.Key.Namespace == "" || s.Key.Namespace == key.Namespace`,
		new: `s.Key.Namespace != "?"`,
	},
	{
		name: "a write that the selector does not match is shown", peer: ignoresQuery,
		in: "Intake.JudgeWrite", caught: "TestG4AWriteThatMovesAnObjectInOrOutOfTheQueryIsShown",
		old: `!selected`,
		new: `!selected && false`,
	},
	{
		name: "an entry of what is gone never ends", peer: neverSynced,
		in: "View.Advance", caught: "TestG6CreateThenDeleteBeforeTheWatchSawEitherWedgesNothing",
		old: `v.current(p)`,
		new: `v.current(p) && v.entries[p.key].object != nil`,
	},
}
