package mutants

const (
	view    = "coherence/view.go"
	flight  = "coherence/flight.go"
	journal = "coherence/journal.go"
	stream  = "accumulator/stream/stream.go"
	store   = "accumulator/stream/store.go"
	pages   = "accumulator/stream/pages.go"
	shape   = "accumulator/stream/shape.go"
	listing = "accumulator/stream/listing.go"
	feed    = "accumulator/stream/reflector.go"

	viewModel   = "TestModelG4G5G6OwnWritesAreShownUntilTheWatchShowsThem"
	streamModel = "TestModelG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming"
)

var position = []mutant{
	{
		name: "a position goes back", rule: 1, file: view, caught: "TestG5APositionNeverGoesBack",
		old: `if !Newer(toRV, v.positionRV) {`, new: `if toRV == v.positionRV {`,
	},
	{
		name: "a key has no namespace", rule: 1, file: "internal/object/object.go", in: "accumulator", caught: "TestG7AKeyIsTheNamespaceAndTheName",
		old: `return Key{Namespace: namespace, Name: name}`, new: `return Key{Namespace: namespace[:0], Name: name}`,
	},
	{
		name: "initial events move the position", rule: 1, file: listing, caught: "TestG4HalfAListMovesNoPosition",
		old: `		return "", l.put(o)`,
		new: `		_ = l.stream.bookmark(o.GetResourceVersion())
		return "", l.put(o)`,
	},
	{
		name: "a bookmark moves nothing", rule: 1, file: "accumulator/stream/watching.go", caught: "TestG6ABookmarkEndsWhatNoEventEnds",
		old: `err = f.target.bookmark(m.GetResourceVersion())`, new: `return nil`,
	},
	{
		name: "a list moves nothing", rule: 1, file: view, caught: viewModel,
		old: `return append(ended, v.Advance(listRV)...)
}

// Expire`,
		new: `return ended
}

// Expire`,
	},
	{
		name: "an event older than the position is taken in", rule: 1, file: store, caught: "TestG5WhatSyncHasSeenIsNotTakenBackByTheEventsBefore",
		old: `coherence.Comparable(at) && !coherence.Newer(rv, at)`, new: `false && at != rv`,
	},
}

var entry = []mutant{
	{
		name: "a tombstone never ends", rule: 2, file: view, in: "accumulator", caught: "TestG6ATombstoneEndsWithTheDeletionsEvent",
		old: `	return e.open || e.object != nil && ev.LastRV`, new: `	return e.object != nil && ev.LastRV`,
	},
	{
		name: "a write makes no entry", rule: 2, file: view, in: "accumulator", caught: "TestG4OwnWritesAreInTheNextSnapshotThoughTheWatchIsLate",
		old: `v.put(w.Key, entry{atRV: w.Version, uid: w.UID, object: w.Object, since: now})`, new: ``,
	},
	{
		name: "an entry is made though the watch has been there", rule: 2, file: view, caught: viewModel,
		old: `if !Newer(w.Version, v.positionRV) {`, new: `if false {`,
	},
	{
		name: "an answer that comes late counts as newest", rule: 2, file: view, caught: viewModel,
		old: `if !Newer(w.Version, old.atRV) {`, new: `if false {`,
	},
	{
		name: "an entry outlives its own version", rule: 2, file: view, caught: viewModel,
		old: `!Newer(v.order[n].atRV, v.positionRV)`, new: `Newer(v.positionRV, v.order[n].atRV)`,
	},
	{
		name: "an entry ends by any event", rule: 2, file: view, caught: viewModel,
		old: `!Newer(v.order[n].atRV, v.positionRV); n++`, new: `true; n++`,
	},
	{
		name: "ends are taken for ordered", rule: 2, file: view, caught: viewModel,
		old: `for i > 0 && Newer(v.order[i-1].atRV, p.atRV) {`, new: `for false {`,
	},
	{
		name: "the end of an older entry ends a newer one", rule: 2, file: view, caught: viewModel,
		old: `return ok && !e.open && e.atRV == p.atRV`, new: `return ok && !e.open`,
	},
	{
		name: "superseded ends are kept for ever", rule: 2, file: view, in: "coherence", caught: "TestG3OneKeyWrittenOverAndOverIsOneEntry",
		old: `if len(v.order) > 2*len(v.entries)+orderSlack {`, new: `if false {`,
	},
	{
		name: "a failed write leaves its mark", rule: 2, file: "accumulator/stream/own.go", caught: "TestG4AWriteThatFailedOrMayHaveFailedLeavesNoTrace",
		old: `if f.writes--; f.writes == 0 {`, new: `if f.writes--; w != nil && f.writes == 0 {`,
	},
}

