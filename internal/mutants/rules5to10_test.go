package mutants

const (
	own      = "kates/write.go"
	storage  = "internal/kinds/storage.go"
	inquiry  = "accumulator/stream/inquiry.go"
	write    = "accumulator/stream/write.go"
	watching = "accumulator/stream/watching.go"
	update   = "accumulator/update.go"
	rows     = "accumulator/rows.go"

	everyAnswer = "TestG4EveryAnswerIsReadForWhatBecameOfTheObject/"
)

var classifier = []mutant{
	{
		name: "a deleted Service is there, as answered", rule: 5, file: own, caught: everyAnswer + "a_Service,_as_it_was_before",
		old: `case op == opDelete && !deleted:`, new: `case false:`,
	},
	{
		name: "whatever has a deletionTimestamp is there", rule: 5, file: own, caught: everyAnswer + "a_Pod_of_no_grace,_with_its_deletion",
		old: `case deleted && !kept(answer, removed...):`, new: `case false:`,
	},
	{
		name: "the last finalizer's answer has the deletion's version", rule: 5, file: own, caught: everyAnswer + "the_last_finalizer_removed,_old_version",
		old: `		if op == opDelete {`, new: `		if op != opGet {`,
	},
	{
		name: "finalizers keep nothing", rule: 5, file: own, caught: everyAnswer + "deleted,_and_kept_by_a_finalizer",
		old: `if !slices.Contains(removed, f) {`, new: `if !slices.Contains(removed, f) && f == "" {`,
	},
	{
		name: "a grace of zero keeps an object", rule: 5, file: own, caught: everyAnswer + "a_Pod_of_no_grace,_with_its_deletion",
		old: `grace != nil && *grace > 0`, new: `grace != nil`,
	},
	{
		name: "a namespace's own finalizers keep nothing", rule: 5, file: own, caught: everyAnswer + "a_namespace_with_finalizers_of_its_own",
		old: `if u.GetKind() == "Namespace" &&`, new: `if false &&`,
	},
	{
		name: "a dry run is a write", rule: 5, file: own, in: "kates", caught: "TestG4ADryRunIsNoOwnWrite",
		old: `case w.dryRun != nil || a.unrelated:`, new: `case a.unrelated:`,
	},
}

var settling = []mutant{
	{
		name: "an opaque field selector passes everything", rule: 6, file: write, caught: "TestG4WhereAWriteCannotBeJudgedTheServerIsAsked",
		old: `return w, certain`, new: `return w, certain || true`,
	},
	{
		name: "another version's answer is taken as it is", rule: 6, file: write, caught: "TestG4AWriteThroughAnotherVersionOfTheResourceIsShown",
		old: `if !ok || written.GroupVersionResource != s.resource.GroupVersionResource {`, new: `if !ok {`,
	},
	{
		name: "an unknown outcome is a deletion", rule: 6, file: write, caught: "TestG4OnAFakeAWriteOfUnknownOutcomeIsAskedFor",
		old: `if o.Unknown {`, new: `if false {`,
	},
	{
		name: "each stream is asked what became of an object", rule: 6, file: inquiry, caught: "TestG4AnOwnDeletionWhoseAnswerNobodyCanReadShowsInAUnion",
		old: `if !o.Unknown || s.config.ByContent {`, new: `if true {`,
	},
	{
		name: "who may not list all objects learns nothing of its own write", rule: 6, file: inquiry, caught: "TestG4WhereAllObjectsMayNotBeListedEachStreamAsksForItself",
		old: `case err != nil && refuses(err):`, new: `case false:`,
	},
	{
		name: "what is found by asking is an own write", rule: 6, file: inquiry, caught: "TestG2WhatOthersHaveMadeOfAnObjectSignalsThoughAnOwnWriteFindsItFirst",
		old: `, found: object != nil}`, new: `, found: false && object != nil}`,
	},
	{
		name: "events that came while an own write was asked for were its own", rule: 6, file: write, caught: "TestG2WhatOthersHaveMadeOfAnObjectSignalsThoughAnOwnWriteFindsItFirst",
		old: `		w.land(nil) // nobody`, new: `		w.land(&o.Write) // nobody`,
	},
	{
		name: "a write of which the server cannot be asked is forgotten", rule: 6, file: inquiry, caught: "TestG4AWriteOfWhichTheServerCannotBeAskedIsReported",
		old: `			st.unsettle(o.Key, o.Version)
		}
		return o, fmt`, new: `			_ = st
		}
		return o, fmt`,
	},
	{
		name: "the server is asked without the stream's selector", rule: 6, file: pages, caught: "TestG4WhereAWriteCannotBeJudgedTheServerIsAsked",
		old: `name = fields.AndSelectors(own, name)`, new: `_ = own`,
	},
	{
		name: "the server's cache is asked", rule: 6, file: pages, caught: streamModel,
		old: `o.ResourceVersion, o.ResourceVersionMatch = notOlderThanRV, metav1.ResourceVersionMatchNotOlderThan`, new: `o.ResourceVersion = "0"`,
	},
	{
		name: "an unsettled write is kept from the status", rule: 6, file: write, caught: "TestG4AnUnsettledDeletionIsInTheStatus",
		old: `st.unsettle(o.Key, o.Version)`, new: ``,
	},
}

