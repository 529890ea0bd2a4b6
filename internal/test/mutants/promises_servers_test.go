package mutants

// clusters are mistakes with connections and with fleets.
var clusters = []mutant{
	{
		name: "the old watch ends before the new one is open", says: "a new connection takes over when it works, and no watch has a gap",
		in: "Reflector.follow", caught: "TestAWatchThatWasOpenedBeforeTheExchangeEndsWhenTheNextIsOpen",
		old: `got.ending != moved`,
		new: `true`,
	},
	{
		name: "requests go on over the old connection", says: "a new connection takes over when it works, and no watch has a gap",
		in: "Link.Exchange", caught: "TestEveryLaterRequestHasTheNewCredential",
		old: `l.now.Swap(next)`,
		new: `next`,
	},
	{
		name: "a kubeconfig from a cluster runs programs", says: "a kubeconfig from a cluster runs no program, and no error quotes its credentials",
		in: "Allow.check", caught: "TestWhatAKubeconfigMayNotDoIsRefusedByName/exec",
		old: `r.does && a&r.allow == 0`,
		new: `r.does && a&r.allow == 0 && r.allow != AllowExec`,
	},
	{
		name: "the error of a broken kubeconfig quotes it", says: "a kubeconfig from a cluster runs no program, and no error quotes its credentials",
		in: "parseKubeconfig", caught: "TestABrokenKubeconfigIsNotQuoted",
		old: `fmt.Errorf("the kubeconfig does not parse%s", whereOf(text, err))`,
		new: `fmt.Errorf("the kubeconfig does not parse %w", err)`,
	},
	{
		name: "a half-written file removes its cluster", says: "a file that is half written removes no cluster",
		in: "claimsOf", caught: "TestAHalfWrittenFileRemovesNothing",
		old: `all = append(all, claim{"file " + name, files[name].member})`,
		new: `if files[name].member.Err == nil {
				all = append(all, claim{"file " + name, files[name].member})
			}`,
	},
	{
		name: "a stale cluster's objects are dropped", says: "a cluster that fails keeps its last known objects, and nothing of it is pruned",
		in: "watching.leave", caught: "TestG5AStaleClusterKeepsItsObjects",
		old: `names[p.cluster.name] = true`,
		new: `names[p.cluster.name] = p.cluster.Health().Phase != Stale`,
	},
	{
		name: "a set is pruned while its cluster is stale", says: "a cluster that fails keeps its last known objects, and nothing of it is pruned",
		in: "Parts.ApplyOwned", caught: "TestNothingIsPrunedWhileAClusterIsStale",
		old: `[]kates.Object{}`,
		new: `p.home.owned(reflect.ValueOf(shown).Elem())`,
	},
	{
		name: "the former cluster's objects go before the other one is complete", says: "a cluster that takes the name of another has nothing of the other's",
		in: "watching.leave", caught: "TestG5TheObjectsOfAnotherClusterReplaceTheFormerOnesAtOnce",
		old: `!names[name]`,
		new: `!names[name] || !slices.Contains(parts, p)`,
	},
	{
		name: "a reconcile writes to the cluster that has taken a name meanwhile", says: "a cluster that takes the name of another has nothing of the other's",
		in: "Parts.ApplyOwned", caught: "TestAClusterThatWasReplacedDuringAReconcileIsNotWrittenTo",
		old: `p.from[cluster].from`,
		new: `p.home.view.Load().clusters[cluster]`,
	},
	{
		name: "a hung cluster holds up the first snapshot beyond its deadline", says: "a cluster that hangs holds up no other",
		in: "fleet.watching.begin", caught: "TestAHungClusterHoldsTheFirstSnapshotForTheDeadline",
		old: `w.fleet.options.Deadline`,
		new: `time.Hour + w.fleet.options.Deadline`,
	},
	{
		name: "each write waits for a cluster that hangs", says: "a cluster that hangs holds up no other",
		in: "homeCluster.endWhenStale", caught: "TestG8AClusterThatHangsHoldsUpNoOthersWrites",
		old: `c.gaveUpOn.Store(&since)`,
		new: `_ = since`,
	},
	{
		name: "a target is known that the next plan lacks", says: "a change of targets leaves no gap in what is watched",
		in: "Schedule.Known", caught: "TestModelEveryTargetIsCoveredAtEveryMoment",
		old: `!p.Covers(t)`,
		new: `!p.Covers(t) && false`,
	},
	{
		name: "a second plan takes the first one's place before that is shown", says: "a change of targets leaves no gap in what is watched",
		in: "Schedule.Next", caught: "TestATargetThatAWaitingPlanLacksIsNotKnown",
		old: `len(s.waiting) > 0`,
		new: `len(s.waiting) > 1`,
	},
	{
		name: "what was shown goes where there is no room", says: "a watch that has no room says so, and what it has shown stays",
		in: "Stream.Failed", caught: "TestG5G8AnEventOverTheBoundTakesNothingBackAndHarmsNoOtherStream",
		old: `state := classify(err)`,
		new: `state := classify(err)
			if errors.Is(err, source.ErrTooMany) && s.progress.phase.listed() {
				_ = s.swap(store.NewList(make(map[object.Key]object.Object)), s.store.View.Position(), false)
			}`,
	},
	{
		name: "a change is not noted", says: "Update is asked for while it would show something new",
		in: "Host.Listen", caught: "TestG2WhatIsWorthNoSignalIsNoted",
		old: `h.Noted`,
		new: `func() {}`,
	},
	{
		name: "an Update that fails counts as one", says: "Update is asked for while it would show something new",
		in: "accumulator.Accumulator.Update", caught: "TestG2AnUpdateThatFailsIsNoted",
		old: `!atRest`,
		new: `!atRest && ctx.Err() == nil`,
	},
	{
		name: "another cluster keeps the client of the former one", says: "a cluster that takes the name of another has nothing of the other's",
		in: "attendant.rotate", caught: "TestAConfigurationForAnotherClusterStartsANewHistory",
		old: `errors.Is(err, kates.ErrOtherCluster)`,
		new: `false && errors.Is(err, kates.ErrOtherCluster)`,
	},
}

