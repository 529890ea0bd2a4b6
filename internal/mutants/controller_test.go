package mutants

const (
	reconciles = "controller/reconcile.go"
	roles      = "kates/run_controlled.go"

	inController = "controller"
	deleted      = "TestARootThatWasDeletedIsReconciledOnceMoreWithTheLastKnownObjectAndWhatItOwns"
	left         = "TestARootThatLeftItsQueryIsToldFromOneThatWasDeletedAsFarAsTheServerTells"
	requeues     = "TestRequeueAfterReconcilesOnceMoreThenUnlessSomethingIsEarlier"
	debounces    = "TestADebouncedKeyIsReconciledWhenItIsQuietButNoLaterThanAMost"
)

// controllers are mistakes in how reconcilers are called for roots.
var controllers = []mutant{
	{
		name: "what an earlier root of the name owned is the present one's", says: "the objects whose controller reference has its UID", file: roles,
		in: inController, caught: "TestOwnedIsWhatTheRootControlsByUIDAndNotWhatAnEarlierRootOfItsNameDid",
		old: `return owner != nil && owner.UID == uid`, new: `return owner != nil`,
	},
	{
		name: "a departed root has what others of its name owned", says: "with the last object that was known", file: reconciles, caught: deleted,
		old: `		turn.OwnedBy(root.GetUID())
`, new: ``,
	},
	{
		name: "a root that nothing refers to is taken for deleted", says: "where the root's query has selectors or Refs", file: "kates/run_controlled.go",
		in: inController, caught: "TestARootThatNothingRefersToAnyMoreHasLeftAndIsNotTakenForDeleted",
		old: ` || t.Refs != nil`, new: ``,
	},
	{
		name: "a departed root is never forgotten", says: "then the key is forgotten", file: reconciles, caught: deleted,
		old: `k.root, f = nil, nil`, new: `f = nil`,
	},
	{
		name: "what left its query was deleted", says: "whether it was deleted, or has left the query", file: reconciles, caught: left,
		old: `if replaced || !r.watch.Selective() {`, new: `if true {`,
	},
	{
		name: "another object of the name is the one that left", says: "whether it was deleted, or has left the query", file: reconciles, caught: left,
		old: `case found.GetUID() != root.GetUID():`, new: `case false:`,
	},
	{
		name: "the successor of a departed root waits for a change", says: "it is reconciled next", file: reconciles,
		caught: "TestG7ARootThatAnotherOneReplacedDepartsFirstAndItsSuccessorIsNextWithItsOwnWritesInSight",
		old: `		r.watch.Trigger(turn.Name())
	}
}`, new: `	}
}`,
	},
	{
		name: "a root that cannot be read has departed", says: "a root that does not decode has not departed", file: reconciles,
		caught: "TestG8ARootThatCannotBeReadHasNotDepartedAndIsAnErrorUntilItCan",
		old:    `k.root != nil && (!turn.Exists() || `, new: `k.root != nil && (turn.Object == nil || `,
	},
	{
		name: "a departure waits until the next root of the name can be read", says: "that one has departed, and the reconciler is told so first", file: reconciles,
		caught: "TestG8ARootHasDepartedThoughTheNextOneOfItsNameCannotBeRead",
		old:    `k.root != nil && (!turn.Exists() || `, new: `k.root != nil && (!turn.Exists() || turn.Unread == nil && `,
	},
	{
		name: "who is not to be told of departures is", says: "it never sees a root that is not there", file: reconciles,
		caught: "TestAReconcilerThatDoesNotAskIsNotToldOfDepartures",
		old:    `(!ours || r.plan.Special == nil)`, new: `!ours`,
	},
	{
		name: "a departed root that is to be reconciled again is forgotten", says: "neither an error nor RequeueAfter", file: turn,
		in: inController, caught: "TestADepartedRootIsReconciledUntilThatSucceedsAndThenForgotten",
		old: `t.end((*scheduler).keep)`, new: `t.end((*scheduler).succeed)`,
	},
	{
		name: "a departed root without a trace has nothing of what is for all", says: "where it is EveryPartition, to every root", file: indexes,
		in: inController, caught: "TestADepartedRootHasWhatIsForAllThoughNothingElseHasItsKey",
		old: `t.Gone && !x.lasting`, new: `t.Gone`,
	},
	{
		name: "an earlier reconcile does not replace a requeue", says: "one more reconcile then, if nothing comes earlier", file: "internal/keyed/worker.go", in: inController, caught: requeues,
		old: `		timer.Stop()
		delete(l.queued, key)`, new: `		delete(l.queued, key)`,
	},
	{
		name: "the wait that comes with an error is the backoff's", says: "RequeueAfter with an error sets the wait itself", file: turn,
		in: inController, caught: "TestRequeueAfterWithAnErrorIsTheWaitInPlaceOfTheBackoff",
		old: `s.rest(part, after) })`, new: `_ = after; s.fail(part) })`,
	},
	{
		name: "a permanent error of a key is tried again", says: "not tried again until something changes for the key", file: reconciles,
		caught: "TestAPermanentErrorWaitsForAChangeAndEndsNothing",
		old:    `	if o.Final {`, new: `	if o.Again = max(o.Again, 1_000_000_000); false {`,
	},
	{
		name: "a key that never gets quiet waits for ever", says: "but no longer than most", file: agenda, in: inController, caught: debounces,
		old: `limit.Before(at) {`, new: `limit.Before(at) && false {`,
	},
	{
		name: "what there is at first waits to be quiet", says: "what there is at first does not wait", file: scheduler, in: inController, caught: debounces,
		old: ` || !s.started {`, new: ` {`,
	},
	{
		name: "the end cuts what runs short", says: "those that run have the grace period to return", file: "internal/keyed/loop.go", in: inController,
		caught: "TestWhenItsContextEndsNoWorkBeginsAndWhatRunsMayFinish",
		old:    `time.After(l.Grace.Period)`, new: `time.After(0)`,
	},
	{
		name: "a lease that is lost in the grace period is not missed", says: "who loses the lease has the contexts of its reconciles cancelled at once",
		file: "internal/lease/lead.go", in: inController,
		caught: "TestWhoLosesTheLeaseHasItsReconcilesCancelledAtOnceAlsoWithinTheGracePeriod/in_the_grace_period",
		old:    `whileLeading(context.WithoutCancel(ctx), candidate)`, new: `whileLeading(ctx, candidate)`,
	},
	{
		name: "a shard reconciles what is another's", says: "false if the key is not this replica's", file: reconciles,
		caught: "TestKeysOfOtherReplicasWaitUntilTheyAreThisOnes",
		old:    `k.departed || ours && turn.Exists()`, new: `k.departed || turn.Exists()`,
	},
	{
		name: "a key is left after its turn has ended", says: "one that departs while its key is on its way", file: "internal/keyed/worker.go", in: inController,
		caught: "TestAShardTellsOfADepartureThatComesWhileAnotherWorkerEndsTheKeysTurn",
		old: `	l.keep(key, t)
	leave()
`, new: `	l.keep(key, t)
`,
	},
	{
		name: "a departure that is cut short is over", says: "A root that departs is told to the key's owner", file: reconciles,
		caught: "TestADepartureThatIsCutShortIsToldAgainByWhoHasTheKeyStill",
		old:    `turn.Yield() //`, new: `turn.Done(nil) //`,
	},
}