var coverage = []mutant{
	{
		name: "resources of two groups are two", rule: 7, file: storage, caught: "TestG4ResourcesOfOneStorageHaveOneIdentity",
		old: `if other == hash {`, new: `if other == hash && false {`,
	},
	{
		name: "an upgrade of the server renames what is stored", rule: 7, file: storage, caught: "TestG4AStorageIdentityOutlivesAnUpgradeOfTheServer",
		old: `if earlier, ok := r.canonical[resource]; ok {`, new: `if earlier, ok := r.canonical[resource]; ok && false {`,
	},
	{
		name: "streams of other versions are not told", rule: 7, file: "accumulator/stream/set.go", caught: "TestG4AWriteThroughAnotherVersionOfTheResourceIsShown",
		old: `if st.resource.Storage == storage {`, new: `if st.resource.Storage == storage && st.resource.Version == "v1" {`,
	},
}

var probe = []mutant{
	{
		name: "no probe after a watch that ended badly", rule: 8, file: watching, caught: "TestG5ARestoredClusterIsNoticedThoughTheWatchCanBeResumed",
		old: `if last.bad || last.silent {`, new: `if last.silent {`,
	},
	{
		name: "a server that has gone back passes", rule: 8, file: watching, caught: "TestG5ARestoredClusterIsNoticedThoughTheWatchCanBeResumed",
		old: `case coherence.Newer(asked.atLeastRV, newestRV):`, new: `case newestRV == "" && asked.doubted:`,
	},
	{
		name: "a server that lacks own writes passes", rule: 8, file: watching, caught: "TestG6AnOwnWriteThatABackupLacksIsGoneWithIt",
		old: `asked := f.asks()`, new: `asked := ask{atLeastRV: f.resume()}`,
	},
	{
		name: "a probe lists everything", rule: 8, file: watching, caught: "TestG5ARestoredClusterIsNoticedThoughTheWatchCanBeResumed",
		old: `o.Limit = 1`, new: `o.Limit = 0`,
	},
	{
		name: "silence is nothing", rule: 8, file: watching, caught: "TestG2AHalfOpenWatchIsOpenedAnewWithoutAList",
		old: `return ending{silent: true}`, new: `quiet.Reset(silence)`,
	},
	{
		name: "residue waits for ever", rule: 8, file: watching, caught: "TestG6AnOwnWriteThatNoEventConfirmsEndsWithinAnIdleTimeout",
		old: `case last.silent && f.target.owed():`, new: `case false:`,
	},
	{
		name: "the old history never ends", rule: 8, file: replacing, caught: "TestG5ARestoredClusterStartsANewHistory",
		old: `case older && !asked.doubted:`, new: `case older:`,
	},
	{
		name: "what was not settled outlives its history", rule: 8, file: replacing, caught: "TestG6AnUnsettledWriteThatABackupLacksIsGoneWithIt",
		old: `		clear(s.own.unsettled)`, new: ``,
	},
	{
		name: "one older list is a restored cluster", rule: 8, file: replacing, caught: "TestG5AStreamThatStartsOnARestoredClusterSaysSoBeforeItShowsIt",
		old: `case older && !asked.doubted:`, new: `case false:`,
	},
	{
		name: "a list that was overtaken is a restored cluster", rule: 8, file: replacing, caught: "TestG5AListThatWasOvertakenIsNeverTakenForARestoredServer",
		old: `case older && !coherence.Newer(asked.atLeastRV, rv):`, new: `case false:`,
	},
	{
		name: "a broken watch is a new list", rule: 8, file: watching, caught: "TestG2AWatchThatBreaksIsResumedWithoutAList",
		old: `		last.bad = true
		f.target.failed`,
		new: `		return nil, err
		f.target.failed`,
	},
}

