package mutants

// observing are mistakes in who is told of clients.
var observing = []mutant{
	{
		name: "an observer is not told that a client is closed", says: "called once, when the client is closed",
		file: "kates/observe_told.go", caught: "TestAnObserverLearnsOfEachClientAndOfItsEndOnce",
		old: `for _, closed := range o.closed {`, new: `for _, closed := range o.closed[:0] {`,
	},
	{
		name: "an observer is told twice that a client is closed", says: "called once, when the client is closed",
		file: "kates/observe_told.go", caught: "TestAnObserverLearnsOfEachClientAndOfItsEndOnce",
		old: `if o.ended.Swap(true) {`, new: `if o.ended.Swap(true) && false {`,
	},
	{
		name: "a fleet does not name its clusters", says: "To these comes [kates.WithClusterName]",
		file: "fleet/attend.go", caught: "TestAnObserverLearnsTheNamesOfTheClustersOfAFleetAndWhoLeaves",
		old: `append(slices.Clone(a.fleet.options.Client), kates.WithClusterName(m.Name))`,
		new: `slices.Clone(a.fleet.options.Client)`,
	},
}
