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

const (
	pacer        = "accumulator/collect/pacer.go"
	streams      = "accumulator/stream/set.go"
	subscription = "accumulator/stream/listener.go"
	untaken      = "accumulator/stream/untaken.go"
	accumulator  = "accumulator/collect/collector.go"
	replacing    = "accumulator/stream/commit.go"
)

// collecting are mistakes between a watch and its readers.
var collecting = []mutant{
	{
		name: "a busy kind is never listed", says: "the server does not stream lists: lists in pages", file: "accumulator/stream/listing.go",
		caught: "TestG1AServerThatStreamsNoListsIsListedThoughItsWatchIsNeverSilent/busy",
		old:    `time.NewTimer(initialIdle), time.NewTimer(initialMost)`, new: `time.NewTimer(initialIdle), time.NewTimer(1000*initialMost)`,
	},
	{
		name: "Changed blocks", peer: blockingSend, file: pacer, in: "accumulator/collect", caught: "TestG2ASignalWaitsForNobody",
		old: `	if p.closed || len(p.out) == cap(p.out) || (p.armed`,
		new: `	if len(p.out) == cap(p.out) {
		p.out <- struct{}{}
	}
	if p.closed || (p.armed`,
	},
	{
		name: "an event waits until all have read the one before", peer: slowStalls, file: stream, caught: "TestG2ASlowReaderStopsNothingAndGetsTheLatest",
		old: `	wake := few[:0]
	s.mu.Lock()
	recovered`,
		new: `	wake := few[:0]
	s.mu.Lock()
	for l := range s.listeners {
		for len(l.dirty) > 0 && s.set.ctx.Err() == nil {
			s.mu.Unlock()
			time.Sleep(time.Second)
			s.mu.Lock()
		}
	}
	recovered`,
	},
	{
		name: "a late subscriber starts with nothing", peer: lateNothing, file: stream, caught: "TestG1ALateSubscriberHasEverythingFromTheStore",
		old: `taken: takenNothing, dirty`, new: `taken: map[bool]taken{true: takenBatches}[s.progress.synced], dirty`,
	},
	{
		name: "a DELETED event is not passed on", peer: noDeletes, file: stream, caught: "TestG7DeltasAreExact",
		old: `		if !in {
			delete`,
		new: `		if deleted {
			s.mu.Unlock()
			return nil
		}
		if !in {
			delete`,
	},
	{
		name: "news is asked for while the pacer's lock is held", peer: lockHeld, file: pacer, in: "accumulator/collect", caught: "TestG11ThePacerAsksForNewsWithoutItsLock",
		old: `		p.mu.Unlock()
		news := p.news()
		p.mu.Lock()
`,
		new: `		news := p.news()
`,
	},
	{
		name: "a change while news is asked for is not noted", says: "none is lost", file: pacer, in: "accumulator/collect", caught: "TestG2AChangeWhileThePacerAsksForNewsIsSignalled",
		old: `if p.closed || len(p.out)`, new: `if p.closed || p.asking || len(p.out)`,
	},
	{
		name: "a debounce only trails", peer: trailingOnly, file: pacer, caught: "TestG2ConstantChurnIsNeverStarvedOfSignals/debounce",
		old: `limit.Before(due) {`, new: `false && limit.Before(due) {`,
	},
	{
		name: "one backoff for all", peer: oneBackoff, file: feed, caught: "TestG8TheFailuresOfOneKindDoNotSlowAnother",
		old: `// rest waits after a failure: as long as the server advises, if it does.
func (f *reflector) rest(ctx context.Context, err error) {
	if errors.Is(err, errNoAnswer) || errors.Is(err, context.DeadlineExceeded) {
		f.config.Suspect()
	}
	d := f.pace.Step()`,
		new: `var shared = (&reflector{}).backoff()

func (f *reflector) rest(ctx context.Context, err error) {
	d := shared.Step()`,
	},
	{
		name: "a signal for each change", peer: neverCoalesces, file: pacer, caught: "TestG3AFirstChangeAfterQuietIsSignalledAtOnceThenOnePerInterval",
		old: `!p.last.IsZero() && next.After(due) {`, new: `false && next.After(due) {`,
	},
	{
		name: "Changed queues", peer: neverCoalesces, file: pacer, caught: "TestG3ChangedHoldsOneSignal",
		old: `out: make(chan struct{}, 1)`, new: `out: make(chan struct{}, 1000)`,
	},
	{
		name: "what came and went unread is kept", peer: keepsEvents, file: subscription, caught: "TestG3AHundredThousandUnreadEventsAreOneKeyOrNone",
		old: `		delete(l.dirty, key)
		delete(l.signals.dirty, key)
		return nil`,
		new: `		l.dirty[key] = known
		return nil`,
	},
	{
		name: "a first snapshot without a kind", peer: silent404, file: accumulator, caught: "TestG1NoSignalBeforeEveryQueryHasItsWholeList",
		old: `			if f.phase() < query.Complete {
				return false`,
		new: `			if f.phase() < query.Complete {
				return true`,
	},
	{
		name: "the status does not say what fails", peer: silent404, file: "accumulator/stream/health.go", caught: "TestG8AKindWhoseListFailsForEverHoldsOnlyTheFirstSignal",
		old: `s.health.set(state, err)`, new: `s.health.set(state, nil)`,
	},
	{
		name: "one page is a list", peer: firstPage, file: pages, caught: "TestG1AllPagesCount",
		old: `o.Continue = m.Continue; o.Continue == ""`, new: `o.Continue = ""; o.Continue == ""`,
	},
	{
		name: "a stream that was stopped stays in the table", peer: checkThenAct, file: streams, caught: "TestG11AStreamThatHasEndedIsNeverHandedOut",
		old: `		delete(s.streams, st.key)
`, new: ``,
	},
	{
		name: "the grace ends a stream that is used again", peer: checkThenAct, file: streams, caught: "TestG11AStreamThatHasEndedIsNeverHandedOut",
		old: `		if st.use.listeners == 0 && st.use.left == left {`, new: `		if st.use.left == left {`,
	},
	{
		name: "a kind that is unknown is a kind that is empty", peer: failedStart, file: "accumulator/query/kind.go", caught: "TestG11AFailingNewLeavesNothingBehind",
		old: `	case q.Optional && ctx.Err() == nil && !errors.Is(err, ErrUnfit):`,
		new: `	case ctx.Err() == nil:`,
	},
	{
		name: "a list that failed counts", peer: failedStart, file: pages, caught: "TestG1NoSignalBeforeEveryQueryHasItsWholeList",
		old: `		case err != nil:
			return "", err`,
		new: `		case err != nil:
			return "1", nil`,
	},
}

