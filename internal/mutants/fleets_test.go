package mutants

const lied = "TestG5G8AClusterThatLiesKeepsItsObjectsAndHarmsNoOther"

// fleets are mistakes about the clusters of a fleet, and the snapshots of all.
var fleets = []mutant{
	{
		name: "a hung cluster holds up the first snapshot beyond its deadline", says: "how long a first snapshot waits for a cluster", file: "fleet/watching.go", caught: "TestAHungClusterHoldsTheFirstSnapshotForTheDeadline",
		old: `p.began.Add(w.fleet.options.Deadline)`, new: `p.began.Add(time.Hour + w.fleet.options.Deadline)`,
	},
	{
		name: "a stale cluster's objects are dropped", says: "A cluster that fails keeps its last known objects", file: "fleet/shown.go", caught: "TestG5AStaleClusterKeepsItsObjects",
		old: `names[p.cluster.name] = true`, new: `names[p.cluster.name] = p.cluster.Health().Phase != Stale`,
	},
	{
		name: "a first snapshot comes before the sources have spoken", says: "There is no snapshot before each source has said which clusters there are", file: "fleet/watching.go", caught: "TestG1NoSnapshotBeforeTheSourcesHaveSpoken",
		old: `complete = known && !slices`, new: `complete = (known || !first) && !slices`,
	},
	{
		name: "the former cluster's objects go before the other one is complete", says: "its objects replace those of the former one when all of them are there", file: "fleet/shown.go", caught: "TestG5TheObjectsOfAnotherClusterReplaceTheFormerOnesAtOnce",
		old: `		if !names[name] {`, new: `		if !names[name] || !slices.Contains(parts, p) {`,
	},
	{
		name: "another cluster keeps the former one's client and history", says: "If another cluster takes the name", file: "fleet/attend.go", caught: "TestAnotherClusterUnderANameStartsANewHistory",
		old: `known != uid && uid != ""`, new: `known != uid && uid == "?"`,
	},
	{
		name: "what leaves with its cluster has no deltas", says: "One that goes leaves with all its objects", file: "fleet/shown.go", caught: "TestClustersOfASnapshotComeAndGo",
		old: `s.deltas = append(s.deltas, former.farewell()...)`, new: `_ = former.farewell()`,
	},
	{
		name: "each word of a source asks every cluster", says: "If a source says the same again, that is no news", file: "fleet/attend.go", caught: "TestWhatASourceSaysAgainIsNoNews",
		old: `	if same {`, new: `	if same && m.Name == "" {`,
	},
	{
		name: "each event of the fleet starts every failed watch", says: "pauses between its attempts", file: "fleet/watching.go", caught: "TestAClusterThatComesAndGoesHurriesNobody",
		old: `if up && !p.up {`, new: `if up {`,
	},
	{
		name: "the client's interval comes before the fleet's", says: "the least time between two signals of a watch of the fleet", file: "fleet/part.go", caught: "TestAChangeComesWithinOneInterval",
		old: `With(kates.WithInterval(0), noting{of: p})`, new: `With(noting{of: p})`,
	},
	{
		name: "an Update that is cancelled in its midst takes from some clusters", says: "After an error, too, the struct is untouched", file: "fleet/shown.go", caught: "TestG7DeltasAreExactThoughAnUpdateIsCancelled",
		old: `w.take(context.WithoutCancel(ctx))`, new: `w.take(ctx)`,
	},
	{
		name: "the status of a watch does not say who is missing", says: "with the clusters that a snapshot lacks now", file: "fleet/part.go", caught: "TestTheStatusOfAWatchSaysWhoIsMissing",
		old: "		_, why := p.lacks()\n		return why", new: `		return nil`,
	},
	{
		name: "a watch that does not start is not tried again", says: "A watch that cannot start is tried again", file: "fleet/part.go", caught: "TestAClusterThatDoesNotServeAKindIsMissingUntilItDoes",
		old: `		case <-wait.C:`, new: "		case <-wait.C:\n			return nil",
	},
	{
		name: "a watch that brings rubbish at once counts as heard", says: "the start of a watch that did not end at once", file: follows, in: hostile, caught: "TestAWatchThatBringsNothingNewAndEndsSaysNothingOfHowNewTheObjectsAre",
		old: `		f.target.unheard()`, new: ``,
	},
	{
		name: "objects of another kind are taken for those of the watch", says: "keeps what was last known of it", file: "internal/wire/decode.go", in: "fleet", caught: lied + "/watches_bring_another_kind",
		old: `got != kind {`, new: `got != kind && got.Empty() {`,
	},
	{
		name: "a server that serves nothing at all has no objects", says: "keeps what was last known of it", file: "internal/kinds/served.go", in: "fleet", caught: lied + "/discovery_is_empty,_and_nothing_is_found",
		old: `len(all.resources) == 0 && len(all.failed) == 0 {`, new: `len(all.resources) == 0 && len(all.failed) > 0 {`,
	},
}
