package mutants

// position has mutants that break rule 1.
var position = []mutant{
	{
		name: "a position goes back", rule: "position",
		in: "View.Advance", caught: "TestG5APositionNeverGoesBack",
		old: `!Newer(toRV, v.positionRV)`,
		new: `toRV == v.positionRV`,
	},
	{
		name: "a key has no namespace", rule: "position",
		in: "object.KeyOf", caught: "TestG7AKeyIsTheNamespaceAndTheName",
		old: `Key{Namespace: namespace, Name: name}`,
		new: `Key{Namespace: namespace[:0], Name: name}`,
	},
	{
		name: "a bookmark moves nothing", rule: "position",
		in: "Stream.Apply", caught: "TestG6ABookmarkEndsWhatNoEventEnds",
		old: `return s.bookmark(e.RV)`,
		new: `return nil`,
	},
	{
		name: "a list moves nothing", rule: "position",
		in: "View.List", caught: "TestModelG4G5G6OwnWritesAreShownUntilTheWatchShowsThem",
		old: `append(ended, v.Advance(listRV)...)`,
		new: `ended`,
	},
	{
		name: "what a short watch has told need not have come", rule: "position",
		in: "syncing.reached", caught: "TestG2SyncOfManyObjectsWaitsForWhatTheShortWatchHasTold",
		old: `g.recent && !coherence.Newer(g.afterRV, s.store.View.Position())`,
		new: `g.recent`,
	},
}

// entry has mutants that break rule 2.
var entry = []mutant{
	{
		name: "a tombstone never ends", rule: "entry",
		in: "entry.over", caught: "TestG6ATombstoneEndsWithTheDeletionsEvent",
		old: `e.open || e.object != nil && ev.LastRV != "" && e.object.GetResourceVersion() == ev.LastRV`,
		new: `e.object != nil && ev.LastRV != "" && e.object.GetResourceVersion() == ev.LastRV`,
	},
	{
		name: "a write makes no entry", rule: "entry",
		in: "View.enter", caught: "TestG4OwnWritesAreInTheNextSnapshotThoughTheWatchIsLate",
		old: `v.put(w.Key, entry{atRV: w.Version, uid: w.UID, object: w.Object, since: now})`,
	},
	{
		name: "an entry is made though the watch has been there", rule: "entry",
		in: "View.enter", caught: "TestModelG4G5G6OwnWritesAreShownUntilTheWatchShowsThem",
		old: `!Newer(w.Version, v.positionRV)`,
		new: `false`,
	},
	{
		name: "ends are taken for ordered", rule: "entry",
		in: "View.schedule", caught: "TestG6OwnWritesEndInTheOrderOfTheirVersionsHoweverTheirAnswersCome",
		old: `i > 0 && Newer(v.order[i-1].atRV, p.atRV)`,
		new: `false`,
	},
	{
		name: "a failed write leaves its mark", rule: "entry",
		in: "Stream.EndWrite", caught: "TestG4AWriteThatFailedOrMayHaveFailedLeavesNoTrace",
		old: `f.writes == 0`,
		new: `w != nil && f.writes == 0`,
	},
}

// floor has mutants that break rule 3.
var floor = []mutant{
	{
		name: "lists come from the server's cache", rule: "floor",
		in: "internal/engine/stream.New", caught: "TestG4ARelistIsNoOlderThanTheNewestOwnWrite",
		old: `metav1.ListOptions{LabelSelector: in.Key.Labels, FieldSelector: in.Key.Fields, ShardSelector: in.Selector.Shard.String()}`,
		new: `metav1.ListOptions{ResourceVersion: "0", LabelSelector: in.Key.Labels, FieldSelector: in.Key.Fields, ShardSelector: in.Selector.Shard.String()}`,
	},
	{
		name: "the floor is not kept", rule: "floor",
		in: "Journal.Commit", caught: "TestG5AStreamThatStartsOnARestoredClusterSaysSoBeforeItShowsIt",
		old: `j.floors[resource] = w.Version`,
	},
	{
		name: "the floor is that of the latest answer", rule: "floor",
		in: "Journal.Commit", caught: "TestG4AFloorNeverSinks",
		old: `Newer(w.Version, j.floors[resource])`,
		new: `Comparable(w.Version)`,
	},
	{
		name: "a list that was under way is no older than a give-up", rule: "floor",
		in: "Stream.commit", caught: "TestG5AListThatWasUnderWayWhenWritesWereGivenUpIsNotShown",
		old: `s.progress.phase.gaveUp() && !older && coherence.Newer(s.own.atLeastRV, rv)`,
		new: `false`,
	},
}

// tombstone has mutants that break rule 4.
var tombstone = []mutant{
	{
		name: "a version of the object's own is the deletion's", rule: "tombstone",
		in: "View.Record", caught: "TestG5AVersionThatIsTheObjectsOwnIsNotThatOfItsDeletion",
		old: `Comparable(w.Version) && !v.belied(w, stored)`,
		new: `Comparable(w.Version)`,
	},
	{
		name: "leaving a selector is a deletion", rule: "tombstone",
		in: "View.enterOpen", caught: "TestG5LeavingASelectorDoesNotEndADeletion",
		old: `!v.options.Whole || shown == nil`,
		new: `shown == nil`,
	},
	{
		name: "a list does not end a deletion", rule: "tombstone",
		in: "View.List", caught: "TestModelG4G5G6OwnWritesAreShownUntilTheWatchShowsThem",
		old: `e.open && !Newer(e.atRV, listRV) && holds(key) != e.uid`,
		new: `e.open && holds == nil`,
	},
	{
		name: "the deletion of another UID counts", rule: "tombstone",
		in: "flight.deleted", caught: "TestG4TheDeletionOfAnotherUIDDoesNotAnswerForThisOne",
		old: `d.uid == uid`,
		new: `d.uid != ""`,
	},
}