// isolation are faults of one kind or object that affect all.
var isolation = []mutant{
	{
		name: "a refused list is an empty one", peer: emptied, file: "accumulator/stream/health.go", caught: "TestG8AKindThatFailsAfterTheFirstSnapshotKeepsItsObjectsAndStopsNobody/forbidden",
		old: `	if state == Forbidden && what == toList {`,
		new: `	if state == Forbidden {
		s.store.objects = make(map[Key]Object)
		for l := range s.listeners {
			l.restart()
		}
	}
	if state == Forbidden && what == toList {`,
	},
	{
		name: "a bad object takes its kind along", peer: undecodable, file: rows, caught: "TestG8APanicInAPredicateIsOneInvalidObject",
		old: `		out.Put(c.Key, a.rowOf(i, c.Object))
`,
		new: `		row := a.rowOf(i, c.Object)
		if row.Err != nil {
			*out = snapshot.Changes{}
			return
		}
		out.Put(c.Key, row)
`,
	},
	{
		name: "what the predicate rejects has to decode", says: "before it is converted to the field's type", file: rows,
		in: "kates/katestest", caught: "TestSuite/APredicateDecidesBeforeTheObjectIsDecodedAndWithoutLocks",
		old: `	pass, err := a.judge(i, o)
	return a.rowAs`, new: `	if row := a.convert(i, o); row.Err != nil {
		return row
	}
	pass, err := a.judge(i, o)
	return a.rowAs`,
	},
	{
		name: "a panic of the user's is everybody's", peer: undecodable, file: rows, caught: "TestG8APanicInAPredicateIsOneInvalidObject",
		old: `	err = guard.Named(predicatePanicked, func() error {
		pass, err = a.judgement.predicate(u)
		if err != nil {
			_ = err.Error() // the user's, which may panic
		}
		return err
	})`,
		new: `	pass, err = a.judgement.predicate(u)
	_ = guard.Named`,
	},
	{
		name: "a closure that is made anew is the one that panicked", peer: undecodable, file: "accumulator/update.go",
		caught: "TestG8AnObjectWhosePredicatePanickedRejoinsByAnotherPredicate",
		old:    `j.function != a.judgement.function`, new: `j.place != a.judgement.place`,
	},
	{
		name: "a bad object is lost from the table", peer: undecodable, file: "snapshot/apply.go", caught: "TestG8AnObjectThatDoesNotDecodeIsLeftOutAndJoinsWhenHealed",
		old: `	if len(p.leftOut) > 0 {`, new: `	if len(p.leftOut) < 0 {`,
	},
	{
		name: "what was copied ahead is delivered twice", says: "what was delivered is never written to again", file: "snapshot/ahead.go", caught: "TestG10WhatIsCopiedAheadIsDeliveredOnceAndCostsNothingThen",
		old: `	t.ahead = nil // in any case`, new: `	_ = 0 // in any case`,
	},
	{
		name: "a stale copy of a map is patched", says: "what was delivered is never written to again", file: "snapshot/map.go", caught: "TestACopyAheadOfAMapThatIsMadeAnewIsForgotten",
		old: `t.value, t.patches, t.ahead = reflect.Value{}, nil, nil`, new: `t.value, t.patches = reflect.Value{}, nil`,
	},
	{
		name: "a settling list under the stream's lock", peer: lockHeld, file: inquiry, caught: "TestG11NoLockIsHeldDuringARequest",
		old: `	object, version, err := st.requests.lookup(ctx, o.Key, o.Version)
`,
		new: `	st.mu.Lock()
	object, version, err := st.requests.lookup(ctx, o.Key, o.Version)
	st.mu.Unlock()
`,
	},
	{
		name: "a list under the client's lock", peer: lockHeld, file: listing, caught: "TestG11NoLockIsHeldDuringARequest",
		old: `	return f.source.ListItems(ctx, o, put)`,
		new: `	f.target.(*stream).set.mu.Lock()
	defer f.target.(*stream).set.mu.Unlock()
	return f.source.ListItems(ctx, o, put)`,
	},
	{
		name: "every Update converts everything", peer: reencoded, file: update, caught: "TestG3AnUpdateConvertsNothingButWhatChanged",
		old: `if old != nil && same && f.Shown.spans == spans {`, new: `if old != nil && same && f.Shown.spans != spans {`,
	},
	{
		name: "Update waits until the watch has caught up", peer: blockingReads, file: update, caught: "TestG4UpdateDoesNotWaitForTheWatch",
		old: `	if !a.collector.Complete() || !a.collector.Take(fields.fields) {
`,
		new: `	for _, st := range a.Status() {
		for st.Pending > 0 && a.Err() == nil {
			stream.Sleep(ctx, 1e9)
			st = a.Status()[0]
		}
	}
	if !a.collector.Complete() || !a.collector.Take(fields.fields) {
`,
	},
}

