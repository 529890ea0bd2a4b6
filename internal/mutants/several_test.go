package mutants

const (
	merge      = "accumulator/query/merge.go"
	departures = "accumulator/stream/departure.go"
	union      = "coherence/union.go"
	departed   = "coherence/departure.go"

	unionModel   = "TestModelG4G5G6AUnionShowsTheTruthOfAVersionThatOnlyGrows"
	unionGivenUp = "TestG4WhatMovedWhileWritesWereGivenUpIsInTheFirstSnapshotOfAUnion"
)

// several are mistakes where one query has several watches.
var several = []mutant{
	{
		name: "what leaves one watch of a union leaves the union", peer: torn, file: union, in: "accumulator", caught: "TestG5AUnionNeitherTearsNorResurrectsThoughOneWatchIsLate",
		old: `if final(best, left.LeftRV, sights) {`,
		new: `if true {`,
	},
	{
		name: "what is shown between two takes is not known to have been shown", peer: torn, file: "accumulator/stream/listener.go",
		caught: "TestG2G6WhatComesWhileStreamsAreMergedAndGoesBeforeTheNextUpdateDoesNotStay",
		old: `l.dirty[key]; dirty {
			l.dirty[key] = true`,
		new: `l.dirty[key]; dirty {
			_ = dirty`,
	}, {
		name: "what a reader looks up between two takes is not noted", peer: torn, file: "accumulator/stream/listener.go",
		caught: "TestModelG4G5G6G7G9SnapshotsAreCoherentWhateverTheTiming",
		old:    `l.dirty[key]; dirty {`,
		new:    `l.dirty[key]; false && dirty {`,
	},

	{
		name: "a watch that is late takes back what another has shown", peer: torn, file: union, in: "accumulator", caught: "TestG5AUnionThatIsPutTogetherAnewTakesNothingBackThoughOneWatchIsLate",
		old: `if shown != nil && !isNewer(d.Object, shown) {`,
		new: `if false {`,
	},
	{
		name: "that an object left is forgotten where another watch shows it older", peer: torn, file: union, in: "accumulator", caught: "TestG8AnObjectThatMovesThereAndBackIsNeverOutOfAUnionThoughOneWatchIsLate",
		old: `if best != nil && !Newer(leftRV, best.GetResourceVersion()) {`,
		new: `if best != nil {`,
	},
	{
		name: "what is held is as it was shown, however old", peer: torn, file: union, in: "accumulator", caught: "TestG4WhatComesAndGoesUnreadInAUnionIsShownUntilItIsKnownWhere",
		old: `Object: newerOf(best, left.Last)`,
		new: `Object: best`,
	},
	{
		name: "what left while writes were given up is forgotten", peer: torn, file: "accumulator/stream/commit.go", caught: unionGivenUp,
		old: `l.resume()`,
		new: `l.restart()`,
	},
	{
		name: "what nobody but the writer had seen is forgotten when writes are given up", peer: torn, file: "accumulator/stream/own.go", caught: unionGivenUp,
		old: `			if l.Union != nil {
				l.depart(key, coherence.GivenUp(o, wroteRV)) // rule U6 of package coherence
			}
		}
	}
	s.store.fold()
`,
		new: `			_, _ = l, o
		}
	}
	s.store.view.GiveUp()
`,
	},
	{
		name: "what was deleted comes back when writes are given up, and leaves again with the list", peer: torn, file: "accumulator/stream/own.go",
		caught: "TestG5WhatWasDeletedDoesNotComeBackInAUnionThoughWritesAreGivenUp",
		old: `			if l.Union != nil {
				l.depart(key, coherence.GivenUp(o, wroteRV)) // rule U6 of package coherence
			}
		}
	}
	s.store.fold()
`,
		new: `			_, _ = l, o
		}
	}
	s.store.view.GiveUp()
`,
	},
	{
		name: "a first snapshot of a union goes without what is given up", peer: torn, file: merge, caught: "TestG1AFirstReadingOfAUnionWaitsForTheRelistToo",
		old: `if u.lost && !shown.Present() {`,
		new: `if false {`,
	},
	{
		name: "a union is shown before its watches have come to one version", peer: torn, file: "accumulator/query/align.go", caught: "TestG1TheFirstSnapshotOfAUnionHasWhatIsOnItsWayFromOneWatchToTheOther",
		old: `if coherence.Newer(u.target, p.listener.State().PositionRV) {`,
		new: `if false {`,
	},
	{
		name: "the start of a union does not think of own writes that are pending", peer: torn, file: subscription, in: "accumulator", caught: "TestG1TheFirstSnapshotOfAUnionHasWhatAnOwnWriteTakesFromOneStreamToTheOther",
		old: `	l.taken = takenBatches
	return l.stream.store.view.Newest()`,
		new: `	l.taken = takenBatches
	return l.stream.store.view.Position()`,
	},
	{
		name: "how an own write took a key out of a stream is not thought of once it was forgotten", peer: torn, file: subscription, in: "accumulator", caught: "TestG4AnOwnWriteThatOneWatchHasBeforeItTellsAllAnewHidesNothing",
		old: `now.SkippedRV = knownRV //`,
		new: `_ = knownRV //`,
	},
	{
		name: "a deletion waits for own writes of other objects", peer: torn, file: "accumulator/stream/stream.go", in: "accumulator", caught: "TestG2ADeletionDoesNotWaitForAnOwnWriteOfAnotherObject",
		old: `	s.listeners[l] = struct{}{}`,
		new: `	l.forgottenRV = s.store.view.Newest()
	s.listeners[l] = struct{}{}`,
	},
	{
		name: "an own write that moves an object leaves a gap between two watches", peer: torn, file: "accumulator/stream/stream.go", caught: "TestG8AnObjectThatIsMovedIsNeverOutOfAUnionThoughOneWatchHasToAsk",
		old: `l.leaves(key, before, after)`,
		new: `if by == delivered {
			l.leaves(key, before, after)
		}`,
	},
	{
		name: "an own write that one watch has not had is not waited for", peer: torn, file: departed, caught: "TestG4PassedTable",
		old: `d := Departure{LeftRV: w.Version}`,
		new: `d := Departure{}`,
	},
	{
		name: "what comes and goes between a watch's lists is not thought of", peer: torn, file: union, in: "accumulator", caught: "TestG8AListThatSkipsAVisitDoesNotHideWhatAnotherWatchHasYetToShow",
		old: `left.LeftRV = Newest(left.LeftRV, sights[i].SkippedRV) // U5`,
		new: `_ = i`,
	},
	{
		name: "what one watch tells anew counts before the others have come so far", peer: torn, file: untaken, caught: "TestG8WhatOneWatchTellsAnewTakesNothingFromAnotherThatIsLate",
		old: `u.left, u.forgottenRV = nil, positionRV`,
		new: `u.left, u.forgottenRV = nil, ""`,
	},
	{
		name: "an own write that its watch has passed is not shown while another watch is late", peer: torn, file: departed, in: "accumulator", caught: "TestG4AnOwnWriteIsShownThoughItsWatchWasPastItAndAnotherIsLate",
		old: `superseded := w.Object != nil`,
		new: `superseded := false`,
	},
	{
		name: "an own write that a later one has superseded in its watch is not shown while another watch is late", peer: torn, file: departures, caught: "TestG4AnOwnWriteIsShownThoughALaterOneHasReachedItsWatchAndAnotherIsLate",
		old: `d := coherence.Passed(w, fate, how.existedRV)`,
		new: `if fate == coherence.Elsewhere && coherence.Newer(w.Version, l.stream.store.view.Position()) {
			w.Object = nil
		}
		d := coherence.Passed(w, fate, how.existedRV)`,
	},
	{
		name: "an own write that takes an object out of a union is not shown while a watch is late", peer: torn, file: departures, caught: "TestG4AnOwnWriteThatTakesAnObjectOutOfAUnionIsShownThoughAWatchIsLate",
		old: `case how.by == deleted || l.Union.excludes(how.as, how.denied):`,
		new: `case how.by == deleted:`,
	},
	{
		name: "what the server denies stays as it was while another watch is late", peer: torn, file: inquiry,
		caught: "TestG4WhatAnOwnWriteTakesOutOfAUnionIsNotShownThoughTheServerHadToBeAsked",
		old:    `how.denied[st.selector.key()] = true`, new: `how.denied[st.selector.key()] = false`,
	},
	{
		name: "what the server answers of an own write is not shown where its watch was past it", peer: torn, file: "accumulator/stream/own.go",
		caught: "TestG4AnOwnWriteIsShownAsTheServerAnswersThoughItsWatchWasPastItAndAnotherIsLate",
		old:    `if !how.asked || w.Object != nil {`, new: `if !how.asked {`,
	},
	{
		name: "an own deletion ends what was made anew", peer: torn, file: inquiry, caught: "TestG8AnOwnDeletionTakesNothingFromWhatWasMadeAnewSince",
		old: `Version: by}, how)`, new: `Version: "9999"}, landing{by: deleted, asked: true})`,
	},
	{
		name: "an own deletion that one watch has shown ends what was made anew, where another had to ask", peer: torn, file: inquiry, caught: "TestG8AnOwnDeletionThatOneWatchHasShownTakesNothingFromWhatWasMadeAnewSince",
		old: `by, how.existedRV = older(by, saw), coherence.Newest(how.existedRV, existedRV)`,
		new: `_, _ = saw, existedRV`,
	},
	{
		name: "an own deletion ends what was made since, where the watch went on while another was asked", peer: torn, file: inquiry, in: "accumulator", caught: "TestG2AnObjectIsNotTakenForOneOfItsNameThatAnOwnWriteHasDeletedBefore",
		old: `coherence.Newest(how.existedRV, existedRV)`,
		new: `coherence.Newest(how.existedRV, existedRV[:0])`,
	},
	{
		name: "an own deletion ends the object that the server shows after it", peer: torn, file: departed, in: "accumulator", caught: "TestG2AnObjectThatWasMadeAfterAnOwnDeletionIsNotTakenForTheDeletedOne",
		old: `(d.Since == "" || d.Since != state.GetUID())`,
		new: `(d.Since == "" || true)`,
	},
	{
		name: "an own deletion ends what is newer than the object was, where a watch had to ask", peer: torn, file: departed, in: "accumulator", caught: "TestG4AnOwnWriteOfWhatWasMadeAnewIsShownThoughAnAnswerToTheDeletionIsNewer",
		old: `|| d.Deleted != "" && state.GetUID() == d.Deleted`,
		new: `|| true`,
	},
	{
		name: "a later own deletion makes an own write forgotten", peer: torn, file: departed, caught: "TestG4AnOwnDeletionAndOtherOwnWritesReplaceEachWhatIsOlder",
		old: `if state != nil && Newer(d.WroteRV`,
		new: `if state != nil && d.ExistedRV == "" && Newer(d.WroteRV`,
	},
	{
		name: "a deleted object of a late watch is shown", peer: torn, file: departed, caught: "TestG4AnOwnDeletionAndOtherOwnWritesReplaceEachWhatIsOlder",
		old: `|| d.Deleted != "" && state.GetUID() == d.Deleted`,
		new: ``,
	},
	{
		name: "an own deletion that its watch has passed is not shown while another watch is late", peer: torn, file: departures, caught: "TestG4AnOwnDeletionIsShownThoughItsWatchWasPastItAndAnotherIsLate",
		old: `case how.by == deleted || l.Union.excludes(how.as, how.denied):`,
		new: `case l.Union.excludes(how.as, how.denied):`,
	},
	{
		name: "what was shown counts for nothing where a stream is late", peer: torn, file: union, caught: "TestG4G5UnionsTable",
		old: `left.LeftRV = Newest(left.LeftRV, versionOf(shown)) // U3`,
		new: `_ = versionOf(shown)`,
	},
	{
		name: "an own write replaces nothing", peer: torn, file: union, caught: unionModel,
		old: `replaced := left.replace(d.Object); replaced {`,
		new: `replaced := left.replace(d.Object); replaced && false {`,
	},
	{
		name: "a stream that has given up own writes is believed", peer: torn, file: union, caught: unionModel,
		old: `lost = lost || s.Lost`,
		new: `_ = s.Lost`,
	},
	{
		name: "an own write that was given up has never been", peer: torn, file: departed, caught: "TestG4G5GivenUpTable",
		old: `d.Last, d.Wrote, d.WroteRV = o, o, wroteRV`,
		new: `d.Last = nil`,
	},
	{
		name: "what an own write took out comes back when writes are given up", peer: torn, file: departed, caught: "TestG4G5GivenUpTable",
		old: `if last != nil && Newer(d.LeftRV, last.GetResourceVersion()) {`,
		new: `if false {`,
	},
	{
		name: "a deletion without a version hides who has the name since, in a union", peer: torn, file: union, in: "accumulator", caught: "TestG5WhoHasTheNameOfADeletedObjectStaysInAUnionThoughOneWatchIsLate",
		old: `sights[i].meets(newest)`,
		new: `_, _ = newest, i`,
	},
	{
		name: "an own deletion of what no watch has shown does not hide who had the name before", peer: torn, file: view, in: "accumulator", caught: "TestG4AnOwnDeletionOfWhatNoWatchHasShownHidesWhoHadTheNameBefore",
		old: `return e.uid, Newest(v.positionRV, e.atRV)`,
		new: `return e.uid, v.positionRV`,
	},
	{
		name: "an own write that is answered after its stream gave up is not shown", peer: torn, file: departed, caught: "TestG4AnOwnWriteThatIsAnsweredAfterItsStreamGaveUpReplacesWhatIsOlder",
		old: `		next = Departure{LeftRV: leftRV, Wrote: last, WroteRV: last.GetResourceVersion()}`,
		new: `		next = Departure{LeftRV: leftRV}`,
	},
	{
		name: "what an own write took out of a union comes back with the relist", peer: torn, file: "accumulator/stream/own.go", caught: "TestG5WhatAnOwnWriteTookOutOfAUnionStaysOutThoughItIsGivenUp",
		old: `if l.Union != nil {`,
		new: `if false {`,
	},
	{
		name: "an object leaves a union twice", peer: torn, file: subscription, caught: "TestG5WhatLeavesAUnionWhileItIsMergedLeavesOnce",
		old: `		delete(l.left, key)
	}
	return now`,
		new: `	}
	return now`,
	},
	{
		name: "a reader of a union goes by what the watches show now", peer: torn, file: "accumulator/reader.go", caught: "TestG5AReaderOfAUnionNeverGoesBackThoughOneWatchIsLate",
		old: `return r.query.Query().Union() && r.collector.Complete()`,
		new: `return r.collector.Complete() && false`,
	},
	{
		name: "nobody helps a watch that is too quiet", peer: torn, file: "accumulator/query/align.go", caught: "TestG5ADeletionThatOneWatchOfAUnionIsTooQuietToConfirmIsShownSoon",
		old: `deletion: deletion})
	if err != nil {`,
		new: `deletion: deletion})
	if err != nil || true {`,
	},
	{
		name: "objects of all namespaces are shown", peer: ignoresQuery, file: merge, caught: "TestG4ANamespaceSelectorFollowsTheLabelsOfNamespacesOwnWritesToo",
		old: `if m.within != nil && !m.within[key.Namespace] {`,
		new: `if m.within != nil && !m.within[key.Namespace] && false {`,
	},
	{
		name: "a union whose first batch was taken back is shown as far as it is", peer: torn, file: "accumulator/query/union.go", in: "accumulator",
		caught: "TestG1AUnionWhoseFirstBatchWasTakenBackIsWholeInTheFirstSnapshot",
		old:    `return Incomplete // rule U8`, new: `return phaseOf(listenersOf(parts)) // rule U8`,
	},
	{
		name: "a union begins again whenever it is asked too early", peer: torn, file: "accumulator/collect/taking.go", in: "accumulator",
		caught: "TestG1AUnionWhoseFirstBatchWasTakenBackIsCompleteThoughItIsBusyAndAskedAgainAndAgain",
		old:    `other == f && readable {`, new: `other == f {`,
	},
	{
		name: "a stream that gives writes up again before it is taken has never shown anything", peer: torn, file: untaken, in: "accumulator",
		caught: "TestG5WhatAStreamHasShownStaysThoughItGivesWritesUpTwiceBeforeItIsTaken",
		old:    `u.taken = min(u.taken, takenOther)`, new: `u.taken = takenNothing`,
	},
}
