package mutants

const (
	witness  = "accumulator/collect/witness.go"
	detector = "internal/mutation/detector.go"
	detects  = "internal/mutation/watch.go"
	kit      = "kates/katestest"

	lentTo   = "Functions that get objects (predicates, Key, Signal and Refs of queries) are looked after each time"
	whenever = "The client looks when it hands out something, whatever that is"
	firstOne = "The error names the object, the fields, and the first look that found the write"
	bounded  = "where there is more to see, each object is looked at every few snapshots"

	ofFunctions = "TestG10TheDetectorNamesTheFunctionThatWroteToItsArgument"
)

// detecting are mistakes of the mutation detector, and of those who tell it what is handed out.
var detecting = []mutant{
	{
		name: "the detector does not hear of Key functions", says: lentTo, file: witness, in: kit, caught: ofFunctions,
		old: `defer r.Lend("the Key function", name, o, nil)()`, new: ``,
	},
	{
		name: "the detector does not hear of Signal functions", says: lentTo, file: witness, in: kit, caught: ofFunctions,
		old: `defer r.Lend("the Signal function", name, old, current)()`, new: ``,
	},
	{
		name: "the detector does not hear of Refs functions", says: lentTo, file: witness, in: kit, caught: ofFunctions,
		old: `defer r.Lend("the Refs function", ref.Query, o, nil)()`, new: ``,
	},
	{
		name: "the detector does not hear of predicates", says: lentTo, file: rows, in: kit, caught: ofFunctions,
		old: `defer a.collector.Lend("the predicate", i.field().Name, o, nil)()`, new: ``,
	},
	{
		name: "a function is looked after when it is called alone", says: lentTo, file: detects, in: kit, caught: ofFunctions,
		old: `	return func() { all(fmt.Sprintf("when %s of query %q returned", to, query)) }`, new: `	return func() {}`,
	},
	{
		name: "the detector does not hear of the functions of queries that come at run time", says: lentTo,
		file: "accumulator/collect/changes.go", in: kit, caught: "TestG10TheDetectorLooksAfterFunctionsThatComeAtRunTime",
		old: `query.FindAll(ctx, c.witnessed(queries))`, new: `query.FindAll(ctx, queries)`,
	},
	{
		name: "the detector does not see invalid objects", says: whenever, file: readRows, in: kit,
		caught: "TestG10TheDetectorSeesWritesToInvalidObjects",
		old:    `			r.Show(i.Query, i.Object, i.Object) // the user gets it, in an Invalid`, new: ``,
	},
	{
		name: "the detector does not see what a reader returns", says: whenever, file: "accumulator/reader.go", in: kit,
		caught: "TestG10TheDetectorSeesWhatReadersHandOut",
		old:    `	r.answered(all...)`, new: ``,
	},
	{
		name: "the detector sees what was made of an object, and not the object", says: whenever, file: detects, in: kit,
		caught: "TestG10TheDetectorNamesTheReconcileThatWroteToASharedObject",
		old:    `source := w.of.exhibit(query, o, o)`, new: `source := w.of.exhibit(query, o, value)`,
	},
	{
		name: "the end of a turn is not told", says: firstOne, file: "accumulator/partition/turn.go", in: kit,
		caught: "TestG10TheDetectorNamesTheTurnThatWroteToASharedObject",
		old:    `	t.of.collector.Hand(collect.Delivery{Moment: collect.TurnEnds, Key: t.Key})`, new: ``,
	},
	{
		name: "an object that has changed is not looked at any more", says: firstOne, file: detects, in: kit,
		caught: "TestG10TheDetectorNamesTheFirstSnapshotThatShowedTheDamage",
		old:    `	w.replaced = append(w.replaced, former...)`, new: ``,
	},
	{
		name: "the detector does not hear what is gone", says: firstOne, file: "accumulator/layout.go", in: kit,
		caught: "TestG10TheDetectorSeesAWriteToAnObjectThatIsGone",
		old:    `a.collector.Gone(diff.Query, diff.Old)`, new: ``,
	},
	{
		name: "slices and maps are not compared", says: "The slices and maps of a snapshot's fields are shared, too",
		file: "internal/mutation/container.go", in: kit, caught: "TestG10TheDetectorSeesSlicesAndMapsThatWereChangedInPlace",
		old: `copy: copyOf(f.Value)`, new: `copy: f.Value`,
	},
	{
		name: "what a fleet makes of several clusters is not compared", says: "In a fleet, the clients of the clusters have the option",
		file: "fleet/shown.go", in: kit, caught: "TestG10TheDetectorSeesWhatAFleetShows",
		old: `	w.handed(changed)`, new: ``,
	},
	{
		name: "a look takes as long as there are objects", says: bounded, file: detects,
		caught: "TestASnapshotLooksAtWhatWasNotLookedAtForLongest",
		old:    `n > 0 && most > 0; n--`, new: `n > 0; n--`,
	},
	{
		name: "each look begins with the same objects", says: bounded, file: detects,
		caught: "TestASnapshotLooksAtWhatWasNotLookedAtForLongest",
		old: `w.order = append(w.order, p)
		for`, new: `defer func() { w.order = append([]*place{p}, w.order...) }()
		for`,
	},
	{
		name: "the detector holds everything", says: "Up to 32 MiB of JSON are held", file: detector,
		caught: "TestADetectorHoldsNoMoreThanItsLimit",
		old:    `return d.held > d.limits.Held &&`, new: `return d.held > 1<<30 &&`,
	},
	{
		name: "the detector lets go of what is shown as soon as of what is not", file: detector,
		says:   "lets go of what no watch shows any more, and then of the oldest",
		caught: "TestWhatNoWatchShowsIsLetGoBeforeWhatIsShown",
		old:    `if !e.leaving && e.places == 0 {`, new: `if !e.leaving {`,
	},
	{
		name: "what is let go is not looked at for the last time", says: "It looks at them for the last time then", file: detector,
		caught: "TestWhatIsShownForLongestIsLetGoInTheEnd",
		old:    `		d.look(o, "when it was let go, since the test shows more than can be held", "")`, new: ``,
	},
	{
		name: "the clients of the kit have no detector", says: "The clients of [New] and [NewClient] have it", file: "kates/katestest/fake.go",
		caught: "TestG10AFakeOfATestDetectsAStatusThatWasSetInPlace",
		old:    `	fake, err := newFake(detector, options)`, new: `	_ = detector
	fake, err := newFake(nil, options)`,
	},
}
