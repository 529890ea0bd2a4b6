package mutants

const (
	unionFile = "accumulator/query/union.go"
	unworthy  = "TestG2WhatIsWorthNoSignalIsNoted"
	stillOpen = "TestG6WhatWaitsIsAskedFor"
	failedOne = "TestG2AnUpdateThatFailsIsNoted"
	asksFor   = "While it is false, another Update"
)

// noting are mistakes with what a reader is told so that it need not ask.
var noting = []mutant{
	{
		name: "a change is not noted", says: asksFor, file: "accumulator/query/running.go", caught: unworthy,
		old: `Noted: h.Noted,`, new: `Noted: func() {},`,
	},
	{
		name: "a change of a named object is not noted", says: asksFor, file: "accumulator/query/named.go", caught: "TestG2G4WhatIsNamedIsShownAsItIsThoughItIsWorthNoSignal",
		old: "\t\tr.fresh.note(ref)\n\t\tnoted()\n", new: "\t\tr.fresh.note(ref)\n\t\t_ = noted\n",
	},
	{
		name: "a union with an open decision is at rest", says: asksFor, file: unionFile, caught: stillOpen,
		old: ` && u.waiting == nil && u.held.keys == nil`, new: ``,
	},
	{
		name: "a query is at rest whatever its union waits for", says: asksFor, file: replaceable, caught: stillOpen,
		old: `return now.AtRest() && (`, new: `return true && (`,
	},
	{
		name: "a query is at rest while objects wait for those that they name", says: asksFor, file: follow, caught: stillOpen,
		old: ` && len(s.waiting.keys) == 0 && `, new: ` && `,
	},
	{
		name: "what waits after an Update is forgotten", says: asksFor, file: "accumulator/update.go", caught: stillOpen,
		old: `atRest = a.collector.AtRest()`, new: `atRest = true`,
	},
	{
		name: "an Update that fails counts as one", says: "nothing is consumed", file: "accumulator/update.go", caught: failedOne,
		old: `		if !atRest {`, new: `		if !atRest && ctx.Err() == nil {`,
	},
	{
		name: "the end of a watch is not noted", says: asksFor, file: "accumulator/collect/collector.go", caught: failedOne,
		old: "\t\treturn\n\t}\n\tc.Note()\n", new: "\t\treturn\n\t}\n",
	},
	{
		name: "a new judgement is not noted", says: asksFor, file: "accumulator/collect/collector.go", caught: "TestG2ANewJudgementIsNoted",
		old: "\tc.Note()\n\tc.pacer.ensure()", new: "\tc.pacer.ensure()",
	},
	{
		name: "what changes while a fleet takes it is forgotten", says: "every later `Update`", file: "fleet/part.go", caught: "TestG2AChangeDuringAnUpdateOfAFleetIsInTheNext",
		old: `p.noted.Store(false) //`, new: `defer p.noted.Store(false) //`,
	},
	{
		name: "an Update of a fleet asks every cluster", says: "asks no cluster that has not", file: "fleet/part.go", caught: "TestAnUpdateAsksNoClusterThatHasNotChanged",
		old: `|| p.noted.Load() }`, new: `|| p != nil }`,
	},
	{
		name: "clusters that leave a fleet are shown on", says: "One that goes leaves with all its objects", file: "fleet/shown.go", caught: "TestClustersOfASnapshotComeAndGo",
		old: `	if members != s.members {`, new: `	if members != s.members && len(parts) > 9 {`,
	},
	{
		name: "a cluster that comes later is left out", says: "A cluster that comes later is shown when it is complete", file: "fleet/shown.go", caught: "TestClustersOfASnapshotComeAndGo",
		old: `s.parts[name], s.names = p, nil`, new: `s.parts[name] = p`,
	},
}
