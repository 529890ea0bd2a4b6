package mutants

const (
	shardCore    = "internal/lease/shards/core.go"
	shardAnswer  = "internal/lease/shards/answer.go"
	shardRequest = "internal/lease/shards/request.go"
	shardMembers = "internal/lease/shards/members.go"
	shardKeys    = "internal/lease/shards/ownership.go"
	shardLoop    = "internal/lease/shards/replica.go"
	identities   = "internal/lease/identity.go"
	comesBack    = "TestWhoLosesTouchForLongerThanItsLeaseLeadsAtOnceWhenItComesBack"
	outlives     = "TestAWriteThatOutlivesItsWorkIsBoundToTheKeyAndTheMembership"
	waits        = "TestAKeyThatWasAnothersMeanwhileWaitsForTheWatches"
	frozen       = "TestWhoWasStoppedLongerThanItsLeaseWritesNothing"
	overstays    = "TestWhatIsDoneForALostKeyIsCancelledAfterALeaseDurationAndThenNotWaitedFor"
)

// replicas are mistakes where several replicas share the work.
var replicas = []mutant{
	{
		name: "what the server may still store does not count", says: "by every claim that it may have written", file: shardCore,
		caught: "TestAClaimThatTheServerMayStillStoreCounts",
		old:    `c.own.stored == certain && !c.own.flying`, new: `c.own.stored != unread && !c.own.flying`,
	},
	{
		name: "a late write counts for ever", says: "each key has one owner", file: shardAnswer,
		caught: "TestAClaimThatTheServerMayStillStoreCounts",
		old:    `sent.Add(c.config.RetryPeriod), certain`, new: `sent.Add(c.config.RetryPeriod), c.own.stored`,
	},
	{
		name: "a membership counts gains anew", says: "a turn from before belongs to no later membership", file: shardCore,
		caught: "TestATurnFromBeforeAMembershipWasLostIsNoneOfTheNext",
		old:    `ownership{gains: c.keys.gains, lapses: c.keys.lapses}`, new: `ownership{lapses: c.keys.lapses}`,
	},
	{
		name: "a lease that had run out is renewed in silence", says: "whoever was refused a key meanwhile is told to try again", file: shardAnswer,
		caught: "TestALateRenewalIsReported",
		old: `			c.keys.lapses++
`, new: ``,
	},
	{
		name: "a missing namespace is a rival's doing", says: "a creation that finds nothing is no rival's doing", file: "internal/lease/lock.go",
		caught: "TestALeaseWhoseNamespaceIsMissingIsSaidOnceAndLedWhenThereIsOne",
		old:    `		return apierrors.IsAlreadyExists(err)`, new: `		return apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)`,
	},
	{
		name: "a missing namespace is another shard's doing", says: "a creation that finds nothing is no other's doing", file: shardRequest,
		caught: "TestAShardWhoseNamespaceIsMissingSaysSoOnceAndJoinsWhenThereIsOne",
		old:    `		return apierrors.IsAlreadyExists(err)`, new: `		return apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)`,
	},
	{
		name: "two candidates of a process have one identity", says: "nobody has an identity that another candidate has", file: identities,
		caught: "TestTwoCandidatesOfOneProcessHaveTwoIdentitiesAndOneLeads",
		old:    `	if i.taken[one] {`, new: `	if i.taken == nil && i.taken[one] {`,
	},
	{
		name: "an identity is given back while the candidate stands", says: "gives it back when the work has ended", file: "internal/lease/candidate.go",
		caught: "TestTwoCandidatesOfOneProcessHaveTwoIdentitiesAndOneLeads",
		old: `	c.giveBack = giveBack
`, new: `	giveBack()
`,
	},
	{
		name: "each candidature has an identity of its own", says: "a candidate that begins later has the same identity", file: identities, caught: comesBack,
		old: `	if !known {`, new: `	if known = false; !known {`,
	},
	{
		name: "a later candidate goes on with the term of a former one", says: "each term has a number of its own", file: loop, caught: comesBack,
		old: `return !c.config.OwnIdentity || c.lock.candidate.leads()`, new: `return true`,
	},
	{
		name: "a shard waits out its own former lease", says: "one that this process has written need not expire", file: shardRequest,
		caught: "TestAReplicaThatWasLostJoinsAtOnceInItsProcess",
		old:    `case !c.config.OwnIdentity || len(c.running) > 0 || !c.wrote(old.peer):`, new: `case c.self != "":`,
	},
	{
		name: "a shard leaves while its work goes on", says: "when no work is left in the process", file: shardRequest,
		caught: "TestItsOwnFormerLeaseIsDeletedAtOnceWhenNoWorkIsLeft",
		old:    `case !c.config.OwnIdentity || len(c.running) > 0 ||`, new: `case !c.config.OwnIdentity ||`,
	},
	{
		name: "who follows is in trouble for ever", says: "the error is empty for a follower", file: loop, caught: "TestAFollowerIsInNoTroubleThoughItCouldNotWrite",
		old: `		c.lock.waits()
`, new: ``,
	},
	{
		name: "a leader that was frozen leads in its status", says: "false when the lease is over by the clocks", file: "internal/lease/candidate.go",
		caught: "TestWhoWasStoppedLongerThanItsLeaseKnowsThatItIsLost",
		old:    `c.state == leading && fence.Since(c.sent) < c.config.LeaseDuration`, new: `c.state == leading`,
	},
	{
		name: "a run that could not start may have led", says: "it has not stood for the Lease", file: "internal/keyed/config.go", in: "kates",
		caught: "TestARunWhoseWatchCannotStartHasNeverLed",
		old:    `	return c.Report.Unstarted(err)`, new: `	return err`,
	},
	{
		name: "a Lease is reached when the run ends", says: "at the first answer", file: "internal/lease/candidate.go", in: "kates",
		caught: "TestASecondRunForALeaseDoesNotTurnReadyBack",
		old: `	c.config.Report.Reached()
	if c.extends`, new: `	if c.extends`,
	},
	{
		name: "a leader logs with its lock held", peer: lockHeld, file: "internal/lease/candidate.go", caught: "TestG11TheLoggerIsCalledWithoutTheLockOfTheCandidate",
		old: `	if c.extends(sent, r) {
`, new: `	leads := c.extends(sent, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if leads {
`,
	},
	{
		name: "an outage takes a replica away that begins anew", says: "a Lease that was reached once stays so", file: "internal/lease/report.go", in: "kates",
		caught: "TestAReplicaIsNotReadyBeforeItHasReachedItsLeaseAndStaysReadyAfterThat",
		old:    `	if r.all.reached[r.lease] {`, new: `	if s.Reached {`,
	},
	{
		name: "what outlives a membership may write in the next one", says: "in the same membership", file: shardCore, caught: outlives,
		old: `		t.revoke(fmt.Errorf("%w: %w", ErrLost, why))`, new: `		_, _ = t, why`,
	},
	{
		name: "what outlives its work may write for another's key", says: "only as long as the replica has the key", file: shardCore, caught: outlives,
		old: `	case c.running[t.key.Name] != t && (t.ended != c.keys.current() || !c.keys.has(t.key)):`, new: `	case t.key.Name == "?":`,
	},
	{
		name: "a write is sent though its lease is over", says: "none is sent when the lease is over", file: "internal/fence/transport.go", caught: "TestAWriteIsNotSentWhenItsLeaseIsOver",
		old: `	if err := Check(r.Context()); err != nil {`, new: `	if err := error(nil); err != nil {`,
	},
	{
		name: "the lease is not looked at when the connection is there", says: "when its body is read", file: "internal/fence/transport.go",
		caught: "TestAWriteIsNotSentWhenItsLeaseEndsWhileItWaitsForAConnection",
		old:    `	fenced.Body = &body{r.Body, r}`, new: ``,
	},
	{
		name: "a write is sent once more though its lease is over", says: "when it is sent once more on another connection", file: "internal/fence/transport.go",
		caught: "TestAWriteIsNotSentAgainWhenItsLeaseIsOver",
		old:    `return &body{b, r}, nil`, new: `return b, nil`,
	},
	{
		name: "a leader that was frozen believes its timers", says: "by the clocks", file: "internal/lease/candidate.go",
		caught: "TestWhoWasStoppedLongerThanItsLeaseKnowsThatItIsLost",
		old:    `	case fence.Since(sent) < c.config.LeaseDuration:`, new: `	case fence.Since(sent) >= 0:`,
	},
	{
		name: "what others have written meanwhile counts as seen", says: "that the client knew when the function was called", file: "internal/fence/fence.go",
		caught: "TestAHorizonIncludesWhatWasThereAndWhatTheWorkHasWritten",
		old:    `	if !known || !coherence.Newer(version, begun) {`, new: `	if !known || !coherence.Newer(version, begun) || begun != "" {`,
	},
	{
		name: "a shard that was frozen believes its timers", says: "given up when it has not been renewed for its duration", file: shardCore, caught: frozen,
		old: `	case c.own.age(now) >= c.config.LeaseDuration:`, new: `	case now.IsZero():`,
	},
	{
		name: "a shard's lease counts from the answer", says: "counted from before the request was sent", file: shardAnswer, caught: "TestALeaseCountsFromWhenItsRenewalWasSent",
		old: `		c.own.sent, c.own.next, c.own.stored = sent, sent`,
		new: `		c.own.sent, c.own.next, c.own.stored = now, sent`,
	},
	{
		name: "others' claims do not matter", says: "no other member that it sees is the key's owner by that one's own claim", file: shardMembers, caught: "TestAKeyIsNotTakenWhileAnotherClaimsIt",
		old: `name != m.self && o.claim != nil &&`, new: `name != m.self && o.claim != nil && m.self == "" &&`,
	},
	{
		name: "a claim counts before it has come back", says: "it has seen its own claim come back through the watch", file: shardCore, caught: "TestAClaimCountsWhenItHasComeBack",
		old: `!coherence.Newer(k.claimedRV, p.version)`, new: `!coherence.Newer("", p.version)`,
	},
	{
		name: "keys that were another's meanwhile are begun with at once", says: "its watches catch up with the server", file: shardKeys, caught: waits,
		old: `o.grants = append(o.grants, g)`, new: `o.grants = []*grant{g}`,
	},
	{
		name: "what happens while the watches catch up is forgotten", says: "its watches catch up with the server", file: shardKeys, caught: waits,
		old: `o.grants, o.caught = o.grants[i:], true`, new: `o.grants, o.caught = o.grants[len(o.grants)-1+0*i:], true`,
	},
	{
		name: "a shard that has died stays a member", says: "If a replica sees that another one's Lease was not renewed", file: shardRequest, caught: "TestWhoeverIsLeftHasAllKeysInTheEnd",
		old: `		if !now.Before(until) {`, new: `		if !now.Before(until) && now.IsZero() {`,
	},
	{
		name: "a key moves though its work has not ended", says: "waits until what it does for such keys has ended", file: shardRequest, caught: "TestAKeyMovesWhenWhatIsDoneForItHasEnded",
		old: `	if waited >= 2*patience {`, new: `	if waited >= 0 {`,
	},
	{
		name: "only one of those that overstay is cancelled", says: "has its contexts cancelled", file: shardRequest, caught: overstays,
		old: `			again = c.goal.since.Add(2 * patience)
`,
		new: `			return false, c.group.since.Add(2 * patience)
`,
	},
	{
		name: "that keys are usable is not told", says: "its watches catch up with the server", file: shardLoop, caught: "TestThatKeysAreUsableIsToldWhenTheWatchesHaveCaughtUpWithThem",
		old: `moved := now != r.reported`, new: `moved := now.last != r.reported.last || now.caught != r.reported.caught`,
	},
	{
		name: "what changed while a key was another's is no delta", says: "also what did while the key", file: "kates/run_each.go",
		caught: "TestG7AShardsDeltasLeadFromItsLastCallToThisOne",
		old:    `t.end(!t.turn.Gone)`, new: `t.end(false)`,
	},
	{
		name: "a closed client gives its keys away at once", says: "until then work has keys", file: "internal/keyed/shard.go", in: "kates",
		caught: "TestAKeyStaysAShardsWhileItsCallRunsThoughTheWatchHasEnded",
		old: `		<-ctx.Done() // until then work has keys
`, new: ``,
	},
	{
		name: "a shard without a watch renews nothing", says: "work that has begun needs its keys to the end", file: shardLoop, in: "kates",
		caught: "TestAKeyStaysAShardsWhileItsCallRunsThoughTheWatchHasEnded",
		old:    `		if known || changed == nil && r.core.own.joined() {`, new: `		if known {`,
	},
	{
		name: "two copies of a shard go on", says: "another process with the same identity has renewed its lease", file: shardAnswer,
		caught: "TestAMemberWhoseLeaseACopyOfItsProcessRenewsHasLost",
		old:    `	case err == nil && !c.wrote(got):`, new: `	case err == nil && got.uid == "":`,
	},
	{
		name: "a shard deletes the lease of its copy", says: "it may be a copy's", file: shardRequest, caught: "TestItsOwnFormerLeaseIsDeletedAtOnceWhenNoWorkIsLeft",
		old: `len(c.running) > 0 || !c.wrote(old.peer):`, new: `len(c.running) > 0:`,
	},
	{
		name: "keys of others are owed for ever", says: "each is one replica's", file: "internal/keyed/shard.go", caught: "TestG3AShardForgetsTheKeysOfOthersThatAreGone",
		old: `	s.forgetGone(s.keys.Keys())
	s.tidy =`, new: `	s.tidy =`,
	},
}
