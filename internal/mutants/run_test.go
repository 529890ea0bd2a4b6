package mutants

const (
	run      = "kates/run.go"
	tries    = "internal/keyed/tries.go"
	leading  = "internal/keyed/leader.go"
	inKates  = "kates"
	lead     = "internal/lease/lead.go"
	lease    = "internal/lease/lock.go"
	campaign = "internal/lease/candidate.go"
	loop     = "internal/lease/campaign.go"

	deltas     = "TestG7TheDeltasOfSeveralSnapshotsAreThoseBetweenTheFirstAndTheLast"
	underChurn = "TestAnErrorMeansATryWithTheNewestSnapshotNoSoonerThanItsBackoffAlsoUnderChurn"
)

// runs are mistakes in the loop that calls a function.
var runs = []mutant{
	{
		name: "a change ends the backoff", says: "no sooner than its backoff", file: run, caught: underChurn,
		old: `keyed.Pause(ctx, again, r.snapshots.acc.Done())`, new: `keyed.Pause(ctx, again, r.snapshots.Changed())`,
	},
	{
		name: "another trigger ends the backoff", says: "no sooner than its backoff", file: run, caught: underChurn,
		old: `keyed.Pause(ctx, again, r.snapshots.acc.Done())`, new: `keyed.Pause(ctx, again, r.triggered)`,
	},
	{
		name: "a try again has the snapshot that failed", says: "with the newest snapshot", file: run, caught: underChurn,
		old: `		again, err := r.try(calls, snap)
`,
		new: `		again, err := r.try(calls, snap)
		for again > 0 && err == nil {
			keyed.Pause(ctx, again, nil)
			again, err = r.try(calls, snap)
		}
`,
	},
	{
		name: "what changes during a call needs no signal", says: "the least time between two signals", file: run,
		caught: "TestRunCallsItsFunctionOncePerIntervalUnderChurn",
		old: `		if !r.due {
			r.wait(ctx)`,
		new: `		if !r.due && again < 0 {
			r.wait(ctx)`,
	},
	{
		name: "a success does not end the backoff", says: "after failures in a row", file: tries, in: inKates, caught: underChurn,
		old: `	t.failures, t.told = 0, false
`, new: `	t.told = false
`,
	},
	{
		name: "an error waits for a change", says: "an error means another try", file: run, caught: "TestG8APanicOfTheFunctionIsAnErrorWithAStackAndIsTriedAgain",
		old: `		r.due = again > 0`, new: `		r.due = false`,
	},
	{
		name: "a panic with an error that is permanent is permanent", says: "a panic is such an error", file: "kates/run_option.go",
		caught: "TestG8APanicOfTheFunctionIsAnErrorWithAStackAndIsTriedAgain",
		old: `func newPanicError(p *guard.Panic) error {
`,
		new: `func newPanicError(p *guard.Panic) error {
	if err, ok := p.Value.(error); ok {
		return fmt.Errorf("panic: %w", err)
	}
`,
	},
	{
		name: "a permanent error is tried again", says: "Permanent ends Run", file: tries, in: inKates, caught: "TestPermanentEndsRunWithThatError",
		old: `	if final {
		return o, err`,
		new: `	if final {
		return o, errors.New("another")`,
	},
	{
		name: "a call is cut off at the end of its run", says: "how long calls under way may go on", file: run, caught: "TestACallMayFinishWithinTheShutdownTimeout",
		old: `	return r.loop(ctx, calls)`, new: `	_ = calls
	return r.loop(ctx, ctx)`,
	},
	{
		name: "a former leader has a grace period", says: "as long as there is a lease", file: run, caught: "TestALeaderThatLosesItsLeaseHasNoGrace",
		old: `r.within(ctx, lease, grace)`, new: `r.within(ctx, context.WithoutCancel(lease), grace)`,
	},
	{
		name: "cancelling is an error", says: "nil, if ctx was cancelled", file: run, caught: "TestRunReturnsNilWhenItIsCancelledWhateverItWasDoing",
		old: `	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, ErrAborted) {
`, new: `	if errors.Is(ctx.Err(), errors.ErrUnsupported) && !errors.Is(err, ErrAborted) {
`,
	},
	{
		name: "an end of the watch is no error", says: "the watch has ended", file: run, caught: "TestTheEndOfTheWatchIsAnErrorOfRunThatNamesIt",
		old: `	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, ErrAborted) {
`, new: `	if errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, ErrClosed) {
`,
	},
	{
		name: "the end of a channel is a value", says: "a channel that is closed is listened to no longer", file: "kates/run_option.go",
		caught: "TestWithTriggersDropsAClosedChannelWithoutACall",
		old: `				if !open {
`,
		new: `				if !open {
					call()
`,
	},
	{
		name: "a trigger calls only if something has changed", says: "though nothing may have changed", file: run,
		caught: "TestWithTriggersCallsTheFunctionAgainWithTheCurrentSnapshotThoughNothingHasChanged",
		old: `	case <-r.triggered:
		r.due = true
	case <-r.later:`,
		new: `	case <-r.triggered:
	case <-r.later:`,
	},
	{
		name: "a call that was asked for comes besides an earlier one", says: "A call that comes earlier", file: run,
		caught: "TestAgainCallsAgainAfterATimeUnlessACallComesEarlier",
		old: `	r.later = nil
`, new: ``,
	},
	{
		name: "each try is logged", says: "logged when they begin and when they are over", file: tries, in: inKates,
		caught: "TestErrorsOfTheFunctionAreLoggedOnceAndToldOneByOne",
		old:    `case !t.told || t.panicked`, new: `case t.failures > 0 || t.panicked`,
	},
	{
		name: "a try again has only the deltas since the one that failed", says: "a try again has what the try before had", file: run,
		caught: "TestG7ATryAgainHasTheDeltasOfTheTryBeforeToo",
		old:    `o.Err == nil && r.changes != nil {`, new: `r.changes != nil {`,
	},
	{
		name: "what came and went is an add and a delete", says: "a try again has what the try before had", file: "kates/watch_delta.go",
		caught: deltas,
		old: `		if !now.before {
`, new: `		if false {
`,
	},
}

