package mutants

const (
	agenda    = "accumulator/partition/agenda.go"
	keys      = "accumulator/partition/keys.go"
	placing   = "accumulator/partition/placing.go"
	hushed    = "accumulator/partition/hushed.go"
	partition = "accumulator/partition/partition.go"
	turn      = "accumulator/partition/turn.go"
	scheduler = "accumulator/partition/scheduler.go"
	indexes   = "accumulator/partition/indexes.go"
	taking    = "accumulator/partition/taking.go"

	moves   = "TestAnObjectThatMovesActivatesBothKeysAndNoOther"
	empties = "TestG6AnEmptiedPartitionIsHandedOutOnceMoreEmptyUntilThatIsDoneAndThenForgotten"
	holds   = "TestAKeyIsHeldByOneAndAMispairedDoneNeitherForgetsNorDoublesIt"
	panicky = "TestG8AKeyFunctionThatPanicsLeavesOutThatObjectWhereItWasUntilItsNextVersion"
	parts   = "TestModelG4G5G6G7G9PartitionsAreTheModels"
	naive   = "TestModelG3TheAgendaIsTheNaiveOne"
	lookups = "TestModelG4G5G6APartitionIsActivatedByWhatItHasReadAndByNothingElse"
)

// gated are mistakes that the models of partitions, look-ups and references notice only because
// they hold goroutines up at points: without that they pass.
var gated = []mutant{
	{
		name: "a turn that ends while things are taken counts as one before", says: "the next turn shows what was written before that moment", file: taking, caught: parts,
		old: `	p.scheduler.taking()
	if err`, new: `	defer p.scheduler.taking()
	if err`,
	},
	{
		name: "an object keeps the keys of a function that was replaced", says: "objects get their keys anew", file: "accumulator/partition/keys.go",
		caught: "TestG7ObjectsOfAQueryThatIsReplacedHaveTheKeysOfTheNewFunction",
		old:    `if !b.Anew {`, new: `if true {`,
	},
	{
		name: "what a removed query had stays", says: "its objects leave all partitions", file: "accumulator/partition/adapt.go",
		caught: "TestG7WhatARemovedQueryHadLeavesWithItsDeletions",
		old:    `f.Taken = emptied`, new: `_ = emptied`,
	},
	{
		name: "the end of a turn makes nothing stale", says: "the next turn shows what was written before that moment", file: scheduler, caught: lookups,
		old: `	s.conclude(part)
	s.stale = true`, new: `	s.conclude(part)`,
	},
	{
		name: "what comes after its stream was taken is taken for what was before", says: "a stream notes each change at once", file: "accumulator/query/references.go",
		in: "accumulator", caught: refsModel,
		old: `	r.dropped = nil
	for ref := range r.fresh.take() {`, new: `	r.dropped = nil
	defer func() {
		r.fresh.mu.Lock()
		defer r.fresh.mu.Unlock()
		for ref := range r.fresh.all {
			if fresh[ref.key] != nil {
				delete(r.fresh.all, ref)
			}
		}
	}()
	for ref := range r.fresh.take() {`,
	},
}

