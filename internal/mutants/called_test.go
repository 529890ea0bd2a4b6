package mutants

const (
	tellCalls = "kates/observe_calls.go"
	inLoops   = "internal/keyed/calls.go"

	toldOfCalls = "TestAnObserverIsToldOfEachCallAndHowItHasEnded"
	callIDs     = "TestEachCallHasAnIDAndALoggerThatHasIt"
	queuedCalls = "TestAKeyIsQueuedFromWhenItIsReadyUntilItsCall"
)

// called are mistakes in what operators are told of calls and writes.
var called = []mutant{
	{
		name: "the panic of an observer ends the call", says: "A panic of one is logged, and ends nothing", file: "kates/observe_told.go",
		caught: "TestAnObserverThatPanicsHarmsNeitherTheCallNorTheOthers",
		old: `	err := guard.Named(what, func() error {
		f()
		return nil
	})
`, new: `	f()
	err := guard.Named(what, func() error { return nil })
`,
	},
	{
		name: "a call does not have the context of its observer", says: "What it returns is the context of the call", file: tellCalls, caught: toldOfCalls,
		old: `				ctx = inner`, new: `				_ = inner`,
	},
	{
		name: "a request for another call with backoff is a failure", says: "CallRequeued: it has asked for another call", file: tries, in: inKates, caught: toldOfCalls,
		old: `		return Result{Ended: Requeued}
`, new: `		return Result{Ended: Failed, Err: asked}
`,
	},
	{
		name: "a call that ends its goroutine has succeeded", says: "CallCut says nothing about it", file: tries, in: inKates,
		caught: "TestAPermanentErrorAndTheEndOfAGoroutineAreEndsOfCalls",
		old:    `	r := Result{Ended: Cut} // also`, new: `	r := Result{Ended: Succeeded} // also`,
	},
	{
		name: "what comes while all workers are busy is not queued", says: "how long the key was due before the call", file: "accumulator/partition/taking.go", in: inKates, caught: queuedCalls,
		old: `p.received.CompareAndSwap(0, p.collector.Signalled().UnixNano())`, new: `p.received.CompareAndSwap(0, 0)`,
	},
	{
		name: "a key whose rest is over is not queued", says: "how long the key was due before the call", file: agenda, in: inKates, caught: queuedCalls,
		old: `		since := e.notBefore
`, new: `		since := time.Now()
`,
	},
	{
		name: "a failure is reported after a success", says: "keys whose last call has failed", file: inLoops, in: "kates/inspect",
		caught: "TestAReportNamesAHundredFailingKeysAndCountsAll",
		old:    `	case Succeeded, Requeued:`, new: `	case Requeued:`,
	},
	{
		name: "a key fails since its last failure", says: "Since is when the first of the failures in a row was", file: inLoops, in: "kates/inspect",
		caught: "TestALoopIsReportedWithItsCallsAndFailuresWhileItRuns",
		old: `			failure.Since = before.Since
`, new: `			_ = before
`,
	},
	{
		name: "a loop that has ended is reported", says: "an open Run", file: inLoops, in: "kates/inspect",
		caught: "TestALoopIsReportedWithItsCallsAndFailuresWhileItRuns",
		old:    `func(other *Calls) bool { return other == c }`, new: `func(other *Calls) bool { return other != c }`,
	},
	{
		name: "nobody is told of calls for a cluster that has left", says: "each call", file: "fleet/run_place.go",
		caught: "TestAnObserverOfTheClustersClientsIsToldOfCallsForTheWholeFleetAndForClustersThatLeft",
		old: `	tries.Calls = p.of.plan.Calls
`, new: ``,
	},
	{
		name: "the line of a failed call lacks the ID", says: "The log line of a failed call has it", file: tries, in: inKates, caught: callIDs,
		old: `log.WithValues("reconcileID", call.ID), stack`, new: `log.WithValues("id", call.ID), stack`,
	},
	{
		name: "the line of a write lacks the ID of its call", says: "so have those of the writes", file: "kates/write_log.go", caught: callIDs,
		old: `keyed.LogOf(ctx, c.core.log).V(`, new: `keyed.LogOf(context.Background(), c.core.log).V(`,
	},
	{
		name: "the error of a write is in the log", says: "There is nothing of the object's content in it", file: "kates/write_log.go",
		caught: "TestTheLineOfAWriteSaysWhomItWasForAndNothingOfTheContent",
		old:    `"reason", reasonOf(ctx, err))`, new: `"reason", reasonOf(ctx, err)+err.Error())`,
	},
}
