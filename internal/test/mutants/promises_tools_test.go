package mutants

// tools are mistakes in the test kit, in recordings and in what shows what a program does.
var tools = []mutant{
	{
		name: "a log that is resumed repeats lines", says: "each line of a log comes once",
		in: "replay.repeats", caught: "TestEveryLineComesOnceWhateverHappensToConnections",
		old: `r.left[l]--
			return true`,
		new: `return false`,
	},
	{
		name: "a status about another generation counts", says: "a status about another generation is no status",
		in: "content.phase", caught: "TestTheStatusOfEachKindIsThatOfItsRuleTypedAndUntyped",
		old: `s.ObservedGeneration != 0 && s.Generation != 0`,
		new: `s.ObservedGeneration < 0`,
	},
	{
		name: "copies of a Secret in its annotations are recorded", says: "a recording has no secrets, and is readable up to a crash",
		in: "hideAnnotations", caught: "TestSecretsAreRedactedWhateverTheyComeIn",
		old: `annotations[name] = hideAll(value, false, mask)`,
		new: `_ = value`,
	},
	{
		name: "a crash loses the recording", says: "a recording has no secrets, and is readable up to a crash",
		in: "Writer.run", caught: "TestAfterACrashTheFileIsReadableUpToThere",
		old: `err = packed.Flush()`,
		new: `_ = packed`,
	},
	{
		name: "an old list goes back", says: "a replay shows at each position what was there",
		in: "builder.build", caught: "TestAListThatShowsNothingNewMissesNothing",
		old: `compareVersions(l.version, s.version) <= 0`,
		new: `l.version == s.version`,
	},
	{
		name: "one lost owner is enough", says: "the server in memory collects what has lost its owners, and what was defined",
		in: "collector.owners", caught: "TestTheCollectorKeepsWhatHasAnotherOwner",
		old: `by[ownerThere] != nil`,
		new: `len(by) == 0`,
	},
	{
		name: "objects outlive their definition", says: "the server in memory collects what has lost its owners, and what was defined",
		in: "Server.kindOf", caught: "TestADeletedDefinitionTakesObjectsOfAVersionThatIsNotServed",
		old: `s.custom.byName[storage]`,
		new: `s.custom.byName[""]`,
	},
	{
		name: "no bookmark comes before the end of a watch", says: "the server in memory lists and watches as a real one does",
		in: "testserver.watching.follow", caught: "TestABookmarkComesEachMinuteAndTwoSecondsBeforeTheEnd",
		old: `most > lastBookmark`,
		new: `most < 0`,
	},
	{
		name: "a deletion ends an object that has changed", says: "the server in memory lists and watches as a real one does",
		in: "Server.end", caught: "TestADeletionThatIsOvertakenBeginsAgain",
		old: `old.Content == nil || old.RV == made.rv`,
		new: `true`,
	},
	{
		name: "equal UIDs have different masks", says: "a golden file is the same in each run",
		in: "Masks.number", caught: "TestWhatDiffersFromRunToRunIsMasked",
		old: `if mask, known := (*of)[value]; known {
				return mask
			}`,
		new: `if mask, known := (*of)[value]; known && false {
				return mask
			}`,
	},
	{
		name: "a program settles with a call under way", says: "a trial finds what a program does not finish, and what a crash breaks",
		in: "Run.Settle", caught: "TestALoopOfRefusedCallsShowsTheAnswers",
		old: `p.open > 0`,
		new: `p.open < 0`,
	},
	{
		name: "the detector does not hear of Key functions", says: "the detector sees each write to a shared object",
		in: "rows.witnessed", caught: "TestG10TheDetectorNamesTheFunctionThatWroteToItsArgument",
		old: `defer r.Lend("the Key function", name, o, nil)()`,
	},
	{
		name: "slices and maps are not compared", says: "the detector sees each write to a shared object",
		in: "Watch.fill", caught: "TestG10TheDetectorSeesSlicesAndMapsThatWereChangedInPlace",
		old: `copyOf(f.Value)`,
		new: `f.Value`,
	},
	{
		name: "an object's kind does not say that it is a Secret", says: "the status page shows no secrets, and is read-only",
		in: "Page.contentOf", caught: "TestASecretThatAQueryOfAnythingElseHoldsIsHidden",
		old: `if isSecret || isTyped || u.GetKind() == secret.Kind {
				u.Object = withoutSecrets(u.Object)
			}`,
		new: `if _ = isTyped; isSecret {
				u.Object = withoutSecrets(u.Object)
			}`,
	},
	{
		name: "the page answers a POST", says: "the status page shows no secrets, and is read-only",
		in: "Page.ServeHTTP", caught: "TestAPageIsReadOnly",
		old: `r.Method != http.MethodGet && r.Method != http.MethodHead`,
		new: `false`,
	},
	{
		name: "an object of a list that hangs is not noticed", says: "HealthCheck names what hangs",
		in: "listing.put", caught: "TestAFunctionOfTheUserThatHangsMakesTheClientUnhealthy/transform",
		old: `l.stream.Step.Begin()
			defer l.stream.Step.End()`,
	},
	{
		name: "the panic of an observer ends the call", says: "an observer is told once, and its panic ends nothing",
		in: "Told.Tell", caught: "TestAnObserverThatPanicsHarmsNeitherTheCallNorTheOthers",
		old: `err := guard.Named(what, func() error {
				f()
				return nil
			})`,
		new: `f()
			err := guard.Named(what, func() error { return nil })`,
	},
}
