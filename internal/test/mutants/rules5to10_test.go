package mutants

// classifier has mutants that break rule 5.
var classifier = []mutant{
	{
		name: "a deleted Service is there, as answered", rule: "classifier",
		in: "write.written", caught: "TestG4EveryAnswerIsReadForWhatBecameOfTheObject/a_Service,_as_it_was_before",
		old: `op == OpDelete && !deleted`,
		new: `false`,
	},
	{
		name: "whatever has a deletionTimestamp is there", rule: "classifier",
		in: "write.written", caught: "TestG4EveryAnswerIsReadForWhatBecameOfTheObject/a_Pod_of_no_grace,_with_its_deletion",
		old: `deleted && !kept(answer, removed...)`,
		new: `false`,
	},
	{
		name: "the last finalizer's answer has the deletion's version", rule: "classifier",
		in: "write.written", caught: "TestG4EveryAnswerIsReadForWhatBecameOfTheObject/the_last_finalizer_removed,_old_version",
		old: `if op == OpDelete {
				w.Version = answer.GetResourceVersion()
			}`,
		new: `if op != OpGet {
				w.Version = answer.GetResourceVersion()
			}`,
	},
	{
		name: "finalizers keep nothing", rule: "classifier",
		in: "write.kept", caught: "TestG4EveryAnswerIsReadForWhatBecameOfTheObject/deleted,_and_kept_by_a_finalizer",
		old: `!slices.Contains(removed, f)`,
		new: `!slices.Contains(removed, f) && f == ""`,
	},
	{
		name: "a namespace's own finalizers keep nothing", rule: "classifier",
		in: "write.kept", caught: "TestG4EveryAnswerIsReadForWhatBecameOfTheObject/a_namespace_with_finalizers_of_its_own",
		old: `u.GetKind() == "Namespace"`,
		new: `false`,
	},
}

// settling has mutants that break rule 6.
var settling = []mutant{
	{
		name: "an opaque field selector passes everything", rule: "settling",
		in: "Intake.JudgeWrite", caught: "TestG4WhereAWriteCannotBeJudgedTheServerIsAsked",
		old: `return w, certain`,
		new: `return w, certain || true`,
	},
	{
		name: "an unknown outcome is a deletion", rule: "settling",
		in: "Intake.JudgeWrite", caught: "TestG4WhereAllObjectsMayNotBeListedEachStreamAsksForItself",
		old: `o.Unknown`,
		new: `false`,
	},
	{
		name: "who may not list all objects learns nothing of its own write", rule: "settling",
		in: "Write.resolveOutcome", caught: "TestG4WhereAllObjectsMayNotBeListedEachStreamAsksForItself",
		old: `err != nil && refuses(err)`,
		new: `false`,
	},
	{
		name: "a write of which the server cannot be asked is forgotten", rule: "settling",
		in: "Write.resolveOutcome", caught: "TestG4AWriteOfWhichTheServerCannotBeAskedIsReported",
		old: `st.Unsettle(o.Key, o.Version)`,
		new: `_ = st`,
	},
	{
		name: "an unsettled write is kept from the status", rule: "settling",
		in: "Write.Commit", caught: "TestG4AnUnsettledDeletionIsInTheStatus",
		old: `st.Unsettle(o.Key, o.Version)`,
	},
}

// coverage has mutants that break rule 7.
var coverage = []mutant{
	{
		name: "resources of two groups are two", rule: "coverage",
		in: "Resolver.sameStorage", caught: "TestG4ResourcesOfOneStorageHaveOneIdentity",
		old: `other == hash`,
		new: `other == hash && false`,
	},
	{
		name: "an upgrade of the server renames what is stored", rule: "coverage",
		in: "Resolver.Storage", caught: "TestG4AStorageIdentityOutlivesAnUpgradeOfTheServer",
		old: `if earlier, ok := r.canonical[resource]; ok {
				identity = earlier // it is already in use
				break
			}`,
		new: `if earlier, ok := r.canonical[resource]; ok && false {
				identity = earlier // it is already in use
				break
			}`,
	},
	{
		name: "streams of other versions are not told", rule: "coverage",
		in: "Set.over", caught: "TestG4AWriteThroughAnotherVersionOfTheResourceIsShown",
		old: `m.Resource.Storage == storage`,
		new: `m.Resource.Storage == storage && m.Resource.Version == "v1"`,
	},
}

// probe has mutants that break rule 8.
var probe = []mutant{
	{
		name: "a server that has gone back passes", rule: "probe",
		in: "Reflector.probe", caught: "TestG5ARestoredClusterIsNoticedThoughTheWatchCanBeResumed",
		old: `coherence.Newer(floorRV, newestRV)`,
		new: `newestRV == floorRV && false`,
	},
	{
		name: "silence is nothing", rule: "probe",
		in: "Reflector.read", caught: "TestG2AHalfOpenWatchIsOpenedAnewWithoutAList",
		old: `got.ending = silent
			return got`,
		new: `quiet.Reset(f.IdleTimeout)`,
	},
	{
		name: "residue waits for ever", rule: "probe",
		in: "Reflector.probe", caught: "TestG6AnOwnWriteThatNoEventConfirmsEndsWithinAnIdleTimeout",
		old: `wasSilent && f.sink.Progress().Owed`,
		new: `false`,
	},
	{
		name: "a list that was overtaken is a restored cluster", rule: "probe",
		in: "Stream.commit", caught: "TestG5AListThatWasOvertakenIsNeverTakenForARestoredServer",
		old: `older && !coherence.Newer(l.asked.FloorRV, rv)`,
		new: `false`,
	},
}