// overlay are mistakes with a client's own writes.
var overlay = []mutant{
	{
		name: "a write evicts the one before, and itself", peer: evicted, file: view, caught: viewModel,
		old: `			return // a newer write of ours was answered first
		}
`,
		new: `			return // a newer write of ours was answered first
		}
		v.drop(w.Key)
		return
`,
	},
	{
		name: "reading an entry ends it", peer: evicted, file: view, caught: viewModel,
		old: `		return e.object
`, new: `		v.drop(key)
		return e.object
`,
	},
	{
		name: "an event of the object ends its entry, however old", peer: evicted, file: view, caught: viewModel,
		old: `func (v *View) Observe(ev Event) (ended []Ended) {
`,
		new: `func (v *View) Observe(ev Event) (ended []Ended) {
	v.drop(ev.Key)
`,
	},
	{
		name: "what one stream has seen ends the entries of all", peer: evicted, file: stream, caught: "TestG4EveryAccumulatorShowsAnOwnWriteHoweverSlowItsWatch",
		old: `	run(wake)
	return nil
}

// bookmark takes`,
		new: `	run(wake)
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	for _, other := range s.set.streams {
		other.store.view.GiveUp()
	}
	return nil
}

// bookmark takes`,
	},
	{
		name: "an object made again is the one that was", peer: byUIDOnly, file: "snapshot/difference.go", in: "accumulator", caught: "TestG7DeltasAreExact",
		old: `object.UIDOf(d.Old) != object.UIDOf(d.New) {`, new: `object.UIDOf(d.Old) != object.UIDOf(d.New) && false {`,
	},
	{
		name: "objects without UIDs are one", peer: byUIDOnly, file: store, caught: "TestG4OnAFakeAnOwnWriteHoldsUntilItsEventEvenIfThatCameFirst",
		old: `!coherence.Comparable(o.GetResourceVersion())) && !sameContent(shown, o) {`, new: `false) {`,
	},
	{
		name: "what went in a gap of the watch stays", peer: byUIDOnly, file: replacing, caught: streamModel,
		old: `		if _, ok := fresh[key]; !ok {
			wake`,
		new: `		if _, ok := fresh[key]; ok {
			wake`,
	},
	{
		name: "a write of another namespace is shown", peer: ignoresQuery, file: shape, caught: streamModel,
		old: `(s.key.namespace == "" || s.key.namespace == key.Namespace)`, new: `(s.key.namespace != "?")`,
	},
	{
		name: "a write that the selector does not match is shown", peer: ignoresQuery, file: write, caught: "TestG4AWriteThatMovesAnObjectInOrOutOfTheQueryIsShown",
		old: `if !selected {`, new: `if !selected && false {`,
	},
	{
		name: "an entry of what is gone never ends", peer: neverSynced, file: view, in: "accumulator", caught: "TestG6CreateThenDeleteBeforeTheWatchSawEitherWedgesNothing",
		old: `if p := v.order[n]; v.current(p) {`, new: `if p := v.order[n]; v.current(p) && v.entries[p.key].object != nil {`,
	},
}
