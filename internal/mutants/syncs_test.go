package mutants

const (
	shortWatch = "accumulator/stream/shortwatch.go"
	syncFile   = "accumulator/stream/sync.go"
	listedAll  = "TestSyncListsManyObjectsWhereAShortWatchDoesNotTellAll"
	fewAsked   = "a Sync of many objects asks for one of them, and returns when the watch has brought all"
)

// syncs are mistakes in a Sync of many objects.
var syncs = []mutant{
	{
		name: "a refusal that passes empties the field of a query that is replaced", says: "a refusal that may pass takes nothing away that is shown", file: "accumulator/query/replaceable.go",
		in: "accumulator", caught: "TestG8ARefusalThatPassesEmptiesNoFieldWhoseQueryIsReplaced",
		old: `next.passed(r.past(next)) && !next.lacks(now)`,
		new: `next.passed(r.past(next)) && (now != nil || !next.lacks(now))`,
	},
	{
		name: "a short watch has told everything when it ends", says: fewAsked, file: shortWatch, in: "accumulator", caught: listedAll,
		old: `recent: true}, r.done`, new: `recent: true}, true`,
	},
	{
		name: "a deletion tells its version", says: fewAsked, file: shortWatch, in: "accumulator", caught: listedAll,
		old: `	case !coherence.Newer(rv, r.lastRV):
		return false
`, new: ``,
	},
	{
		name: "what a short watch has told need not have come", rule: 1, file: syncFile, in: "accumulator",
		caught: "TestG2SyncOfManyObjectsWaitsForWhatTheShortWatchHasTold",
		old:    `case g.recent && !coherence.Newer(g.afterRV, s.store.view.Position()):`, new: `case g.recent:`,
	},
	{
		name: "a short watch stays open", says: fewAsked, file: shortWatch, in: "accumulator", caught: "TestSyncOfManyObjectsListsOneAndReadsAShortWatch",
		old: `		w.Stop()
		if !sound {`, new: `		if !sound {`,
	},
	{
		name: "an old bookmark ends a Sync without a list", says: fewAsked, file: shortWatch, in: "accumulator", caught: "TestAShortWatchWithAnOldBookmarkIsFollowedByAnother",
		old: `const shortWatches = 2`, new: `const shortWatches = 1`,
	},
}
