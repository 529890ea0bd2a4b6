package mutants

const (
	room = "accumulator/stream/room.go"

	neverRead   = "TestG1AListThatIsOverTheBoundIsNotReadAnyFurtherAndNeverShown"
	nothingBack = "TestG5G8AnEventOverTheBoundTakesNothingBackAndHarmsNoOtherStream"
	givenBack   = "TestG3PlacesAreGivenBackWhenAListFailsOrAStreamEnds"
	moreThan    = "TestG8AStreamThatHasMoreThanHalfOfTheBoundListsAgain"
	makeRoom    = "TestG5DeletionsMakeRoomForAStreamThatIsAtItsBound"
)

// bounds are mistakes where a client may hold so many objects and no more (WithMaxObjects).
var bounds = []mutant{
	{
		name: "objects of a list are not counted", says: "A list that would be more is not read any further", file: room, caught: neverRead,
		old: `	if !s.fit(objects) {
		return s.set.room.full()`, new: `	if !s.fit(objects) && false {
		return s.set.room.full()`,
	},
	{
		name: "objects of events are not counted", says: "a watch ends at the object that would be one too many", file: room, caught: nothingBack,
		old: `!held && !s.fit(`, new: `!held && !s.fit(0*`,
	},
	{
		name: "the watch goes on without the object", says: "a watch ends at the object that would be one too many", file: "accumulator/stream/watching.go", caught: nothingBack,
		old: `			if err := f.take(e); err != nil {`, new: `			if err := f.take(e); err != nil && !errors.Is(err, errFull) {`,
	},
	{
		name: "a list that failed keeps its places", says: "Who has room keeps it", file: "accumulator/stream/listing.go", caught: givenBack,
		old: `	defer f.target.listing(0)
`, new: ``,
	},
	{
		name: "a stream that has ended keeps its places", says: "Who has room keeps it", file: room, caught: givenBack,
		old: `	if s.progress.ended {`, new: `	if s.progress.ended && needed < 0 {`,
	},
	{
		name: "a deletion gives no place back", says: "until there is room", file: stream, caught: nothingBack,
		old: `			delete(s.store.objects, key)
			s.recount()
`, new: `			delete(s.store.objects, key)
`,
	},
	{
		name: "a list counts beside the store that it replaces", says: "the larger of what it holds and what it has read counts", file: room, caught: moreThan,
		old: `	if !s.fit(objects) {
		return s.set.room.full()`, new: `	if !s.fit(objects + len(s.store.objects)) {
		return s.set.room.full()`,
	},
	{
		name: "who has to list gives its places up", says: "Who has room keeps it", file: room, caught: nothingBack,
		old: `	needed := max(len(s.store.objects), s.places.listed)`, new: `	needed := s.places.listed`,
	},
	{
		name: "what was shown goes where there is no room", says: "What is shown stays", file: "accumulator/stream/health.go", caught: nothingBack,
		old: `	if state == Forbidden && what == toList {`,
		new: `	if errors.Is(err, errFull) && s.progress.synced {
		_ = s.swap(listing{objects: make(map[Key]Object)}, s.store.view.Position(), false)
	}
	if state == Forbidden && what == toList {`,
	},
	{
		name: "a watch without room is opened again, and no list made", says: "the list is tried again", file: "accumulator/stream/watching.go", caught: makeRoom,
		old: `	case expired(last.err), errors.Is(last.err, errFull):
		return last.err // deletions that make room come after the event: only a list shows them
`, new: `	case expired(last.err):
		return last.err
`,
	},
}