var floor = []mutant{
	{
		name: "lists come from the server's cache", rule: 3, file: stream, caught: "TestG4ARelistIsNoOlderThanTheNewestOwnWrite",
		old: `selection: metav1.ListOptions{LabelSelector`, new: `selection: metav1.ListOptions{ResourceVersion: "0", LabelSelector`,
	},
	{
		name: "the floor is not kept", rule: 3, file: journal, in: "accumulator", caught: "TestG5AStreamThatStartsOnARestoredClusterSaysSoBeforeItShowsIt",
		old: `j.floors[resource] = w.Version`, new: ``,
	},
	{
		name: "the floor is that of the latest answer", rule: 3, file: journal, caught: "TestG4AFloorNeverSinks",
		old: `if Newer(w.Version, j.floors[resource]) {`, new: `if Comparable(w.Version) {`,
	},
	{
		name: "a starting stream ignores the floor", rule: 3, file: stream, caught: "TestG5AStreamThatStartsOnARestoredClusterSaysSoBeforeItShowsIt",
		old: `return coherence.Newest(s.position(), written)`,
		new: `return coherence.Newest(s.position(), written[:0])`,
	},
	{
		name: "a list that was under way is no older than a give-up", rule: 3, file: replacing, caught: "TestG5AListThatWasUnderWayWhenWritesWereGivenUpIsNotShown",
		old: `case s.own.givenUp && !older && coherence.Newer(s.own.atLeastRV, rv):`, new: `case false:`,
	},
	{
		name: "what was given up is shown at once", rule: 3, file: "accumulator/stream/listener.go", caught: "TestG5AListThatWasUnderWayWhenWritesWereGivenUpIsNotShown",
		old: `case s.own.givenUp && l.taken == takenNothing:
		return Batch{}
	case s.own.givenUp:`, new: `case s.own.givenUp && l.taken == takenNothing && false:
		return Batch{}
	case false:`,
	},
}

var tombstone = []mutant{
	{
		name: "a version of the object's own is the deletion's", rule: 4, file: view, caught: "TestG5AVersionThatIsTheObjectsOwnIsNotThatOfItsDeletion",
		old: `if Comparable(w.Version) && !v.belied(w, stored) {`,
		new: `if Comparable(w.Version) {`,
	},
	{
		name: "an event at a deletion's version is a deletion", rule: 4, file: view, caught: "TestG5AVersionThatIsTheObjectsOwnIsNotThatOfItsDeletion",
		old: `e.open = true // the version`,
		new: `e.open = false // the version`,
	},
	{
		name: "an overlaid deletion is not read", rule: 4, file: view, caught: viewModel,
		old: `if e, ok := v.entries[key]; ok {
		return`,
		new: `if e, ok := v.entries[key]; ok && e.object != nil {
		return`,
	},
	{
		name: "any newer event ends a deletion", rule: 4, file: view, caught: viewModel,
		old: `	case ev.Object != nil:
		return e.open && ev.UID != e.uid && Newer`, new: `	case e.open:
		return Newer`,
	},
	{
		name: "leaving a selector is a deletion", rule: 4, file: view, caught: "TestG5LeavingASelectorDoesNotEndADeletion",
		old: `if !v.options.Whole || shown == nil`, new: `if shown == nil`,
	},
	{
		name: "a deletion hides whoever has the name", rule: 4, file: view, caught: viewModel,
		old: `shown.GetUID() != w.UID {`, new: `false {`,
	},
	{
		name: "a list does not end a deletion", rule: 4, file: view, caught: viewModel,
		old: `!Newer(e.atRV, listRV) && holds(key) != e.uid {`, new: `holds == nil {`,
	},
	{
		name: "a list without the object ends a deletion, however old", rule: 4, file: view, caught: "TestG5AListFromBeforeAnObjectDoesNotEndItsDeletion",
		old: `if e.open && !Newer(e.atRV, listRV) && holds(key)`, new: `if e.open && holds(key)`,
	},
	{
		name: "an older answer brings a deleted object back", rule: 4, file: view, caught: viewModel,
		old: `if old.open && old.uid == w.UID && w.Object != nil {`, new: `if false {`,
	},
}

