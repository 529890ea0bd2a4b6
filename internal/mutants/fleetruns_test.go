package mutants

const (
	inFleet   = "fleet"
	runPlace  = "fleet/run_place.go"
	homeParts = "fleet/controller_parts.go"
)

// fleetRuns are mistakes in the loops over many clusters.
var fleetRuns = []mutant{
	{
		name: "a set is pruned while its cluster is stale", says: "Nothing is pruned while the cluster is among the Missing",
		file: homeParts, caught: "TestNothingIsPrunedWhileAClusterIsStale",
		old: `		set.Existing = []kates.Object{}
`, new: `		set.Existing = p.home.owned(reflect.ValueOf(shown).Elem())
`,
	},
	{
		name: "what changes during a call of a fleet's run needs no signal", says: "the least time between two signals of a watch of the fleet",
		file: "fleet/run.go", caught: "TestARunOfAFleetCallsItsFunctionOncePerIntervalUnderChurn",
		old: `	case o.Cut:
		turn.Yield()`,
		new: `	default:
		turn.Yield()`,
	},
	{
		name: "a reconcile has what its cluster's loop has taken", says: "what R has is taken when the function is called",
		file: "fleet/controller_clusters.go", caught: "TestG4AReconcileSeesItsWritesInAllClusters",
		old: `	err = c.take(ctx, key, func() { value = c.home.collect(c.index, key, uid) })
`, new: `	if !c.taken {
		err = c.take(ctx, key, func() {})
	}
	c.turn <- struct{}{}
	value = c.home.collect(c.index, key, uid)
	<-c.turn
`,
	},
	{
		name: "the keys of a cluster that has left are forgotten", says: "the function is called once more for each key that it was called with",
		file: runPlace, caught: "TestTheKeysOfAClusterThatLeavesAreCalledEmptyUntilNoError",
		old: `		p.farewell(ctx)
`, new: `		_ = p.farewell
`,
	},
	{
		name: "the workers are those of all clusters", says: "one whose calls hang holds up no other",
		file: runPlace, caught: "TestAClusterWhoseCallsHangHoldsUpNoOther",
		old: `// within calls a function for a cluster. Its context ends, too, when the cluster leaves, or this
// replica does not lead any more. It does not call for a cluster that has left.
func (p *place) within(ctx context.Context, c *Cluster, call func(context.Context) error) error {
`, new: `var worker = make(chan struct{}, 1)

func (p *place) within(ctx context.Context, c *Cluster, call func(context.Context) error) error {
	worker <- struct{}{}
	defer func() { <-worker }()
`,
	},
	{
		name: "a cluster that takes a name does not tell the keys that it lacks", says: "and the others, when it is complete, with an empty one",
		file: "accumulator/partition/scheduler.go", in: inFleet, caught: "TestAClusterThatTakesANameTakesOverTheKeys",
		old: `		s.empty = append(s.empty, part)
	}
}

// newPart`, new: `	}
}

// newPart`,
	},
	{
		name: "a run of one cluster goes on when it has left", says: "The contexts of a cluster's calls end when it leaves the fleet",
		file: runPlace, caught: "TestTheShutdownTimeoutIsNotForClustersThatLeave",
		old: `[]context.Context{c.ctx, p.of.lease}`, new: `[]context.Context{p.of.fleet.ctx, p.of.lease}`,
	},
	{
		name: "the reconciles of a cluster go on when it has left", says: "When a cluster leaves the fleet, the contexts of its reconciles end",
		file: "fleet/controller_each.go", caught: "TestNothingIsReconciledForAClusterThatHasLeft",
		old: `		err = p.within(ctx, cluster, func(ctx context.Context) (err error) {
			result, err = c.reconcile(ctx, cluster, parts)
			return err
		})
		return result, err
`, new: `		return c.reconcile(ctx, cluster, parts)
`,
	},
	{
		name: "the run of one cluster has no shutdown timeout", says: "Signals, triggers and the shutdown timeout are those of the whole controller",
		file: "kates/run_option.go", in: inFleet, caught: "TestReconcilesUnderWayHaveTheShutdownTimeoutOfTheFleetsController",
		old: `keyed.Shutdown{Timeout: keyed.AtOnce, Whole: c.Grace}`, new: `keyed.Shutdown{Timeout: keyed.AtOnce}`,
	},
	{
		name: "a cluster that has left leaves its place behind", says: "nothing is kept of clusters that have left",
		file: "fleet/run_many.go", caught: "TestNothingIsKeptOfClustersThatHaveLeft",
		old: `			delete(m.places, name)
`, new: `			_ = name
`,
	},
	{
		name: "a reconcile writes to the cluster that has taken a name meanwhile", says: "nothing is written to another cluster",
		file: homeParts, caught: "TestAClusterThatWasReplacedDuringAReconcileIsNotWrittenTo",
		old: `p.from[cluster].from, p.Clusters[cluster]`, new: `p.home.view.Load().clusters[cluster], p.Clusters[cluster]`,
	},
	{
		name: "a write waits for a cluster that has left", says: "or leaves during the call",
		file: homeParts, caught: "TestAWriteToAClusterThatLeavesEnds",
		old: `	defer context.AfterFunc(c.part.cluster.ctx, func() { end(nil) })()
`, new: ``,
	},
	{
		name: "roots that have nothing in a cluster do not learn that it is complete", says: "all roots are when",
		file: "fleet/controller_clusters.go", caught: "TestAllRootsAreReconciledWhenAReconcileIsTheFirstToSeeAClusterComplete",
		old: `	case first:
		c.home.triggerAll()
`, new: `	case first && keys != nil:
		c.home.triggerAll()
`,
	},
	{
		name: "a write waits for a cluster that hangs", says: "holds up the reconcile for Options.Timeout",
		file: "fleet/controller_silence.go", caught: "TestG8AClusterThatHangsHoldsUpNoOthersWrites",
		old: `			end(errSilent)
`, new: ``,
	},
	{
		name: "each write waits for a cluster that hangs", says: "After that nothing is sent to it until it answers",
		file: "fleet/controller_silence.go", caught: "TestG8AClusterThatHangsHoldsUpNoOthersWrites",
		old: `			c.silent.Store(&since)
`, new: `			_ = since
`,
	},
	{
		name: "a home controller outlives its fleet", says: "If the fleet is closed, the error is [kates.ErrClosed]",
		file: "fleet/controller_clusters.go", caught: "TestAHomeControllerEndsWithItsFleet",
		old: `	defer context.AfterFunc(h.fleet.ctx, end)()
`, new: ``,
	},
}