// elections are mistakes of a leader.
var elections = []mutant{
	{
		name: "a replica without a snapshot leads", says: "stands as soon as its first snapshot is complete", file: leading, in: inKates,
		caught: "TestAReplicaStandsForElectionWhenItsFirstSnapshotIsComplete",
		old:    `l.Watch.Ready() == nil`, new: `l.Watch.Ready() == nil || true`,
	},
	{
		name: "a follower has nothing ready", says: "followers keep their snapshots up to date", file: leading, in: inKates,
		caught: "TestAFollowerIsWarmAndItsFunctionIsCalledAtOnceWhenItWins",
		old: `		if err := l.Watch.Refresh(ctx); err != nil {
`, new: `		if err := ctx.Err(); err != nil {
`,
	},
	{
		name: "a new leader begins with what it has", says: "a snapshot as new as the server was when the lease was won", file: leading, in: inKates,
		caught: "TestANewLeaderDoesNotActOnAnOldSnapshot",
		old:    `err := l.Watch.Sync(ctx)`, new: `err := ctx.Err()`,
	},
	{
		name: "a refused kind keeps a leader from its work", says: "a kind that the server refuses is left as it is", file: "accumulator/stream/sync.go", in: "kates",
		caught: "TestANewLeaderDoesNotActOnAnOldSnapshot",
		old:    `if refused == most {`, new: `if refused == -most {`,
	},
	{
		name: "who has lost is not told why", says: "the function's context is cancelled", file: lead, in: "kates",
		caught: "TestLosingTheLeaseCancelsTheFunctionAndIsAnErrorWhenThatHasReturned",
		old:    `cancel(fmt.Errorf("%w: %w", ErrLost, candidate.Err()))`, new: `cancel(nil)`,
	},
	{
		name: "a lost lease is a cancelled run", says: "Run returns ErrLeadershipLost", file: lead, in: "kates",
		caught: "TestLosingTheLeaseToAnotherIsAnErrorAlsoBetweenCalls",
		old:    `	if !errors.Is(cause, ErrLost) || ctx.Err() != nil {`, new: `	if cause != nil {`,
	},
	{
		name: "the lease is released when the run is cancelled", says: "the lease is released when the function has returned", file: lead, in: "kates",
		caught: "TestTheLeaseIsRenewedUntilTheFunctionHasReturnedAndThenReleased",
		old:    `	defer candidate.Resign()`, new: `	defer context.AfterFunc(ctx, candidate.Resign)`,
	},
	{
		name: "the lease is not released", says: "the lease is released when the function has returned", file: campaign, in: "kates",
		caught: "TestTheLeaseIsRenewedUntilTheFunctionHasReturnedAndThenReleased",
		old:    `	if release {`, new: `	if false && release {`,
	},
	{
		name: "a lease that was lost is released", says: "the lease is released by who leads", file: campaign,
		caught: "TestALeaderWhoCannotRenewHasLostBeforeAnyoneElseCanHaveTheLease",
		old:    `c.config.Release && c.state != lost && c.state != resigned`, new: `c.config.Release && c.state != resigned`,
	},
	{
		name: "a lease never expires by itself", says: "a lease that was not renewed is lost, whatever the loop does", file: campaign,
		caught: "TestALeaseThatHasExpiredIsLostWhateverTheLoopDoes",
		old:    `	left := c.config.LeaseDuration - fence.Since(sent)`, new: `	left := time.Hour - fence.Since(sent)`,
	},
	{
		name: "another who holds the lease is noticed at the deadline", says: "who reads that another holds the lease has lost at once", file: lease,
		caught: "TestWhoReadsThatAnotherHoldsTheLeaseHasLostAtOnce",
		old:    `	if l.candidate.leads() && !l`, new: `	if false && !l`,
	},
	{
		name: "a leader goes on by its name", says: "also one that reads what another has written under the same identity", file: lease,
		caught: "TestALeaderThatReadsItsOwnNameInAWriteThatIsNotItsOwnHasLostAtOnce",
		old:    `l.candidate.leads() && !l.wrote(found) {`, new: `l.candidate.leads() && found.holder != l.config.Identity {`,
	},
	{
		name: "a copy's lease is released", says: "the lease is released by who leads", file: lease,
		caught: "TestWhoResignsReleasesNothingThatACopyHasWritten",
		old: `		if !l.wrote(found) {
			return
		}
		err = l.update`, new: `		if found.holder != l.config.Identity {
			return
		}
		err = l.update`,
	},
	{
		name: "a copy of the process leads at once", says: "a default identity may be that of a copy", file: lease,
		caught: "TestACandidateWaitsForACopyOfItsProcessAsForAnyOther",
		old:    `!l.config.OwnIdentity && !l.candidate.leads()`, new: `!l.candidate.leads()`,
	},
	{
		name: "a renewal whose answer is missing is another's", says: "it may have been stored, so it counts", file: "internal/lease/written.go",
		caught: "TestAWriteWhoseAnswerIsMissingIsItsOwn",
		old:    `	w.maybe = append(w.maybe, s)`, new: `	w.maybe = append(w.maybe[:0], s)[:0]`,
	},
	{
		name: "renewals are noticed by the second", says: "a candidate notices every renewal", file: lease,
		caught: "TestARenewalWithinTheSameSecondIsNoticed",
		old:    `	return &lease.Spec, nil`,
		new: `	lease.Spec.RenewTime.Time = lease.Spec.RenewTime.Truncate(time.Second)
	return &lease.Spec, nil`,
	},
	{
		name: "a lease expires by the clock of its holder", says: "no clock is compared with another's", file: loop,
		caught: "TestALeaseExpiresByWhenItWasSeenUnchangedAndNotByItsHoldersClock",
		old:    `	return c.since.Add(`, new: `	return c.observed.renewed.Add(`,
	},
	{
		name: "a change of the holder is not counted", says: "leaseTransitions counts the changes of the holder", file: loop,
		caught: "TestOneCandidateLeadsAndAnotherWhenItResigns",
		old:    `found.transitions + 1`, new: `found.transitions`,
	},
	{
		name: "a renewal begins a new term", says: "acquireTime is that of the present one", file: loop,
		caught: "TestTheLeaseOfALeaderIsAsClientGoWritesIt",
		old:    `mine.acquired, mine.transitions = c.observed.acquired, c.observed.transitions`, new: `mine.transitions = c.observed.transitions`,
	},
	{
		name: "a leader reads before it renews", says: "an update of what it wrote last", file: loop,
		caught: "TestTheLeaseOfALeaderIsAsClientGoWritesIt",
		old:    `	if c.holds() && c.valid(now) {`, new: `	if c.holds() && !c.valid(now) {`,
	},
	{
		name: "a renewal under way is not released", says: "the lease is released", file: lease,
		caught: "TestResigningReleasesWhatWasUnderWay",
		old: `	for {
		spec, err := l.read(ctx)
		if err`, new: `	for range 2 {
		spec, err := &coordinationv1.LeaseSpec{HolderIdentity: &l.config.Identity}, error(nil)
		if err`,
	},
}