// overtaking are mistakes with deletions whose event came before the answer.
var overtaking = []mutant{
	{
		name: "a deletion that the watch has shown is asked about", rule: 4, file: view, in: "accumulator", caught: "TestG4ADeletionWhoseEventOvertakesItsAnswerIsNotAskedAbout",
		old: `	v.note(ev)
`, new: ``,
	},
	{
		name: "any DELETED event counts, also in a stream with a selector", rule: 4, file: view, caught: "TestG4G5ADeletedEventOfASelectiveStreamAnswersForNoDeletion",
		old: `	case v.options.Whole || ev.LastRV != "":
		f.gone`, new: `	default:
		f.gone`,
	},
	{
		name: "the deletion of another UID counts", rule: 4, file: flight, caught: "TestG4TheDeletionOfAnotherUIDDoesNotAnswerForThisOne",
		old: `if d.uid == uid {`, new: `if d.uid != "" {`,
	},
	{
		name: "a seen deletion outlives the write", rule: 4, file: flight, caught: "TestG3WhatTheWatchHasShownOfDeletionsEndsWithTheLastWriteThatItMayAnswer",
		old: `if one.writes--; one.writes == 0 {`, new: `if one.writes--; one.writes < 0 {`,
	},
	{
		name: "the first write to end takes what another needs", rule: 4, file: flight, caught: "TestG3WhatTheWatchHasShownOfDeletionsEndsWithTheLastWriteThatItMayAnswer",
		old: `if one.writes--; one.writes == 0 {`, new: `if one.writes--; one.writes >= 0 {`,
	},
	{
		name: "every deletion during a write is kept", rule: 4, file: flight, caught: "TestG3OneKeyMadeAndDeletedOverAndOverDuringAWriteIsBounded",
		old: `if len(all) == seenMost {`, new: `if len(all) < 0 {`,
	},
	{
		name: "a seen deletion outlives its history", rule: 4, file: view, caught: "TestG5ADeletionOfAnotherHistoryAnswersForNothing",
		old: `f.gone, f.met = nil, nil // they`, new: `f.met = nil // they`,
	},
	{
		name: "what the watch showed before a write was sent is not known when it is answered", rule: 4, file: view, caught: "TestG4WhatTheWatchHasShownOfAnObjectIsKnownWhileAWriteIsUnderWay",
		old: `	if stored != nil {
		v.flights[key].meet(`,
		new: `	if stored == nil {
		v.flights[key].meet(`,
	},
	{
		name: "what the watch shows while a write is under way is not known when it is answered", rule: 4, file: view, caught: "TestG4WhatTheWatchHasShownOfAnObjectIsKnownWhileAWriteIsUnderWay",
		old: `		f.meet(ev.UID, ev.Version)`,
		new: `		_ = f`,
	},
	{
		name: "a deletion that was seen hides who has the name since", rule: 4, file: view, caught: "TestG5ADeletionThatTheWatchHasShownHidesNobodyWhoHasTheNameSince",
		old: `		w.Version = seen.atRV
`,
		new: `		if w.Version = seen.atRV; w.Version != "" {
			v.put(w.Key, entry{atRV: w.Version, uid: w.UID, open: true})
			return true
		}
`,
	},
}
