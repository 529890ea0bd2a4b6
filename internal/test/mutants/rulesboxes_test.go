package mutants

// boxed has mutants that break the rules by which an object is in one stream of a query, and is
// judged there. Package internal/engine/query has the rules.
var boxed = []mutant{
	{
		name: "boxes that overlap are two streams", rule: "D1",
		in: "Box.Overlaps", caught: "TestG5AnObjectIsInOneStreamOfAQueryForAllTime",
		old: `overlap(b.Namespace, other.Namespace) && overlap(b.Name, other.Name)`,
		new: `b == other`,
	},
	{
		name: "the server is asked for a label that one alternative wants", rule: "D2",
		in: "eitherOf", caught: "TestG1ALabelThatOneAlternativeWantsIsNotAskedOfTheServer",
		old: `if !wants {
			return either, false
		}`,
		new: `_ = wants`,
	},
	{
		name: "whatever comes is in the query", rule: "D3",
		in: "Intake.Matches", caught: "TestG1G5WhatNoAlternativeSelectsIsNotKept",
		old: `in, _ := s.Selector.ByAlternatives(o, s.Selector.Read)`,
		new: `in := true`,
	},
	{
		name: "what the server answers is in the query", rule: "D3",
		in: "Write.askAndRecord", caught: "TestG4WhatAnOwnWriteTakesOutOfAllAlternativesIsNotShownThoughTheServerHadToBeAsked",
		old: `object != nil && st.Matches(object)`,
		new: `object != nil && st.Selector.InShard(object)`,
	},
	{
		name: "what leaves during a streamed list stays in it", rule: "D3",
		in: "listing.put", caught: "TestG1WhatLeavesAllAlternativesDuringAStreamedListIsNotInIt",
		old: `again && !once`,
		new: `false`,
	},
	{
		name: "files name what is in no alternative", rule: "D3",
		in: "Stream.event", caught: "TestG1G5WhatNoAlternativeSelectsIsNotKept",
		old: `in || had != nil`,
		new: `in || had == nil`,
	},
	{
		name: "a stream with alternatives has all objects", rule: "D3",
		in: "Intake.Whole", caught: "TestG4AStreamWithAlternativesDoesNotSayThatAnObjectIsAbsent",
		old: `s.Key.AnyOf == ""`,
		new: `true`,
	},
}