// echo has mutants that break rule 9.
var echo = []mutant{
	{
		name: "the version that is shown is shown again", rule: "echo",
		in: "Store.KeepIfSameVersion", caught: "TestG7ASettlingListThatBringsWhatIsShownChangesNothing",
		old: `return shown`,
		new: `return o`,
	},
	{
		name: "a settling list replaces what is shown", rule: "echo",
		in: "Stream.RecordWrite", caught: "TestG7ASettlingListThatBringsWhatIsShownChangesNothing",
		old: `s.store.KeepIfSameVersion(before, o)`,
		new: `o`,
	},
	{
		name: "an own write's event is news", rule: "echo",
		in: "Store.Add", caught: "TestG4AnOwnWriteSignalsOnceAndItsEchoNever",
		old: `s.KeepIfSameVersion(shown, beside)`,
		new: `beside`,
	},
	{
		name: "what another stream brings again replaces what is shown", rule: "echo",
		in: "Accumulator.changedFrom", caught: "TestG7AQueryThatIsRemovedAndAddedAgainUnreadHasDeltasForWhatDiffersAlone",
		old: `!a.collector.Same(old.Source, c.Object)`,
		new: `true`,
	},
}

// lastState has mutants that break rule 10.
var lastState = []mutant{
	{
		name: "a deletion with the last version of its object is old news", rule: "last state",
		in: "Stream.event", caught: "TestG2ADeletionThatHasTheStoredVersionIsADeletion/all",
		old: `last || !s.store.Stale(key, o)`,
		new: `!s.store.Stale(key, o)`,
	},
	{
		name: "the last version of an object is that of its deletion", rule: "last state",
		in: "coherence.LastState", caught: "TestG4G6AnOwnDeletionEndsByAnEventThatHasTheStoredVersion",
		old: `stored != nil`,
		new: `stored == nil`,
	},
	{
		name: "a deletion with the last version is another object's", rule: "last state",
		in: "coherence.LastState", caught: "TestG2ADeletionHasTheLastStateIfItHasTheUIDAndTheVersionOfWhatIsStored",
		old: `stored != nil && Comparable(deleted.GetResourceVersion()) &&
			stored.GetUID() == deleted.GetUID()`,
		new: `stored != nil && Comparable(deleted.GetResourceVersion())`,
	},
	{
		name: "an answer brings back what was deleted without a version", rule: "last state",
		in: "View.Record", caught: "TestG5AnAnswerFromBeforeADeletionThatHasTheStoredVersionBringsNothingBack",
		old: `w.UID != ""`,
		new: `v == nil`,
	},
}

// warm has mutants that break the rules of warm starts.
var warm = []mutant{
	{
		name: "nobody asks the witnesses", rule: "W3",
		in: "start.finish", caught: "TestG1G2WhateverIsInDoubtIsAListAndSaysWhy",
		old: `if err := w.verdict(p.answered); err != nil {
				return "", err
			}`,
		new: `if err := w.verdict(p.answered); err != nil && ctx == nil {
				return "", err
			}`,
	},
	{
		name: "a witness that the server does not have is no objection", rule: "W3",
		in: "warm.judge", caught: "TestW3AWitnessThatTheWatchHasNotChangedMustBeOnTheServer",
		old: `return contradicted`,
		new: `continue`,
	},
	{
		name: "a server that is behind the file is believed", rule: "W2",
		in: "start.newest", caught: "TestG1G2WhateverIsInDoubtIsAListAndSaysWhy",
		old: `coherence.Newer(w.head.Position, rv)`,
		new: `coherence.Newer(w.head.Position, rv) && rv == ""`,
	},
	{
		name: "the present is not waited for", rule: "W1",
		in: "catching.reached", caught: "TestG1NothingIsShownBeforeAQuietWatchHasReachedThePresent",
		old: `!coherence.Newer(c.now.RV, c.at)`,
		new: `c.at != ""`,
	},
	{
		name: "a bookmark of an old version is the present", rule: "W1",
		in: "catching.take", caught: "TestG2ABookmarkThatRepeatsAnOldVersionIsNotThePresent",
		old: `case e.Type == watch.Bookmark:
			return nil`,
		new: `case e.Type == watch.Bookmark:
			c.at = c.now.RV
			return nil`,
	},
	{
		name: "a file may be of any age", rule: "W4",
		in: "start.suits", caught: "TestG1G2WhateverIsInDoubtIsAListAndSaysWhy",
		old: `age > FileMost || age < -FileMost`,
		new: `age < -FileMost`,
	},
}
