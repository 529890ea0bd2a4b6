package mutants

const (
	heldPart = "objects of which a part is held are whole ones without the other fields"
	noBase   = "what a watch holds in part is never the base of a write, nor taken for the whole"
	keepPath = "internal/wire/project/keep.go"
)

// keeping are mistakes where only some fields of objects are held.
var keeping = []mutant{
	{
		name: "a part of an object is the base of a Modify", says: noBase, file: "accumulator/stream/lookup.go", in: "kates", caught: "TestNothingThatWasNotReadIsWrittenBack/modify",
		old: `st.key.form != form || !st.holdsAll()`,
		new: `st.base != form || st.transform != nil`,
	}, {
		name: "a part of an object is read as the whole", says: noBase, file: "accumulator/stream/keep.go", in: "kates", caught: "TestWhatAsksForAWholeObjectGetsNoPartOfIt",
		old: `return s.transform == nil && s.keep == nil && !s.key`,
		new: `return s.transform == nil && !s.key`,
	}, {
		name: "a watch of a part serves other queries", says: heldPart, file: narrow, in: "kates", caught: "TestAWatchOfAPartServesNoOtherQuery",
		old: `s.whole() && s.transform == nil && s.keep == nil &&`,
		new: `s.whole() && s.transform == nil &&`,
	}, {
		name: "own writes of typed objects are shown as a whole", says: heldPart, file: "accumulator/stream/form.go", in: "kates", caught: "TestG4OwnWritesAndEventsAreShownAsFarAsTheyAreHeld",
		old: `s.source.Typed(s.pruned(u))`,
		new: `s.source.Typed(u)`,
	}, {
		name: "untyped objects are held as a whole", says: heldPart, file: "accumulator/stream/form.go", in: "kates", caught: "TestOnlyWhatIsKeptIsHeld/fake",
		old: `return s.pruned(u), nil`,
		new: `return u, nil`,
	}, {
		name: "typed objects are decoded as a whole", says: heldPart, file: "internal/wire/decode.go", in: "kates", caught: "TestOnlyWhatIsKeptIsHeld/server",
		old: `kept, err := d.only.of(raw, e)`,
		new: `kept, err := raw, error(nil)`,
	}, {
		name: "the size of a message stays that of the whole", says: heldPart, file: "internal/wire/project/filter.go", caught: "TestWhatIsKeptIsTheWholeObjectPruned",
		old: `putSize(to[from:begin], len(to)-begin)`,
		new: `putSize(to[from:begin], len(value))`,
	}, {
		name: "all entries of a map are kept", says: heldPart, file: "internal/wire/project/filter.go", caught: "TestWhatIsKeptIsTheWholeObjectPruned",
		old: `if child == nil || err != nil {
			return to, err
		}`,
		new: `if child == nil || err != nil {
			child = &node{}
		}`,
	}, {
		name: "a narrower path takes the rest of a wider one away", says: "a path to an object holds it as a whole", file: keepPath, caught: "TestPathsAreMergedSortedAndReadAgain",
		old: `case there && next.members == nil:
			return`,
		new: `case there && next.members == nil:
			next.members = map[string]*node{}`,
	}, {
		name: "a tree is pruned in place", says: heldPart, file: keepPath, caught: "TestWhatIsKeptIsTheWholeObjectPruned",
		old: `kept, less = slices.Clone(value), true`,
		new: `kept, less = value, true`,
	}, {
		name: "a misspelt path is a field that is always empty", says: "an unknown path is an error at Watch", file: "kates/query_keep.go", caught: "TestProjectionsThatMakeNoSenseAreErrorsAtWatch",
		old: `if _, err := k.For(typ); err != nil {`,
		new: `if _, err := k.For(typ); err != nil && false {`,
	}, {
		name: "labels are missing where a query selects by them", says: "a query holds what its selectors and functions need", file: "kates/query_keep.go", caught: "TestAQueryHoldsWhatItsSelectorsAndFunctionsNeed/labels",
		old: `selects = selects || s.LabelSelector != "" || s.Labels != nil`,
		new: `_ = s`,
	}, {
		name: "a copy of a part replaces the whole", says: noBase, file: "kates/query_keep.go", caught: "TestACopyOfAnObjectThatIsHeldInPartReplacesNothing",
		old: `if held == "" {`,
		new: `if true {`,
	}, {
		name: "the generation is missing", says: "conditions name the generation that they are about", file: "accumulator/stream/keep.go", in: "kates", caught: "TestWhatAsksForAWholeObjectGetsNoPartOfIt",
		old: `, {"metadata", "generation"},`,
		new: `,`,
	},
}