// partitions are mistakes in snapshots by key.
var partitions = []mutant{
	{
		name: "a change waits for all keys that are due", says: "a key that has changed goes before keys that wait for their first call", file: scheduler,
		caught: "TestAChangeDoesNotWaitForAllOtherKeys", old: `if r == forOne && s.started {`, new: `if r == forAll && s.started {`,
	},
	{
		name: "keys that are due with all starve", says: "one call of five is theirs", file: "accumulator/partition/queue.go",
		caught: "TestNoKeyStarvesThoughOthersChangeAllTheTime", old: `q.row >= inARow`, new: `q.row < 0`,
	},
	{
		name: "another try of a change queues behind all keys", says: "a key that has changed goes before keys that wait for their first call", file: agenda,
		caught: "TestAnotherTryOfAChangeComesBeforeOtherKeysToo", old: `e.own = e.own || e.was`, new: `e.own = e.own || false`,
	},
	{
		name: "a key that came while things were taken sleeps on", says: "a change for all partitions makes each of them due", file: taking,
		caught: "TestG2AKeyThatComesQuietlyWhileThingsAreTakenHasATurnForWhatChangesForAllAfterIt",
		old:    `	if shared || p.torn && p.quiet {`, new: `	if shared {`,
	},
	{
		name: "a signal that comes late misses the keys that are new", says: "a change for all partitions makes each of them due", file: taking,
		caught: "TestG2AKeyThatCameQuietlyHasATurnForWhatTurnsOutToBeWorthIt",
		old:    `shared || !lookup && len(late) > 0`, new: `shared || lookup && len(late) > 0`,
	},
	{
		name: "a signal of a deletion that comes late misses the keys that are new", says: "a change for all partitions makes each of them due", file: taking,
		caught: "TestG2AKeyThatCameQuietlyHasATurnForADeletionThatTurnsOutToBeWorthIt",
		old:    `len(late) > 0 && f.Shown.common`, new: `len(late) > 0 && f.Shown.shared.Held() > 0`,
	},
	{
		name: "a late signal reaches the keys alone that the object has now", says: "handed out when one of its objects changes", file: hushed,
		caught: "TestG2AKeyHasATurnForWhatTurnsOutToBeWorthItThoughTheObjectHasMovedOnQuietly",
		old:    `s.hushed[i].note(key, part, dirty)`, new: `_ = dirty`,
	},
	{
		name: "a late signal reaches the keys alone that would read the object now", says: "handed out when one of its objects changes", file: consult,
		caught: "TestG2AKeyHasATurnForWhatItHasReadThatTurnsOutToBeWorthItThoughItHasChangedQuietlySince",
		old:    `s.heed(part, i, m.key, m.signal, forOne)`, new: `if m.signal {
					s.activate(part, forOne)
				}`,
	},
	{
		name: "a list that comes before a late signal swallows it", says: "handed out when one of its objects changes", file: taking,
		caught: "TestG2AKeyHasATurnForWhatTurnsOutToBeWorthItThoughAListComesBeforeThat",
		old:    `signals = p.scheduler.quiet(i)`, new: `_ = p.scheduler.quiet`,
	},
	{
		name: "what a key has not been told of is kept when it has been", says: "never by the number of events", file: scheduler,
		caught: "TestG6WhatIsHushedIsForgottenWhenItsKeyHasATurnOrIsGone",
		old: `	s.told(part)
`, new: ``,
	},
	{
		name: "the key that an object leaves sleeps on", says: "an object that moves activates both", file: placing, caught: moves,
		old: `				s.touch(s.parts[key], i, m, forOne)
			}
			for _, key := range has {`,
		new: `				s.parts[key].touch(i, m)
			}
			for _, key := range has {`,
	},
	{
		name: "an emptied partition is forgotten at once", says: "handed out once more, empty", file: placing, caught: empties,
		old: `	case part.seen == unseen:`, new: `	case part.seen == unseen || !part.state.runs():`,
	},
	{
		name: "an emptied partition shows what all have", says: "handed out once more, empty", file: indexes, caught: empties,
		old: `			table = x.binding.NewTable(i)
			x.setTable(sh, nil)
`, new: ``,
	},
	{
		name: "an emptied partition is owed once, whatever came of it", says: "until that turn is done without an error", file: scheduler, caught: empties,
		old: `	part.forced = true
	s.agenda.rest(&part.entry, after)`,
		new: `	if part.seen == withoutObjects {
		s.succeed(part)
		return
	}
	part.forced = true
	s.agenda.rest(&part.entry, after)`,
	},
	{
		name: "keys that are gone stay in the queue", says: "never by the number of events", file: placing,
		caught: "TestG3WhatWaitsIsBoundedByTheObjectsThereAre",
		old: `	s.agenda.drop(&part.entry)
`, new: ``,
	},
	{
		name: "a late Done ends another's turn", says: "further calls do nothing, whoever has the key by then", file: turn, caught: holds,
		old: `	if t.ended.Swap(true) {`, new: `	if t.ended.Swap(false) {`,
	},
	{
		name: "what comes during a turn is forgotten", says: "when something of it has changed since", file: agenda, caught: holds,
		old: `	case keyRunningReady:
		a.enqueue(e, time.Now())
`,
		new: `	case keyRunningReady:
		e.state = keyIdle
`,
	},
	{
		name: "a change ends the backoff of its key", says: "after its backoff, however much changes meanwhile", file: agenda,
		caught: "TestAnErrorBacksItsKeyOffHoweverMuchChangesAndHoldsNobodyElseUp",
		old: `	case keyIdle:
		e.state = keyWaiting
`,
		new: `	case keyResting:
		heap.Remove(&a.rests, e.place-1)
		e.notBefore = time.Time{}
		fallthrough
	case keyIdle:
		e.state = keyWaiting
`,
	},
	{
		name: "what came and went is a turn", says: "what came and went unseen is no turn", file: scheduler, caught: "TestG7WhatCameAndWentUnseenIsNoTurn",
		old: `	if !part.forced && !gone && !changed(part) {`, new: `	if false && gone {`,
	},
	{
		name: "what left and is back as it was is a turn", says: "or is as the last turn had it, is no turn", file: indexes,
		caught: "TestG7WhatLeftAndIsBackUnseenIsNoTurn",
		old:    ` || was.shown == nil || was.shown != now.source()`, new: ` || was.in`,
	},
	{
		name: "a key that is gone still waits to be quiet", says: "never by the number of events",
		file: agenda, caught: "TestG3ToReleaseKeysCostsNothingForThoseThatWaitAndWhoIsGoneWaitsNoMore",
		old: `	if e.state.waits() {
		a.unwait(e)
	}
	switch {`, new: `	switch {`,
	},
	{
		name: "a key that has rested wakes nobody", says: "after its backoff", file: agenda, caught: naive,
		old: `	heap.Push(&a.rests, e)
	a.set(a.rested, a.rests)
`, new: `	heap.Push(&a.rests, e)
`,
	},
	{
		name: "a rest outlives the end", says: "ends every goroutine, watch and timer", file: agenda,
		caught: "TestG11NothingFiresAfterAnAgendaIsClosed",
		old:    `	if a.closed || len(h) == 0 {`, new: `	if len(h) == 0 {`,
	},
	{
		name: "a quiet own write activates its keys", says: "what is not worth a signal is in the key's next turn all the same", file: keys,
		caught: "TestG4AnOwnWriteIsInTheNextTurnAndActivatesItsKeysUnlessItIsQuiet",
		old:    `signal: b.Whole || b.Signals[c.Key]`, new: `signal: true`,
	},
	{
		name: "what is judged when it has been taken activates nothing", says: "a key is due if an object that it has has changed in a way that is worth a signal",
		file: untaken, in: "accumulator/partition", caught: "TestAChangeThatIsNotWorthASignalActivatesNothingAndIsInTheNextTurn",
		old: `	to := &n.late
`,
		new: `	if !dirty {
		return
	}
	to := &n.late
`,
	},
	{
		name: "a panic of a key function is everybody's", says: "that one object is left out", file: keys, caught: panicky,
		old: `	err = guard.Named("the key function panicked", func() error {
		keys = slices.Clone(f(o))
		return nil
	})`, new: `	keys = slices.Clone(f(o))
	_ = guard.Named`,
	},
	{
		name: "a partition ends because an object's key cannot be read", says: "a partition never ends because something does not decode", file: keys, caught: panicky,
		old: `			left.keys, left.every = old.keys, old.every`, new: `			left.every = false`,
	},
	{
		name: "a partition that comes misses what has changed for all", says: "a change of what belongs to all activates all", file: placing, caught: "TestG2AKeyThatComesQuietlyHasATurnForWhatHasChangedForAll",
		old: `		if part.fresh {
			s.activate(part, forAll)`,
		new: `		if !part.fresh {
			s.activate(part, forAll)`,
	},
	{
		name: "a difference forgets what was shown", says: "differences to the last turn of the key", file: partition, caught: parts,
		old: `		sh.dirty[s.key] = b
	}`,
		new: `		if !dirty {
			sh.dirty[s.key] = before{}
		}
	}`,
	},
	{
		name: "the deltas of a turn that failed are lost", says: "since the last turn that ended without an error", file: "kates/run_each.go",
		caught: "TestG7TheDeltasOfATurnAreThoseSinceTheLastOneOfItsKeyWithoutAnError",
		old:    `		p.failed[t.turn.Key] = t.changes`, new: `		delete(p.failed, t.turn.Key)`,
	},
	{
		name: "a key is handed out as it was before its last turn ended", says: "when a turn ended", file: taking,
		caught: "TestG4AKeyWhoseTurnEndsWhileAnotherWorkerTakesThingsInHasItsOwnWritesInTheNextOne",
		old:    `		if p.scheduler.isStale() {`, new: `		if false {`,
	},
	{
		name: "a target within a turn's slice is taken", says: "refuse a target that is a live shared object", file: indexes,
		caught: "TestG10WhatPointsIntoASliceOfATurnIsShared",
		old:    `table != nil && table.Contains(o)`, new: `table == nil`,
	},
}
