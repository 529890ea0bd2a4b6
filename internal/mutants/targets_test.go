package mutants

const (
	planRule     = "internal/plan/plan.go"
	planSchedule = "internal/plan/schedule.go"
	targetWatch  = "fleet/targets_watch.go"
	targetIndex  = "fleet/targets_index.go"
	ownersTest   = "TestOwnersAreActivatedByTheirTargetsAlone"
)

// targeted are mistakes about targets on demand.
var targeted = []mutant{
	{
		name: "a plan returns to a narrower level at once", says: "It returns to a narrower row when half as much fits", file: planRule,
		caught: "TestATargetThatComesAndGoesDoesNotChangeTheLevelEachTime", old: `return limit / 2`, new: `return limit`,
	},
	{
		name: "nine names are watched one by one", says: "all have a name or a selector, at most 8 different ones", file: planRule,
		caught: "TestThePlanIsThatOfTheTable", old: `<= most(Selections, MostSelections)`, new: `<= most(Selections, MostSelections+1)`,
	},
	{
		name: "a target that is refused holds up the others", says: "A target that is refused in every form holds up no other one", file: planRule,
		caught: "TestWhatIsRefusedIsWatchedMoreNarrowly", old: `if refused[part] && !now`, new: `if refused[part] && l > Selections && !now`,
	},
	{
		name: "a target is known that the next plan lacks", says: "the watch changes without a gap", file: planSchedule,
		caught: "TestModelEveryTargetIsCoveredAtEveryMoment", old: `return !p.Covers(t) })`, new: `return !p.Covers(t) && false })`,
	},
	{
		name: "a second plan takes the first one's place before that is shown", says: "the new one is complete before the old one ends", file: planSchedule,
		caught: "TestATargetThatAWaitingPlanLacksIsNotKnown", old: `len(s.waiting) > 0 && !s.overdue:`, new: `len(s.waiting) > 1 && !s.overdue:`,
	},
	{
		name: "a target that one owner needs is stopped", says: "Grace is how long something is watched that no owner needs any more", file: targetWatch,
		caught: "TestWhatNoOwnerNeedsIsStoppedAfterAWhile", old: "		if len(is.owners) > 0 {\n			continue", new: "		if len(is.owners) > 1 {\n			continue",
	},
	{
		name: "what is not known yet is read", says: "never that there is no object", file: targetWatch,
		caught: "TestEnsureEndsWithItsContext", old: `w.following != nil && is.unfit == nil && w.schedule.Known(target.planned())`, new: `is.unfit == nil && w.problem.err == nil`,
	},
	{
		name: "a reader reads what its owner has dropped", says: "Its readers return [ErrDropped] from now on", file: "fleet/targets.go",
		caught: "TestWhatNoOwnerNeedsIsStoppedAfterAWhile", old: `if w := t.owners[owner][target]; w != nil {`, new: `if w := t.watches[watchKey{target.Cluster, target.Kind}]; w != nil {`,
	},
	{
		name: "an object that leaves a selector activates nobody", says: "an object has come, changed or gone", file: targetIndex,
		caught: ownersTest, old: `old != nil && w.selector.Matches(old) ||`, new: `old != nil && false ||`,
	},
	{
		name: "an object activates the owners of other names", says: "is called with the owners whose targets have changed", file: targetIndex,
		caught: ownersTest, old: `	x.named[key].each(found)`, new: `	for _, s := range x.named {
		s.each(found)
	}`,
	},
	{
		name: "an owner is not told that a plan leaves its target out", says: "a target has become known or is not known any more", file: "fleet/targets_follow.go",
		caught: "TestOwnersLearnThatAPlanLeavesTheirTargetOut", old: `w.targets.activate(lost)`, new: `_ = lost`,
	},
	{
		name: "a selection that requires a namespace is watched in all", says: "rights there suffice", file: "accumulator/query/query.go", in: "accumulator/query",
		caught: "TestASelectionThatRequiresANamespaceIsWatchedInIt", old: `if r.Namespaced && q.AnyOf != nil &&`, new: `if !r.Namespaced && q.AnyOf != nil &&`,
	},
	{
		name: "a union on the fake waits for the versions of lists", says: "is shown", file: "accumulator/stream/commit.go", in: "kates",
		caught: "TestAUnionOnTheFakeIsShownWhateverTheVersionsOfItsLists", old: `rv = "" // a fake's lists`, new: `_ = "" // a fake's lists`,
	},
	{
		name: "a watch is stopped though it is wanted again", says: "retire ends a watch that no target needs", file: "fleet/targets.go",
		caught: "TestNoReaderHoldsAWatchThatWasStopped", old: "	if w.needed() {\n		return false\n	}\n	delete(t.watches, w.key)", new: "	delete(t.watches, w.key)",
	},
	{
		name: "a watch that is given up still answers", says: "is not known before the next accumulator is complete", file: "fleet/targets_follow.go",
		caught: "TestATargetIsNotKnownByAWatchThatIsGivenUp", old: `	former = w.following
	w.following, w.objects = nil, objects{}
	w.schedule.Restart()
	return former, true`, new: `	return w.following, true`,
	},
	{
		name: "a kind that was unknown once stays unknown", says: "a kind that is not served, and a start that fails are tried", file: "fleet/targets_follow.go",
		caught: "TestAnUnknownKindIsTriedAgain", old: `case err == nil, now != c, c != nil && left <= 0:`, new: `case err == nil, now != c, c != nil && left <= 0 && w.targets.ctx.Err() != nil:`,
	},
	{
		name: "a change that is not needed any more stays a failure", says: "Err says what is wrong now",
		file: "fleet/targets_follow.go", caught: "TestAChangeThatIsNotNeededAnyMoreIsNoFailure",
		old: `			a.failures = 0 // the change`, new: `			a.failures += 0 // the change`,
	},
}
