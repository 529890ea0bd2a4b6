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
	{
		name: "the zone of a time is read while it is filled", says: "may not be read",
		file: "internal/footprint/footprint.go", caught: "TestTheZoneOfATimeIsNoPartOfIt",
		old: `v.Type() != zone && `, new: ``,
	},
	{
		name: "another connection has the observer of all clients", says: "in place of this observer",
		file: "kates/observe_told.go", caught: "TestWhatObserveClientReturnsIsToldInPlaceOfTheObserverAfterAReconnectToo",
		old: `if s.observing == nil {`, new: `if s.observing == nil || s.observing.cluster == "" {`,
	},
}
