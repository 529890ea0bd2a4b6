package mutants

const (
	shardGoal    = "internal/lease/shards/goal.go"
	shardPeer    = "internal/lease/shards/peer.go"
	shardPlan    = "internal/lease/shards/plan.go"
	sharing      = "accumulator/partition/sharing.go"
	otherShares  = "accumulator/stream/othershares.go"
	ofReplicas   = "internal/suite/replicas"
	upgradeModel = "TestNoKeyHasTwoOwnersDuringARollingUpgrade"
	heldByOne    = "TestRootsAndWhatTheyOwnAreHeldByOneReplica"
)

// divided are mistakes with replicas that hold their parts alone.
var divided = []mutant{
	{
		name: "a plan counts at once for who goes for it", says: "by every claim that it may have written", file: shardCore, caught: "TestAReplicaBringsWhatItGoesForAndOwnsItOnceThatIsClaimed",
		old: `		by := c.keys.written.with(c.goal.claim)`, new: `		by := claims{c.goal.claim}`,
	}, {
		name: "streams narrow before the claim is written", says: "they lose a key's objects only when", file: shardGoal, caught: "TestAPlanIsProposedBeforeItIsClaimed",
		old: `range append(slices.Clip(c.keys.written), c.goal.claim, c.keys.claim) {`, new: `range (claims{c.goal.claim}) {`,
	}, {
		name: "streams do not widen before the claim is written", says: "or goes for", file: shardGoal, caught: "TestAReplicaBringsWhatItGoesForAndOwnsItOnceThatIsClaimed",
		old: `c.keys.written), c.goal.claim, c.keys.claim) {`, new: `c.keys.written), c.keys.claim) {`,
	}, {
		name: "a former version takes keys that a plan gives away", says: "has its holder as the only member of its set", file: shardPeer, caught: "TestALeaseWithAPlanIsAllOfItsHoldersForAFormerVersion",
		old: `all[claimAnnotation], all[planAnnotation] = member(c.Identity), claimed.String()`, new: `all[planAnnotation] = claimed.String()`,
	}, {
		name: "members that know no plans are passed over", says: "as long as there is one, so do all", file: shardGoal, caught: upgradeModel,
		old: `if name != c.self && o.by != c.config.By {
			return false`, new: `if name != c.self && o.by != c.config.By {
			return true`,
	}, {
		name: "nobody follows a plan about members that are gone", says: "a plan that is about other members is followed by a newer one", file: shardGoal, caught: "TestAPlanWaitsForMembersThatComeAndNotForKeysWithoutAnOwner",
		old: `case old == nil, !slices.Equal(old.members, all):`, new: `case old == nil:`,
	}, {
		name: "a proposal stays unsaid until it is claimed", says: "proposes the next plan in its Lease", file: shardRequest, caught: "TestAPlanIsProposedBeforeItIsClaimed",
		old: `	if w.next = c.proposal(); w.next != nil {`, new: `	if w.next = nil; w.next != nil {`,
	}, {
		name: "the keys of the dead wait for members that may come", says: "If a member has gone, it does not wait", file: shardGoal, caught: "TestAPlanWaitsForMembersThatComeAndNotForKeysWithoutAnOwner",
		old: `		return time.Time{} // the keys`, new: `		_ = time.Time{} // the keys`,
	}, {
		name: "a plan does not wait for members that may come", says: "waits RetryPeriod for other members", file: shardGoal, caught: "TestAPlanWaitsForMembersThatComeAndNotForKeysWithoutAnOwner",
		old: `	return c.group.since.Add(c.config.RetryPeriod)`, new: `	return c.group.since`,
	}, {
		name: "an uneven plan stays", says: "what one has too much", file: shardPlan, caught: "TestAPlanFollowsTheObjects",
		old: `if most <= part+part/uneven+heaviest {`, new: `if most >= 0 || part+heaviest < 0 {`,
	}, {
		name: "a turn from before the key was gained is taken", says: "another one may have worked for this one after that look", file: shardLoop,
		caught: "TestATakeFromBeforeAGainIsRefused",
		old:    `	return r.core.keys.gains == since && `, new: `	return `,
	}, {
		name: "a part is served by a wider watch of the same program", says: "So what it does not want takes no memory", file: "accumulator/query/running.go",
		caught: "TestG1AShareHasAllObjectsOfItsKeysAndNoOthers", in: "accumulator/partition",
		old: `Signal: q.Signal, Apart: q.Apart,`, new: `Signal: q.Signal,`,
	}, {
		name: "what stays is held twice", says: "The objects of both are the same pointers", file: otherShares, caught: "TestG10WhatStaysInAShareIsTheSamePointerInBothStreams", in: "accumulator/partition",
		old: `if theirs, same := st.has(o); same {`, new: `if theirs, same := st.has(o); same && theirs == nil {`,
	}, {
		name: "a query that others name is divided", says: "what is named may be in another share", file: sharing, caught: "TestAQueryThatOthersNameStaysWhole", in: "accumulator/partition",
		old: `if q.ShardBy != "" && !named {`, new: `if q.ShardBy != "" && (named || !named) {`,
	}, {
		name: "one query of a part is taken before the others", says: "all of them at once", file: sharing, caught: "TestModelG1G4G7APartitionOfAShareIsThatOfTheServerWhileSharesChange", in: "accumulator/partition",
		old: `			if err := p.collector.Replace(ctx, p.unlike(wantedNow(p))...); err != nil {
				return err
			}
`, new: `			for _, q := range p.unlike(wantedNow(p)) {
				if err := p.collector.Replace(ctx, q); err != nil {
					return err
				}
			}
`,
	}, {
		name: "an object stays with its former owner", says: "each version is judged", file: sharedOut, caught: heldByOne, in: ofReplicas,
		old: `	return s.Ranges.Has(shardrange.Hash(string(owner.UID)))`, new: `	return s.Ranges != nil || s.Ranges.Has(shardrange.Hash(string(owner.UID)))`,
	},
}
