package mutants

// loops are mistakes in Run and with leases.
var loops = []mutant{
	{
		name: "a try again has the snapshot that failed", says: "Run tries again after an error, with the newest snapshot and all deltas of the try before, no sooner than its backoff",
		in: "Whole.loop", caught: "TestAnErrorMeansATryWithTheNewestSnapshotNoSoonerThanItsBackoffAlsoUnderChurn",
		old: `again, err := w.try(calls, snap)`,
		new: `again, err := w.try(calls, snap)
			for again > 0 && err == nil {
				Pause(ctx, again, nil)
				again, err = w.try(calls, snap)
			}`,
	},
	{
		name: "a try again has only the deltas since the one that failed", says: "Run tries again after an error, with the newest snapshot and all deltas of the try before, no sooner than its backoff",
		in: "Whole.try", caught: "TestG7ATryAgainHasTheDeltasOfTheTryBeforeToo",
		old: `o.Err == nil`,
		new: `true`,
	},
	{
		name: "a call is cut off at the end of its run", says: "a call may finish within the shutdown timeout, but for that of a leader that has lost its lease",
		in: "Whole.lead", caught: "TestACallMayFinishWithinTheShutdownTimeout",
		old: `return w.loop(ctx, calls)`,
		new: `_ = calls
			return w.loop(ctx, ctx)`,
	},
	{
		name: "a former leader has a grace period", says: "a call may finish within the shutdown timeout, but for that of a leader that has lost its lease",
		in: "Whole.lead", caught: "TestALeaderThatLosesItsLeaseHasNoGrace",
		old: `w.Grace.Extend(ctx, lease, w.running.Load)`,
		new: `w.Grace.Extend(ctx, context.WithoutCancel(lease), w.running.Load)`,
	},
	{
		name: "an error waits for a change", says: "a panic of a user's function is an error like any other",
		in: "Whole.loop", caught: "TestG8APanicOfTheFunctionIsAnErrorWithAStackAndIsTriedAgain",
		old: `again > 0`,
		new: `false`,
	},
	{
		name: "a panic of a key function is everybody's", says: "a panic of a user's function is an error like any other",
		in: "partition.keysOf", caught: "TestG8AKeyFunctionThatPanicsLeavesOutThatObjectWhereItWasUntilItsNextVersion",
		old: `err = guard.Named(query.KeyPanicked, func() error {
				keys = slices.Clone(f(o))
				return nil
			})`,
		new: `keys = slices.Clone(f(o))
			_ = guard.Named`,
	},
	{
		name: "a replica without a snapshot leads", says: "a replica stands for election when its first snapshot is complete, and never acts on one from before it has won",
		in: "Leader.Prepare", caught: "TestAReplicaStandsForElectionWhenItsFirstSnapshotIsComplete",
		old: `l.Watch.Ready() == nil`,
		new: `l.Watch.Ready() == nil || true`,
	},
	{
		name: "a new leader begins with what it has", says: "a replica stands for election when its first snapshot is complete, and never acts on one from before it has won",
		in: "Leader.CatchUp", caught: "TestANewLeaderDoesNotActOnAnOldSnapshot",
		old: `l.Watch.Sync(ctx)`,
		new: `ctx.Err()`,
	},
	{
		name: "the lease is released when the run is cancelled", says: "a lease is released by the process that holds it, when its work has ended",
		in: "lease.Lead", caught: "TestTheLeaseIsRenewedUntilTheFunctionHasReturnedAndThenReleased",
		old: `candidate.Resign()`,
		new: `context.AfterFunc(ctx, candidate.Resign)`,
	},
	{
		name: "a lease that was lost is released", says: "a lease is released by the process that holds it, when its work has ended",
		in: "Candidate.Resign", caught: "TestALeaderWhoCannotRenewHasLostBeforeAnyoneElseCanHaveTheLease",
		old: `c.config.Release && c.state != lost`,
		new: `c.config.Release`,
	},
	{
		name: "a lease expires by the clock of its holder", says: "a lease that was not renewed is lost, by no clock but one's own",
		in: "campaign.valid", caught: "TestALeaseExpiresByWhenItWasSeenUnchangedAndNotByItsHoldersClock",
		old: `c.since`,
		new: `c.observed.renewed`,
	},
	{
		name: "a write is sent though its lease is over", says: "a write that a lease guards is sent only while the lease holds",
		in: "fence.transport.RoundTrip", caught: "TestAWriteIsNotSentWhenItsLeaseIsOver",
		old: `Check(r.Context())`,
		new: `error(nil)`,
	},
	{
		name: "a write is sent once more though its lease is over", says: "a write that a lease guards is sent only while the lease holds",
		in: "fence.transport.RoundTrip", caught: "TestAWriteIsNotSentAgainWhenItsLeaseIsOver",
		old: `&body{b, r}`,
		new: `b`,
	},
	{
		name: "a change waits for all keys that are due", says: "a key that has changed goes before keys that wait for their first call, and no key starves",
		in: "scheduler.putAhead", caught: "TestAChangeDoesNotWaitForAllOtherKeys",
		old: `forOne`,
		new: `forAll`,
	},
	{
		name: "keys that are due with all starve", says: "a key that has changed goes before keys that wait for their first call, and no key starves",
		in: "queue.next", caught: "TestNoKeyStarvesThoughOthersChangeAllTheTime",
		old: `q.row >= inARow`,
		new: `q.row < 0`,
	},
}

