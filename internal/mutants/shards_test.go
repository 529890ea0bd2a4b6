package mutants

const (
	sharedOut = "accumulator/stream/shard.go"
	plans     = "internal/shardrange/plan.go"

	dropped   = "TestWhatAServerThatDoesNotShardSendsIsDroppedHereAndTheStatusSaysSo"
	ofShards  = "TestG4OwnWritesAreShownByTheShardThatHasThem"
	balanced  = "TestAPlanIsBalancedWithoutGapsAndMovesNoMoreThanItMust"
	judgeAll  = "each object that comes is judged here, as those of own writes are"
	fewMoves  = "Nothing else moves"
	asServers = "TestAShardIsWhatTheServerMakesOfItsText"
)

// shares are mistakes with streams that bring a share of the objects.
var shares = []mutant{
	{
		name: "a share of a server that does not shard is everything", says: judgeAll, file: "accumulator/stream/selector.go", caught: dropped,
		old: "	if !s.ours(o) {\n		return false\n	}\n", new: "",
	}, {
		name: "a share that a wider watch serves is everything", says: judgeAll, file: "accumulator/stream/selector.go", caught: "TestAShareIsServedByAWatchOfAll",
		old: `if !s.in(o) || s.labels`, new: `if s.labels`,
	}, {
		name: "the server is asked about a write that the UID tells of", says: judgeAll, file: "accumulator/stream/write.go",
		caught: "TestG4AnOwnWriteOfAnotherVersionThatIsInNoShardIsNotAskedFor",
		old:    `ok && s.selector.forGood() && !s.selector.in(object)`, new: `ok && false`,
	}, {
		name: "nobody asks for a share", says: "Every request says which share", file: "accumulator/stream/stream.go",
		caught: "TestAServerThatShardsIsAskedForTheShareAlone",
		old:    `, ShardSelector: s.selector.shard.String()}`, new: `}`,
	}, {
		name: "two shards are one stream", says: "Streams with another shard are other streams", file: "accumulator/stream/shape.go", caught: ofShards,
		old: `		shard: spec.Shard.Key(), form`, new: `		form`,
	}, {
		name: "a watch of a share serves queries for more", says: part, file: "accumulator/stream/shape.go", caught: "TestAWatchOfAShareServesNoQueryForMore",
		old: ` && s.key.fields == "" && s.key.shard == ""`, new: ` && s.key.fields == ""`,
	}, {
		name: "a share by namespace knows all names", says: "Neither ever changes while the object exists", file: "accumulator/stream/shape.go",
		caught: "TestAShardByNamespaceKnowsWhichNamesItCannotHave",
		old: `(s.name == "" || s.name == key.Name) &&
		s.selector.shard.HasNamespace(key.Namespace)`,
		new: `(s.name == "" || s.name == key.Name)`,
	}, {
		name: "a list of another share is taken in", says: "A list that says that it is of another share lacks objects", file: sharedOut,
		caught: "TestG1AListOfAnotherShareIsNotTakenIn",
		old:    `err == nil && !got.Covers(want)`, new: `err == nil && false && !got.Covers(want)`,
	}, {
		name: "what does not decode is invalid in every shard", says: judgeAll, file: sharedOut, caught: "TestAnObjectThatDoesNotDecodeIsInvalidInItsShard",
		old: `s.shard.Field == shardrange.UID && o.GetUID() == "" && Fault(o) != nil`, new: `Fault(o) != nil`,
	}, {
		name: "a server never learns to shard", says: "the server may have learnt to shard since", file: sharedOut,
		caught: "TestAServerThatLearnsToShardIsBelievedAtTheNextList",
		old:    "	if s != nil {\n		s.foreign.Store(0)\n	}\n", new: "	_ = s\n",
	}, {
		name: "the last hash is nobody's", says: "the hashes from First to Last, both included", file: "internal/shardrange/shard.go", caught: asServers,
		old: `		if r.Last != math.MaxUint64 {
			end`, new: `		if r.Last != math.MaxUint64-1 {
			end`,
	}, {
		name: "ranges that touch stay two", says: "no two of them overlap or touch", file: "internal/shardrange/ranges.go", caught: "TestRangesAreSetsOfHashes",
		old: `merged[last].Last+1 < r.First {`, new: `merged[last].Last < r.First {`,
	}, {
		name: "who is gone keeps its hashes", says: "A member that is gone leaves all of its hashes", file: plans, caught: balanced,
		old: `owner := p.Owner(c.from); slices.Contains(members, owner)`, new: `owner := p.Owner(c.from); owner != ""`,
	}, {
		name: "everything is divided anew each time", says: fewMoves, file: plans, caught: "TestAMemberThatComesOrGoesMovesItsShareAlone",
		old: `if len(next.Ranges(m)) > RangesMost {`, new: `if len(next.Ranges(m)) > 0 {`,
	}, {
		name: "nobody gives up what it has too much", says: "one that has more than its part leaves", file: plans, caught: balanced,
		old: `			case d.has[m] <= part:`, new: `			case d.has[m] >= 0:`,
	}, {
		name: "the server in memory shards unasked", says: "Without it the server ignores the", file: "internal/testserver/selection.go",
		caught: "TestAShareOfAListIsSentWhereTheServerShards",
		old:    `text != "" && s.shards.Load()`, new: `text != ""`,
	},
}