var echo = []mutant{
	{
		name: "the version that is shown is shown again", rule: 9, file: store, caught: "TestG5ARestartFromAnyListKeepsWhatIsShown",
		old: `	return shown
}

// version returns`,
		new: `	return o
}

// version returns`,
	},
	{
		name: "a list replaces every object", rule: 9, file: replacing, caught: "TestG5ARestartFromAnyListKeepsWhatIsShown",
		old: `fresh[key] = s.store.listed(shown(key), o, l.compared[key])`, new: `fresh[key] = o`,
	},
	{
		name: "a settling list replaces what is shown", rule: 9, file: "accumulator/stream/own.go", caught: "TestG7ASettlingListThatBringsWhatIsShownChangesNothing",
		old: `w.Object = s.store.echo(before, o) //`, new: `w.Object = o //`,
	},
	{
		name: "an own write's event is news", rule: 9, file: stream, caught: "TestG4AnOwnWriteSignalsOnceAndItsEchoNever",
		old: `!s.put(key, s.store.echo(before, o))`, new: `!s.put(key, o)`,
	},
	{
		name: "what another stream brings again replaces what is shown", rule: 9, file: rows,
		caught: "TestG7AQueryThatIsRemovedAndAddedAgainUnreadHasDeltasForWhatDiffersAlone",
		old:    `(differ || !a.collector.Same(old.Source, c.Object)):`, new: `(differ || true):`,
	},
}

var lastState = []mutant{
	{
		name: "a query that replaces another brings back what was deleted without a version", rule: 10, file: "accumulator/query/succeed.go",
		caught: "TestG5ADeletionWithoutItsVersionIsNotTakenBackByAQueryThatReplacesAnother",
		old:    `(older || at.deletion > p.caught)`, new: `older`,
	},
	{
		name: "a deletion with the last version of its object is old news", rule: 10, file: stream, caught: "TestG2ADeletionThatHasTheStoredVersionIsADeletion/all",
		old: `	if last || !s.store.stale(key, o) {`, new: `	if !s.store.stale(key, o) {`,
	},
	{
		name: "the last version of an object is that of its deletion", rule: 10, file: view, in: "accumulator", caught: "TestG4G6AnOwnDeletionEndsByAnEventThatHasTheStoredVersion",
		old: `return stored != nil && Comparable(deleted`,
		new: `return stored == nil && Comparable(deleted`,
	},
	{
		name: "a deletion without a version ends no open one", rule: 10, file: view, in: "coherence",
		caught: "TestG2G4ADeletionThatHasTheStoredVersionEndsNothingButTheDeletionOfThatObject",
		old:    `	return e.open || e.object`, new: `	return e.open && Newer(ev.Version, e.atRV) || e.object`,
	},
	{
		name: "a deletion with the last version is another object's", rule: 10, file: view, in: "coherence",
		caught: "TestG2ADeletionHasTheLastStateIfItHasTheUIDAndTheVersionOfWhatIsStored",
		old:    `		stored.GetUID() == deleted.GetUID() && `, new: `		`,
	},
	{
		name: "an answer brings back what was deleted without a version", rule: 10, file: view, in: "coherence",
		caught: "TestG5AnAnswerFromBeforeADeletionThatHasTheStoredVersionBringsNothingBack",
		old:    `	if isSeen && w.Object != nil && w.UID != "" && `, new: `	if isSeen && w.Object != nil && v == nil && `,
	},
	{
		name: "what the server was asked for outlives a deletion without a version", rule: 10, file: view, in: "coherence",
		caught: "TestG2G4ADeletionThatHasTheStoredVersionEndsNothingButTheDeletionOfThatObject",
		old:    `ev.LastRV != "" && e.object`, new: `ev.LastRV == "" && e.object`,
	},
	{
		name: "what the server is asked for outlives a deletion without a version in a stream with a selector", rule: 10, file: view, in: "coherence",
		caught: "TestG5AnAnswerThatHasTheDeletedStateBringsNothingBackInAStreamWithASelector",
		old:    `	case v.options.Whole || ev.LastRV != "":`, new: `	case v.options.Whole:`,
	},
	{
		name: "a move with the stored version hides what is written after it", rule: 10, file: view, in: "coherence",
		caught: "TestG5AnAnswerThatHasTheDeletedStateBringsNothingBackInAStreamWithASelector",
		old:    ` && (v.options.Whole || seen.lastRV == w.Object.GetResourceVersion()) {`, new: ` {`,
	},
}