// partitions are mistakes with keys and with what names what.
var partitions = []mutant{
	{
		name: "an emptied partition is forgotten at once", says: "a key whose last object has gone is handed out once more, empty",
		in: "scheduler.emptied", caught: "TestG6AnEmptiedPartitionIsHandedOutOnceMoreEmptyUntilThatIsDoneAndThenForgotten",
		old: `part.seen == unseen`,
		new: `part.seen == unseen || !part.Runs()`,
	},
	{
		name: "what comes during a turn is forgotten", says: "a key has one worker at a time, and what changes meanwhile is for its next turn",
		in: "Agenda.Done", caught: "TestAKeyIsHeldByOneAndAMispairedDoneNeitherForgetsNorDoublesIt",
		old: `a.enqueue(e, time.Now())`,
		new: `e.state = keyIdle`,
	},
	{
		name: "the deltas of a turn that failed are lost", says: "the deltas of a turn are those since the last turn of its key that ended without an error",
		in: "turnReports.Ended", caught: "TestG7TheDeltasOfATurnAreThoseSinceTheLastOneOfItsKeyWithoutAnError",
		old: `p.failed[key] = reported.(*changes)`,
		new: `_ = reported; delete(p.failed, key)`,
	},
	{
		name: "what changes during a turn is held against nothing", says: "a key has a turn when something has changed that it has read, absence included",
		in: "scheduler.consult", caught: "TestG2WhatChangesAfterItWasReadInATurnActivatesTheKeyAgain",
		old: `sh.note(m)`,
		new: `_ = m; sh.note(moved{})`,
	},
	{
		name: "what names something is shown before that is known", says: "an object is shown when what it names is known",
		in: "reading.hold", caught: "TestG1G8AnObjectIsShownWhenWhatItNamesIsKnownAndNothingElseWaits",
		old: `s.patience(w) > 0`,
		new: `false`,
	},
	{
		name: "the first snapshot does not wait for what is named", says: "an object is shown when what it names is known",
		in: "followed.Phase", caught: "TestG1TheFirstSnapshotWaitsUntilWhatIsNamedIsKnown/paged",
		old: `!r.known.Load() || slices.ContainsFunc(all, func(l *stream.Listener) bool { return !r.ready(l, k.Query().Optional) })`,
		new: `!r.known.Load() && slices.ContainsFunc(all, func(l *stream.Listener) bool { return !r.ready(l, k.Query().Optional) })`,
	},
	{
		name: "one that may not be read is waited for without end", says: "what is named is watched for as long as it is named",
		in: "followed.ready", caught: "TestG8WhatMayNotBeReadOrIsNotAnsweredIsWaitedForAWhileOnly/refused",
		old: `(optional || r.host.Ready())`,
		new: `optional`,
	},
}

