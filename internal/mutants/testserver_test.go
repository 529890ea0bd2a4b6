package mutants

const (
	ownerRules = "internal/testserver/owners.go"
	definedIn  = "internal/testserver/definitions.go"
	emptying   = "internal/testserver/namespaces.go"
	bookmarks  = "internal/testserver/watch.go"

	collectsAlike = "the server in memory deletes what has lost its owners, as a cluster does"
	emptiesAll    = "a namespace in the server in memory goes when it is empty, and no finalizer keeps it"
	servesKinds   = "a definition serves its kinds, and takes their objects with it"
	answersAlike  = "the server in memory lists and watches as a real one does"
)

// simulated are mistakes of the server in memory, most of which the conformance cases do not show.
var simulated = []mutant{
	{
		name: "an owner of an unknown kind counts as gone", says: collectsAlike, file: ownerRules, caught: "TestTheCollectorKeepsWhatItCannotTell",
		old: `		return ownerUnknown
`,
		new: `		return ownerGone
`,
	}, {
		name: "one lost owner is enough", says: collectsAlike, file: ownerRules, caught: "TestTheCollectorKeepsWhatHasAnotherOwner",
		old: `case by[ownerThere] != nil:`,
		new: `case len(by) == 0:`,
	}, {
		name: "an owner is known by its name", says: collectsAlike, file: ownerRules, caught: "TestTheCollectorDeletesWhatNeverHadItsOwner",
		old: `case !there || o.object.GetUID() != r.UID:`,
		new: `case !there:`,
	}, {
		name: "an owner waits for all its dependents", says: collectsAlike, file: ownerRules, caught: "TestAnOwnerInForegroundWaitsForTheDependentsThatBlockIt",
		old: `return r.UID == uid && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion`,
		new: `return r.UID == uid`,
	}, {
		name: "owners wait for each other for ever", says: collectsAlike, file: ownerRules, caught: "TestACircleOfOwnersInForegroundEnds",
		old: `if !c.unblock(o) {`,
		new: `if c.s != nil {`,
	}, {
		name: "the collector takes back a user's deletion", says: collectsAlike, file: ownerRules, caught: "TestTheCollectorLeavesWhatHasChangedSinceItLooked",
		old: `UID: &uid, ResourceVersion: &rv}`,
		new: `UID: &uid, ResourceVersion: func(string) *string { return nil }(rv)}`,
	}, {
		name: "only the first dependents go in the foreground", says: collectsAlike, file: ownerRules, caught: "TestDependentsOfDependentsGoInTheForegroundToo",
		old: `c.s.drop(o, metav1.DeletePropagationForeground)`,
		new: `c.s.drop(o, metav1.DeletePropagationBackground)`,
	}, {
		name: "the collector looks at what it has not noted", says: collectsAlike,
		file:   "internal/testserver/collector.go",
		caught: "TestTheCollectorWaitsUntilItHasNotedTheChangeOfAnObject",
		old:    `if there && o.rv > c.at {`, new: `if false {`,
	}, {
		name: "the collector ends when it is late", says: collectsAlike, file: "internal/testserver/collector.go", caught: "TestTheCollectorFindsWhatWasCompacted",
		old: `		c.forget()
		changes`,
		new: `		return make(chan struct{})
		changes`,
	}, {
		name: "the collector writes in any version", says: collectsAlike, file: definedIn, caught: "TestTheCollectorChangesObjectsInTheirStoredVersion",
		old: `k.Custom == nil || k.Custom.Stored == nil {`,
		new: `k != nil {`,
	}, {
		name: "an emptied namespace loses all its finalizers", says: emptiesAll, file: emptying, caught: "TestAFinalizerOfANamespacesSpecKeepsIt",
		old: `own = slices.DeleteFunc(own, func(f string) bool { return f == "kubernetes" })`,
		new: `own = slices.DeleteFunc(own, func(f string) bool { return f != "" })`,
	}, {
		name: "a namespace does not wait for what terminates in it", says: emptiesAll, file: emptying, caught: "TestANamespaceThatTerminatesIsEmptiedAndGoes",
		old: `		left = true
`,
		new: `		left = o.object.GetDeletionTimestamp() == nil
`,
	}, {
		name: "a changed definition ends all watches", says: servesKinds, file: definedIn, caught: "TestAChangedDefinitionEndsItsOwnWatchesAlone",
		old: `if d.uid != o.GetUID() || d.generation != o.GetGeneration() {`,
		new: `if d.generation >= 0 {`,
	}, {
		name: "objects outlive their definition", says: servesKinds, file: definedIn, caught: "TestADeletedDefinitionTakesObjectsOfAVersionThatIsNotServed",
		old: `range s.custom.byName[storage].kinds {`,
		new: `range s.custom.byName[""].kinds {`,
	}, {
		name: "no bookmark comes before the end of a watch", says: answersAlike, file: bookmarks, caught: "TestABookmarkComesEachMinuteAndTwoSecondsBeforeTheEnd",
		old: `if most > lastBookmark {`,
		new: `if most < 0 {`,
	}, {
		name: "no bookmark ends the first events of a watch without a version", says: answersAlike, file: bookmarks, caught: "TestABookmarkComesEachMinuteAndTwoSecondsBeforeTheEnd",
		old: `o.initial = true // the next bookmark says it, which may come late`,
		new: `o.initial = false`,
	}, {
		name: "a list waits its full time for a version that is there", says: answersAlike, file: "internal/testserver/read.go", caught: "TestAListOfAVersionThatComesSoonIsAnsweredThen",
		old: `		case <-more:
		case <-late.C:`,
		new: `		case <-late.C:
			_ = more`,
	}, {
		name: "a collection takes objects that are made again", says: answersAlike, file: "internal/testserver/delete.go", caught: "TestACollectionLeavesObjectsThatAreMadeAgain",
		old: `options.Preconditions = &metav1.Preconditions{UID: &uid}`,
		new: `_ = uid`,
	}, {
		name: "a deletion ends an object that has changed", says: answersAlike, file: "internal/testserver/delete.go", caught: "TestADeletionThatIsOvertakenBeginsAgain",
		old: `done = old.Content == nil || old.RV == made.rv; !done`,
		new: `done = true; !done`,
	}, {
		name: "a service loses its families of addresses when it is written without them", says: answersAlike,
		file: "internal/testserver/rules/rules.go", in: "kates/katestest", caught: "TestAServerInMemoryAnswersAsARealOneDoes",
		old: `			kinds.Allocate(next, old)
`,
		new: ``,
	}, {
		name: "a service that is written without its families gets those of a new one", says: answersAlike,
		file: "internal/testserver/kinds/defaults.go", in: "kates/katestest", caught: "TestAServerInMemoryAnswersAsARealOneDoes",
		old: `"spec", name); there {`,
		new: `"spec", name); there && false {`,
	},
}
