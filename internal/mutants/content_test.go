package mutants

const (
	same     = "accumulator/stream/same.go"
	readRows = "accumulator/collect/rows.go"

	takesOver = "TestG6ARelistTakesOverThatAVersionLooksOtherwiseNow"
)

// contents are mistakes about one version that looks otherwise in a list.
var contents = []mutant{
	{
		name: "a list of known versions is not compared", rule: 9, file: same, caught: takesOver,
		old: `!Alike(made, held) {`, new: `!Alike(made, made) {`,
	},
	{
		name: "JSON that was not decoded is compared in float64", says: "as float64, two that differ past 2^53 could be the same",
		file: "internal/object/content.go", caught: "TestEachDifferenceIsAnotherContent",
		old: `utiljson "k8s.io/apimachinery/pkg/util/json"`, new: `utiljson "encoding/json"`,
	},
	{
		name: "a reader goes by the version alone", rule: 9, file: readRows, caught: takesOver,
		old: ` && stream.LookAlike(shown, o)`, new: ``,
	},
	{
		name: "each list is another content", rule: 9, file: same, caught: takesOver,
		old: `	if s.transform == nil && s.is(o) && Alike(o, held) {
		return held
	}
	if made := s.made(o, held); !Alike(made, held) {
		return made
	}
	return held`,
		new: `	return s.made(o, held)`,
	},
	{
		name: "each event is compared with what is shown", rule: 9, file: store, caught: "TestG6TheEventOfAnOwnWriteIsAnEchoWhateverItsContent",
		old: `if (s.byContent || !coherence.Comparable(o.GetResourceVersion())) && !sameContent(shown, o) {`, new: `if !sameContent(shown, o) {`,
	},
	{
		name: "an own write that is answered during a list is lost to the list", rule: 9, file: same,
		caught: "TestG4AnOwnWriteThatIsAnsweredDuringAListKeepsItsPlace",
		old:    `c.same = Alike(o, shown)`, new: `c.same = false`,
	},
	{
		name: "an own write that is answered during a list stays as it was answered", rule: 9, file: same,
		caught: "TestG6AnOwnWriteThatIsAnsweredDuringAListIsShownAsTheListHasIt",
		old:    `c.same = Alike(o, shown)`, new: `c.same = true`,
	},
	{
		name: "a list in doubt is not compared", rule: 9, file: same, caught: "TestG5G6AListInDoubtThatIsOfTheSameHistoryIsComparedAsAnyOther",
		old: `comparison{held, Alike(o, held)}`, new: `comparison{held, true}`,
	},
	{
		name: "a list in doubt replaces every object", rule: 9, file: same, caught: "TestG5G6AListInDoubtThatIsOfTheSameHistoryIsComparedAsAnyOther",
		old: `comparison{held, Alike(o, held)}`, new: `comparison{held, false}`,
	},
	{
		name: "of one version the first stream counts, though another has listed since", rule: 9, file: union, in: "accumulator",
		caught: "TestG6AUnionShowsAVersionAsTheStreamThatHasListedLastShowsIt",
		old:    `|| later {`, new: `|| later && false {`,
	},
	{
		name: "what was shown goes back to an older content while a union is undecided", rule: 9, file: union, caught: "TestG4G5UnionsTable",
		old: `shown != nil && !isNewer(d.Object, shown)`, new: `isNewer(shown, d.Object)`,
	},
	{
		name: "metadata is news where the rest of its object is", rule: 9, file: "accumulator/stream/narrow.go",
		caught: "TestG6TypedObjectsFollowAndTheirMetadataAloneStaysWhereItIsTheSame",
		old:    `Alike(last.as, as) {`, new: `Alike(last.as, as) && false {`,
	},
	{
		name: "what a function has refused is compared by name", rule: 9, file: same, caught: "TestG6WhatATransformLeavesIsCompared",
		old: `return left == right && object.SameContent(a, b)`, new: `return left != right || object.SameContent(a, b)`,
	},
}