// wire are mistakes with what servers send.
var wire = []mutant{
	{
		name: "an event of another namespace is taken", says: "an event that cannot be is not taken in",
		in: "Intake.validateObject", caught: "TestG5G8AWatchThatIsBrokenOrHostileTakesNothingBackAndIsNotOpenedInALoop/another_namespace,_untyped",
		old: `namespace != s.Key.Namespace`,
		new: `namespace == ""`,
	},
	{
		name: "an error after a while is no failure", says: "a watch that cannot be read is opened with growing pauses",
		in: "result.futile", caught: "TestG5G8AWatchThatIsBrokenOrHostileTakesNothingBackAndIsNotOpenedInALoop/an_error_500_after_a_while,_untyped",
		old: `(r.err != nil || r.lasted < steady)`,
		new: `r.lasted < steady`,
	},
	{
		name: "a list that does not say its kind is taken", says: "a list that is broken, a lie or without end is an error",
		in: "list.says", caught: "TestG5G8NoBadListIsShownOrTakesAnythingBackAndTheStatusSaysWhatIsWrong/a_list_that_does_not_say_its_kind",
		old: `l.wanted.Accept == nil`,
		new: `l.wanted.Accept == nil || last`,
	},
	{
		name: "a server is followed in circles", says: "a list that is broken, a lie or without end is an error",
		in: "way.goesOn", caught: "TestG5G8NoBadListIsShownOrTakesAnythingBackAndTheStatusSaysWhatIsWrong/pages_that_go_in_a_circle",
		old: `case w.tokens[digest]:
			return errors.New("the server gives the same continue token twice in one list")`,
		new: `case w.tokens[digest] && w.pages > 900:
			return errors.New("the server gives the same continue token twice in one list")`,
	},
	{
		name: "an object has any size", says: "what a server sends is bounded in bytes",
		in: "body.more", caught: "TestTheBoundIsForEachObjectAndNotForAllOfThem",
		old: `b.most`,
		new: `100*b.most`,
	},
	{
		name: "an error never ends", says: "what a server sends is bounded in bytes",
		in: "bounded.of", caught: "TestAnAnswerIsBoundedByWhatItIsTheAnswerTo",
		old: `status >= http.StatusMultipleChoices || r.Method != http.MethodGet`,
		new: `r.Method != http.MethodGet`,
	},
	{
		name: "a number is cut to the bits of its field", says: "what comes from outside is decoded as its JSON is, or is an error",
		in: "bounds.hold", caught: "TestANumberThatDoesNotFitItsFieldIsAnErrorAndIsNotCut",
		old: `b.least <= v && v <= b.most`,
		new: `true`,
	},
	{
		name: "what nobody reads of an event is not checked", says: "what comes from outside is decoded as its JSON is, or is an error",
		in: "body.eventJSON", caught: "TestWhatIsNoEventIsAnErrorThatSaysSo",
		old: `!json.Valid(value)`,
		new: `value == nil`,
	},
	{
		name: "parts with the same hash are shared", says: "objects share what is equal in all bytes, and only among readers",
		in: "memory.find", caught: "TestPartsAreSharedByTheirFieldAndBytesAndNotByTheirHash",
		old: `p != nil && p.field == f && string(p.raw) == string(raw)`,
		new: `p != nil && p.field == f`,
	},
	{
		name: "maps are shared with who may write to them", says: "objects share what is equal in all bytes, and only among readers",
		in: "builder.value", caught: "TestWhoMayWriteHasMapsAndSlicesOfItsOwn",
		old: `!b.share`,
		new: `false`,
	},
	{
		name: "the last events of a read overtake those before", says: "what is decoded side by side is taken in in its order",
		in: "backlog.flush", caught: "TestG5EventsComeAsTheServerSentThemWhoeverDecodesThem",
		old: `b.line.Len() == 0`,
		new: `b.line.Len() >= 0`,
	},
	{
		name: "Secrets are kept as they are", says: "Secrets are in no file in the clear",
		in: "Keeper.keepable", caught: "TestSecretsAreInNoFileWithoutAKeyAndUnreadableWithOne",
		old: `k.warmth.Codec.Key == nil`,
		new: `k.warmth.Every == 0`,
	},
	{
		name: "everybody can read the folder", says: "Secrets are in no file in the clear",
		in: "Dir.Save", caught: "TestNobodyElseCanReadTheFiles",
		old: `0o700`,
		new: `0o755`,
	},
}
