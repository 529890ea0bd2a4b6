package mutants

// ofFake are mistakes with the versions that internal/client/fake gives to what a fake has.
var ofFake = []mutant{
	{
		name: "the event of an own write on a fake is another's write",
		in:   "watcher.addShown", caught: "TestG4AnOwnWriteIsKnownByTheVersionOfItsEvent",
		old: `states[i].shows(o)`,
		new: `states[i].shows(o) && false`,
	},
	{
		name: "another's write on a fake is the echo of an older one",
		in:   "watcher.addShown", caught: "TestG5AnothersWriteIsNoEcho",
		old: `states := m.objects[key].since(w.at(key))`,
		new: `states := m.objects[key]`,
	},
	{
		name: "a stamp is shown",
		in:   "Part.Narrow", caught: "TestG7AUserSeesWhatTheFakeHasAndNothingElse",
		old: `o = object.Bare(o)`,
		new: ``,
	},
	{
		name: "a stamp is forwarded to the fake",
		in:   "fake.view.WatchWithContext", caught: "TestG6ADeleteBetweenAListAndItsWatchIsNotLost",
		old: `o.ResourceVersion = known.fakeRV`,
		new: `_ = known.fakeRV`,
	},
	{
		name: "a delete between a list of a fake and its watch is lost",
		in:   "fake.view.missed", caught: "TestG6ADeleteBetweenAListAndItsWatchIsNotLost",
		old: `!after[key] && now.object != nil && now.version <= from`,
		new: `!after[key] && now.object != nil && now.version <= from && false`,
	},
}