// controllers are mistakes in reconcilers.
var controllers = []mutant{
	{
		name: "a root that nothing refers to is taken for deleted", says: "a reconciler is told of a root that has departed, and of no other",
		in: "Wanted.Narrows", caught: "TestARootThatNothingRefersToAnyMoreHasLeftAndIsNotTakenForDeleted",
		old: `w.Refs != nil`,
		new: `false`,
	},
	{
		name: "what left its query was deleted", says: "a reconciler is told of a root that has departed, and of no other",
		in: "run.departure", caught: "TestARootThatLeftItsQueryIsToldFromOneThatWasDeletedAsFarAsTheServerTells",
		old: `replaced || !r.watch.Selective()`,
		new: `true`,
	},
	{
		name: "an earlier reconcile does not replace a requeue", says: "a reconciler says when its key is next, by RequeueAfter or by a permanent error",
		in: "Loop.unqueue", caught: "TestRequeueAfterReconcilesOnceMoreThenUnlessSomethingIsEarlier",
		old: `timer.Stop()`,
	},
	{
		name: "a permanent error of a key is tried again", says: "a reconciler says when its key is next, by RequeueAfter or by a permanent error",
		in: "run.failed", caught: "TestAPermanentErrorWaitsForAChangeAndEndsNothing",
		old: `if o.Final {
				r.done(turn, k, f)
				return
			}`,
		new: `if o.Again = max(o.Again, 1_000_000_000); false {
				r.done(turn, k, f)
				return
			}`,
	},
}

// replicas are mistakes with keys that several replicas divide.
var replicas = []mutant{
	{
		name: "others' claims do not matter", says: "each key is one replica's, and moves when its work has ended",
		in: "members.others", caught: "TestAKeyIsNotTakenWhileAnotherClaimsIt",
		old: `name != m.self && o.claim != nil`,
		new: `name != m.self && o.claim != nil && m.self == ""`,
	},
	{
		name: "a key moves though its work has not ended", says: "each key is one replica's, and moves when its work has ended",
		in: "core.drained", caught: "TestAKeyMovesWhenWhatIsDoneForItHasEnded",
		old: `waited >= 2*patience`,
		new: `waited >= 0`,
	},
	{
		name: "who is gone keeps its hashes", says: "the keys of a replica that has died move to the others, and no other key does",
		in: "newDivision", caught: "TestAPlanIsBalancedWithoutGapsAndMovesNoMoreThanItMust",
		old: `slices.Contains(members, owner)`,
		new: `owner != ""`,
	},
	{
		name: "the last hash is nobody's", says: "the keys of a replica that has died move to the others, and no other key does",
		in: "Shard.Key", caught: "TestAShardIsWhatTheServerMakesOfItsText",
		old: `math.MaxUint64`,
		new: `math.MaxUint64-1`,
	},
	{
		name: "streams narrow before the claim is written", says: "a replica gives keys up before its claim is written, and takes keys after it",
		in: "core.need", caught: "TestAPlanIsProposedBeforeItIsClaimed",
		old: `append(slices.Clip(c.keys.written), c.goal.claim, c.keys.claim)`,
		new: `(claims{c.goal.claim})`,
	},
	{
		name: "streams do not widen before the claim is written", says: "a replica gives keys up before its claim is written, and takes keys after it",
		in: "core.need", caught: "TestAReplicaBringsWhatItGoesForAndOwnsItOnceThatIsClaimed",
		old: `append(slices.Clip(c.keys.written), c.goal.claim, c.keys.claim)`,
		new: `append(slices.Clip(c.keys.written), c.keys.claim)`,
	},
	{
		name: "a share of a server that does not shard is everything", says: "an object of another shard is left out, also where the server does not shard",
		in: "Intake.Matches", caught: "TestWhatAServerThatDoesNotShardSendsIsDroppedHereAndTheStatusSaysSo",
		old: `if !s.inShard(o) {
				return false
			}`,
	},
}
