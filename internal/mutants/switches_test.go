package mutants

const (
	fields      = "accumulator/query/members.go"
	advance     = "accumulator/collect/advance.go"
	changes     = "accumulator/collect/changes.go"
	upkeep      = "accumulator/collect/upkeep.go"
	replaceable = "accumulator/query/replaceable.go"
)

// switches are mistakes where a query is added, replaced or removed, where a version of its kind
// comes or goes, or where the kind goes away.
var switches = []mutant{
	{
		name: "a stream that is no longer wanted stays", peer: torn, file: fields, caught: "TestG8AVersionThatIsNoLongerServedIsFollowedWithoutAGap",
		old: `p.standing = partLeaves`,
		new: `p.standing = partCounts`,
	},
	{
		name: "a watch that another reader has had for long takes over at once", rule: 10, file: "accumulator/query/align.go",
		caught: "TestG5AnotherVersionsWatchThatIsLateTakesNothingBack",
		old:    `	return late == nil`,
		new:    `	return true`,
	},
	{
		name: "watches that come count at once", rule: 10, file: fields, caught: "TestG5AnotherVersionsWatchThatIsLateTakesNothingBack",
		old: `p.standing, moving = partComes, true`,
		new: `p.standing, moving = partCounts, true`,
	},
	{
		name: "nobody asks on behalf of watches that come", rule: 10, file: "accumulator/query/align.go",
		caught: "TestG2AWatchOfAnotherVersionThatSaysNothingTakesOver",
		old: `	u.await(late, at)
	return late == nil`,
		new: `	return late == nil`,
	},
	{
		name: "a named object's other watch is taken however old it is", rule: 10, file: "accumulator/query/behind.go",
		caught: "TestG5AnotherVersionsWatchOfANamedObjectThatIsLateTakesNothingBack",
		old:    `return st.Ready() && (`,
		new:    `return false && st.Ready() && (`,
	},
	{
		name: "a query that is added is shown by halves", peer: firstPage, file: "accumulator/collect/changes.go", caught: "TestG1AQueryOverNamespacesThatIsAddedAppearsWithAllOfThem",
		old: `return q.Phase() >= query.Complete &&`,
		new: `return q.Phase() >= query.Incomplete &&`,
	},
	{
		name: "queries that are replaced together are shown one by one", peer: torn, file: advance, caught: "TestG1QueriesThatAreReplacedTogetherChangeInOneSnapshot",
		old: `	r.changes = append(apart, ch)
`,
		new: `	for r.changes = apart; len(r.changes) < len(apart)+len(ch.members); {
		r.changes = append(r.changes, &change[S]{ch.members[len(r.changes)-len(apart):][:1]})
	}
`,
	},
	{
		name: "a query that is replaced while an Update takes the old one is not waited for", peer: torn, file: advance, caught: "TestG1AChangeThatIsReplacedWhileItIsTakenIsNotShown",
		old: `if i < 0 || r.ended() != nil {`,
		new: `if i = max(i, 0); len(r.changes) == 0 || r.ended() != nil {`,
	},
	{
		name: "a stream that takes another's place is not late", peer: torn, file: replaceable, in: "accumulator", caught: "TestG5AStreamThatTakesAnothersPlaceTakesNothingBackThoughItIsLate",
		old: `&& next.passed(r.past(next))`,
		new: `&& (next.passed(r.past(next)) || true)`,
	},
	{
		name: "what is shown while a successor waits is not noted", peer: torn, file: replaceable, in: "accumulator", caught: "TestG5AStreamThatTakesAnothersPlaceTakesNothingBackThoughItIsLate",
		old: `if r.next != nil || b.NewHistory {`,
		new: `if b.NewHistory {`,
	},
	{
		name: "a query that replaces another brings back what an own write has deleted", peer: torn, file: "accumulator/stream/own.go",
		caught: "TestG5AnOwnDeletionWithoutAVersionIsNotTakenBackByAQueryThatReplacesAnother",
		old:    `		s.own.undated = s.set.unversioned.Add(1)`,
		new:    `		_ = s`,
	},
	{
		name: "any event is newer than an own deletion without a version", peer: torn, file: "accumulator/stream/own.go",
		caught: "TestG5AnOwnDeletionWithoutAVersionIsNewerThanWhateverTheWatchShowsBeforeIt",
		old:    `s.store.view.Undated() > 0 {`, new: `s.store.view.Undated() > 1 {`,
	},
	{
		name: "only batches with changes say how new what is shown is", peer: torn, file: replaceable, in: "accumulator/query",
		caught: "TestG5ASuccessorIsAsNewAsABatchThatChangedNothing",
		old:    `if r.next != nil || b.NewHistory {`, new: `if r.next != nil && len(b.Changes) > 0 || b.NewHistory {`,
	},
	{
		name: "queries of one change are helped one after the other", peer: torn, file: changes, in: "accumulator", caught: "TestG2QueriesOfOneChangeAreHelpedSideBySide",
		old: `all = m.settled() && all`,
		new: `all = all && m.settled()`,
	},
	{
		name: "a query that is added takes back what another of its name has shown", peer: torn, file: "accumulator/collect/changes.go", in: "accumulator", caught: "TestG5WhatWasShownIsNotTakenBackByALaterQueryOfTheName",
		old: `return q.Phase() >= query.Complete && q.Fresh()`,
		new: `return q.Phase() >= query.Complete`,
	},
	{
		name: "what was shown is forgotten when its query is removed", peer: torn, file: replaceable, in: "accumulator", caught: "TestG5WhatWasShownIsNotTakenBackByALaterQueryOfTheName",
		old: `		r.note(false) // another query may get the name`,
		new: ``,
	},
	{
		name: "what was taken in an Update that failed is stale in the next", peer: torn, file: replaceable, in: "accumulator", caught: "TestG4AQueryThatTakesEffectBeforeTheFirstSnapshotIsUpToDateInIt",
		old: `return TakeMore(now, *first)`,
		new: `return *first`,
	},
	{
		name: "a query that was added in an Update that failed is stale in the next", peer: torn, file: "accumulator/collect/taking.go", in: "accumulator", caught: "TestG4AQueryThatIsTakenInAnUpdateThatFailsIsUpToDateInTheNext",
		old: `f.Taken = query.TakeMore(f.Query, f.Taken)`,
		new: `_ = query.TakeMore`,
	},
	{
		name: "a union that takes another's place leaves out what is undecided", peer: torn, file: "accumulator/query/succeed.go", in: "accumulator", caught: "TestG5AUnionThatTakesAnothersPlaceLeavesNothingOutThatIsUndecided",
		old: `if u.unsure {`,
		new: `if false {`,
	},
	{
		name: "own writes that were given up do not count at a switch of queries", peer: torn, file: "accumulator/stream/listener.go", in: "accumulator", caught: "TestG5AQueryThatReplacesAnotherIsAsNewAsTheOwnWritesThatWereGivenUp",
		old: `	if s.own.givenUp {
		rv = coherence`,
		new: `	if false {
		rv = coherence`,
	},
	{
		name: "a new stream of a restored cluster waits for what is lost", peer: torn, file: fields, in: "accumulator",
		caught: "TestG5ARestoredClusterThatDoesNotServeAVersionYetIsShownInAnother",
		old:    `m.newHistory = m.newHistory || p.wentBack`, new: `_ = p.wentBack`,
	},
	{
		name: "a query of a restored cluster is replaced only by one as new as what is lost", peer: torn, file: "accumulator/query/align.go",
		in: "accumulator", caught: "TestG2AQueryOfARestoredClusterIsReplacedAtOnce",
		old: `u.regroup, u.newHistory = true, true`, new: `u.regroup, u.newHistory = true, u.newHistory`,
	},
	{
		name: "a successor that is often late floods the server with lists", peer: torn, file: "accumulator/query/align.go", in: "accumulator",
		caught: "TestG3ASuccessorThatIsOftenLateAsksTheServerLessAndLess",
		old:    `return catchUpAfter << min(p.helped, 7)`, new: `return catchUpAfter`,
	},
	{
		name: "a union shows what the query that it replaces has seen go", peer: torn, file: merge, in: "accumulator/query", caught: "TestG5AStateThatIsNoNewerThanWhatWasShownIsNoneOfADepartureAtASwitch",
		old: `if m.noOlderRV != "" && d.Last != nil`,
		new: `if false && d.Last != nil`,
	},
	{
		name: "nobody helps a successor that is too quiet", peer: torn, file: replaceable, in: "accumulator", caught: "TestG5AQuietStreamOfASuccessorIsHelped",
		old: `		all = append(all, u.Late()...)
	}
	return all`,
		new: `		all = append(all, u.Late()...)
		break
	}
	return all`,
	},
	{
		name: "changes wait while the kinds of another are looked for", peer: torn, file: changes, caught: "TestG8AChangeWhoseKindIsLookedForInVainDelaysNoOtherChange",
		old: `	found, err := query.FindAll(ctx, c.witnessed(queries))
	if err != nil {
		return err
	}
	return c.edit(ctx, func() error {
`, new: `	return c.edit(ctx, func() error {
		found, err := query.FindAll(ctx, c.witnessed(queries))
		if err != nil {
			return err
		}
`,
	},
	{
		name: "a change overlooks those that came while its kinds were looked for", peer: torn, file: changes,
		caught: "TestG8AChangeSaysWhatOthersHaveMadeOfItsQueriesMeanwhile",
		old: `		if err := allowed(); err != nil {
			return err
		}
		return c.connect(`, new: `		return c.connect(`,
	},
	{
		name: "a kind whose lists hang delays the help for others", peer: torn, file: upkeep, caught: "TestG8AKindWhoseListsHangDelaysNoHelpForAnother",
		old: `		if busy[of] {`,
		new: `		if len(busy) > 0 {`,
	},
	{
		name: "a 404 on one version empties the kind", peer: emptied, file: "accumulator/stream/reflector.go", caught: "TestG8AKindThatIsCertainlyGoneEmptiesItsFieldAndComesBack",
		old: `if f.target.lost(ctx, err) {`,
		new: `if f.target.lost(ctx, err) || apierrors.IsNotFound(err) {`,
	},
	{
		name: "a kind that is gone stays", peer: silent404, file: "accumulator/stream/reflector.go", caught: "TestG8AKindThatIsCertainlyGoneEmptiesItsFieldAndComesBack",
		old: `if f.target.lost(ctx, err) {`,
		new: `if f.target.lost(ctx, err) && false {`,
	},
}
