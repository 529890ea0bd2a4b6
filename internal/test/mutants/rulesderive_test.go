package mutants

// deriveRules are rules of package derive, which explains them.
var deriveRules = []string{"questions", "runs", "links", "cutoff", "departure"}

// derived are mistakes in what a graph of package derive keeps between two snapshots.
var derived = []mutant{
	{
		name: "an absent key is not asked for", rule: "questions",
		in: "derive.lookUp", caught: "TestAKeyWithoutAnEntryIsAskedForLikeAnyOther",
		old: `r.recordQuestion(h)`,
		new: `_ = h`,
	},
	{
		name: "who has asked for all entries is not told", rule: "questions",
		in: "collection.put", caught: "TestAnEntryRunsWhenAnAnswerHasChangedAndNotElse",
		old: `c.c.answered(&c.whole, &c.whole)`,
		new: `_ = old`,
	},
	{
		name: "a group is edited in place", rule: "questions",
		in: "derive.regroup", caught: "TestAGroupThatIsKeptDoesNotChange",
		old: `room := takeList(&lists, len(was.cells)+len(edits), n.c.coming)`,
		new: `_, room := lists, was.cells[:0]`,
	},
	{
		name: "an entry runs once for each cause", rule: "runs",
		in: "derive.mark", caught: "TestAnEntryRunsOnceHoweverManyCausesThereAre",
		old: `!r.dirty`,
		new: `true`,
	},
	{
		name: "what a run does not ask again stays linked", rule: "links",
		in: "core.endRun", caught: "TestAnEntryIsLinkedWithWhatItsLastRunHasAskedAndNothingElse",
		old: `c.leave(a)`,
		new: `_ = a`,
	},
	{
		name: "a result that equals the last one is another", rule: "cutoff",
		in: "derive.another", caught: "TestAResultThatEqualsTheLastOneStopsHereAndTheOldValueStays",
		old: `equal(x.val, v)`,
		new: `false && equal(x.val, v)`,
	},
	{
		name: "each result equals the last one", rule: "cutoff",
		in: "derive.another", caught: "TestAnEntryRunsOnceHoweverManyCausesThereAre",
		old: `equal(x.val, v)`,
		new: `(true || equal(x.val, v))`,
	},
	{
		name: "the row of a departed key is given away at once", rule: "departure",
		in: "table.drop", caught: "TestTheRowOfADepartedKeyIsGivenToAnotherInTheNextUpdateAtTheEarliest",
		old: `t.dropped = append(t.dropped, row)`,
		new: `t.free = append(t.free, row)`,
	},
	{
		name: "an entry stays in the groups that it has left", rule: "departure",
		in: "groups.change", caught: "TestAnEntryGoesWithItsInputInTheSameUpdateWithWhatItHasPutAndAsked",
		old: `n.edit(row, ch.old, true)`,
		new: `_ = row`,
	},
}
