package mutants

const (
	counts    = "TestAReportCountsWhatAWatchHasDone"
	reasons   = "TestListsAndWatchesAreCountedByReason"
	pendings  = "TestAReportShowsOwnWritesThatTheWatchHasNotBrought"
	keyStates = "TestKeysAreCountedByState"
	inspector = "kates/inspect"
)

// inspected are mistakes in what a client says of itself, and in who is told of what it does.
var inspected = []mutant{
	{
		name: "a change of an object that waits is not coalesced", says: "Coalesced", file: "accumulator/stream/listener.go", in: inspector, caught: counts,
		old: `		l.tide.coalesced++
`, new: ``,
	},
	{
		name: "what came and went is in a snapshot", says: "Coalesced", file: "accumulator/stream/listener.go", in: inspector, caught: counts,
		old: `		l.tide.coalesced += 2 // it came and went
`, new: ``,
	},
	{
		name: "what was taken still waits", says: "UntakenSince", file: "accumulator/stream/untaken.go", in: inspector, caught: counts,
		old: `u.signals.dirty, u.signals.late, u.tide.since = nil, nil, time.Time{}`, new: `u.signals.dirty, u.signals.late = nil, nil`,
	},
	{
		name: "a list after a 410 is one after a failure", says: "ListExpired", file: "accumulator/stream/tally.go", in: inspector, caught: reasons,
		old: `	case expired(err.error):
		return listExpired
`, new: ``,
	},
	{
		name: "a watch that was silent has ended", says: "WatchIdle", file: "accumulator/stream/tally.go", in: inspector, caught: reasons,
		old: `	case e.silent:
		return watchIdle
`, new: ``,
	},
	{
		name: "an own write waits since the year 1", says: "PendingSince", file: "coherence/outstanding.go", in: inspector, caught: pendings,
		old: `Version: e.atRV, Since: e.since}`, new: `Version: e.atRV}`,
	},
	{
		name: "a key that rests is counted as ready", says: "Resting after", file: "accumulator/partition/inspect.go", in: inspector, caught: keyStates,
		old: `in.Resting = a.queue.length(), a.active.length, len(a.rests)`, new: `in.Resting = a.queue.length()+len(a.rests), a.active.length, 0`,
	},
	{
		name: "an observer is told of each Update", says: "a snapshot that differs", file: "accumulator/update.go", in: "kates", caught: "TestAnObserverIsToldOfSnapshotsThatDiffer",
		old: `began, result.Changed, result.Differences`, new: `began, true, result.Differences`,
	},
	{
		name: "an observer is told of each event", says: "they cost what snapshots cost, and nothing per event", file: "accumulator/collect/collector.go", in: "accumulator",
		caught: "TestAnEventAllocatesNothingForAnObserverAndIsNotToldToIt",
		old: `			c.Note()
			c.pacer.poke()
`, new: `			c.Note()
			c.Updated("", time.Now(), true, nil)
			c.pacer.poke()
`,
	},
	{
		name: "a panic of an observer is the program's", says: "A panic of one is logged", file: "kates/observe_told.go", in: "kates", caught: "TestG8AnObserverThatPanicsEndsNothing",
		old: `	err := guard.Named(what, func() error {
		f()
		return nil
	})`, new: `	err := guard.Named(what, func() error { return nil })
	f()`,
	},
	{
		name: "a request does not have the context of its observer", says: "the context of", file: "internal/wire/observed.go", in: "kates", caught: "TestAnObserverIsToldOfRequests",
		old: `		r = r.WithContext(ctx)
`, new: ``,
	},
	{
		name: "the namespace in a path is the object", says: "Namespace and Name", file: "internal/wire/observed.go", caught: "TestARequestIsReadFromItsPath",
		old: `			parts = parts[2:]
`, new: ``,
	},
	{
		name: "the logger of a call says the bodies of requests", says: "without its most verbose lines", file: "internal/keyed/id.go", in: "kates",
		caught: "TestTheLoggerOfACallSaysNoBodyOfARequest",
		old:    `level < bodies && s.LogSink.Enabled(level)`, new: `s.LogSink.Enabled(level)`,
	},
}
