package mutants

const (
	consult = "accumulator/partition/consult.go"
	reads   = "accumulator/partition/reads.go"
	follow  = "accumulator/query/source.go"

	since   = "TestG2WhatChangesAfterItWasReadInATurnActivatesTheKeyAgain"
	absence = "TestAPartitionIsActivatedByWhatItHasReadAbsenceIncluded"
	ceases  = "TestAPartitionIsActivatedByWhatStartsOrCeasesToBeSelected"
	readAll = "TestModelG4G5G6APartitionIsActivatedByWhatItHasReadAndByNothingElse"
)

// references are mistakes with objects that other objects refer to.
var references = []mutant{
	{
		name: "what is named is taken in only where it was worth a signal", says: "what is worth no signal is in the next snapshot all the same", file: "accumulator/stream/listener.go",
		caught: "TestG2G4WhatIsNamedIsShownAsItIsThoughItIsWorthNoSignal",
		old:    "\tl.noted()\n\tif l.whole() {", new: "\tif l.whole() {",
	},
	{
		name: "what changes during a turn is held against nothing", says: "also when that happens while the turn is under way", file: consult, caught: since,
		old: `sh.note(m)`, new: `_ = m; sh.note(moved{})`,
	},
	{
		name: "what is read in a turn counts before it ends", says: "what is not read any more activates no more", file: consult, caught: readAll,
		old: `if !part.state.runs() && part.shares`, new: `if part.shares`,
	},
	{
		name: "reads add up", says: "what the latest turn of the key has read counts", file: consult, caught: absence,
		old: `		readers.leave(part, sh.reads)
		readers.enter(part, sh.reading)
		sh.reads, sh.reading = sh.reading, nil
`,
		new: `		if sh.reads != nil && sh.reads.names != nil {
			sh.reading.names = sh.reads.names
		}
		readers.enter(part, sh.reading)
		sh.reads, sh.reading = sh.reading, nil
`,
	},
	{
		name: "a partition that is gone keeps its reads", says: "a partition that is gone drops its reads", file: "accumulator/partition/placing.go",
		caught: "TestG6APartitionThatIsGoneDropsItsReads",
		old: `	s.unread(part)
`, new: ``,
	},
	{
		name: "what ceases to be selected sleeps on", says: "one starts or ceases to be selected", file: reads, caught: ceases,
		old: `if matches(in, old) || matches(in, now) {`, new: `if _ = old; matches(in, now) {`,
	},
	{
		name: "nobody is woken for what a turn has read", says: "no lost activation", file: turn, caught: "TestAWorkerThatWaitsIsWokenForWhatATurnThatEndsHasRead",
		old: `	t.of.ensureSignal() // what`, new: `	// what`,
	},
	{
		name: "what is read after the end is recorded", says: "after the turn is done: then that is not recorded", file: reads,
		caught: "TestReadsOfATurnThatFailedCountAndThoseAfterItsEndAreNotRecorded",
		old: `	defer r.mu.Unlock()
	r.over = true
`,
		new: `	defer r.mu.Unlock()
`,
	},
	{
		name: "a quiet own write of what was read activates", says: "own writes may be told not to wake their controller", file: consult,
		caught: "TestG4QuietOwnWritesOfWhatWasReadActivateNothing",
		old:    `s.heed(part, i, key, m.signal, forOne)`, new: `s.heed(part, i, key, true, forOne)`,
	},
	{
		name: "what was looked up and becomes invalid is no news", says: "What was absent, or invalid, was read, too", file: "accumulator/partition/keys.go",
		in: "kates", caught: "TestAKeyHasAnotherTurnWhenWhatItLookedUpBecomesInvalidOrIsMended",
		old: `	if o == nil || o.row.Excluded {`, new: `	if o == nil || !o.row.Shown() {`,
	},
	{
		name: "a lookup does not see what becomes invalid", says: "If the object is invalid, the error says why", file: "snapshot/apply.go",
		in: "kates", caught: "TestALookupAndAListerSayWhyAnObjectIsInvalidAndThatThereIsNoSnapshot",
		old: `	if p.invalidChanged {
		t.unshare()`, new: `	if p.invalidChanged && false {
		t.unshare()`,
	},
	{
		name: "a lookup changes under its reader", says: "it shows one state for as long as somebody holds it", file: "snapshot/lookup.go",
		caught: "TestG9G10ALookupShowsOneStateForEver",
		old:    `		t.sources, t.looked = slices.Clone(t.sources), nil`, new: `		t.looked = slices.Clone([]any(nil))`,
	},
	{
		name: "what names something is shown before that is known", says: "not shown before that is known", file: follow,
		caught: "TestG1G8AnObjectIsShownWhenWhatItNamesIsKnownAndNothingElseWaits",
		old:    `		if s.patience(w) > 0 {`, new: `		if false {`,
	},
	{
		name: "the first snapshot does not wait for what is named", says: "the first snapshot waits until each object that is named is known", file: "accumulator/query/references.go",
		caught: "TestG1TheFirstSnapshotWaitsUntilWhatIsNamedIsKnown/paged",
		old:    `case !r.known.Load() || slices`, new: `case !r.known.Load() && slices`,
	},
	{
		name: "a name without a namespace is one in all of them", says: "what no object can be called is absent", file: "accumulator/query/references.go",
		caught: "TestG6G8AnObjectIsNeverThereThatIsNamedWhereThereCanBeNone/no_namespace",
		old:    `	return wide != (key.Namespace == "") || `, new: `	return `,
	},
	{
		name: "names are not read again where their kind has no namespaces", says: "a name without a namespace is in that of the object, unless the kind has none",
		file: follow, caught: "TestG1G6NamesAreReadAgainWhereTheirKindTurnsOutToHaveNoNamespaces",
		old: `	if !stale {`, new: `	if !stale || len(s.to) > 0 {`,
	},
	{
		name: "a name is a path of something else", says: "deletes the object that the resource names", file: "kates/client_kinds.go",
		caught: "TestNoNameMakesARequestOneForSomethingElse",
		old:    `len(why) > 0 {`, new: `len(why) > len(name) {`,
	},
	{
		name: "what is named no more is watched on", says: "for as long as they are named", file: "accumulator/query/named.go",
		caught: "TestOnlyWhatIsNamedIsWatchedAndOnlyWhileItIs",
		old:    `	ref.by += by`, new: `	ref.by += max(by, 0)`,
	},
	{
		name: "one that may not be read is waited for without end", says: "where the server refuses, it counts as absent", file: "accumulator/query/references.go",
		caught: "TestG8WhatMayNotBeReadOrIsNotAnsweredIsWaitedForAWhileOnly/refused",
		old:    `(optional || r.host.Ready.Load()) && st.Refused`, new: `optional && st.Refused`,
	},
	{
		name: "one that is not answered is waited for without end", says: "ten seconds at most", file: "accumulator/query/references.go",
		caught: "TestG8WhatMayNotBeReadOrIsNotAnsweredIsWaitedForAWhileOnly/failing",
		old:    `	case !r.host.Ready.Load():`, new: `	default:`,
	},
	{
		name: "a panic over a reference drops what was named", says: "the object names what it named before", file: follow,
		caught: "TestG8WhereTheFunctionFailsTheObjectNamesWhatItDidBefore",
		old: `			all.names[i] = before[i]
`, new: ``,
	},
	{
		name: "a signal comes before what it is for", says: "one signal is enough", file: follow,
		caught: "TestTheSignalForANewObjectComesWhenWhatItNamesIsKnown",
		old:    `r.wakeBy(h.Follow) // the`, new: `r.wakeBy(func() { h.Wake(); h.Follow() }) // the`,
	},
	{
		name: "a successor that was complete before it waited is never shown", says: "none is ever missing", file: "accumulator/collect/upkeep.go",
		caught: "TestG2AQueryWhoseObjectsNameOthersIsReplacedWithASignal",
		old:    `	u.host.Follow() //`, new: `	//`,
	},
	{
		name: "a successor does not wait for what its objects name", says: "all objects of the successor at once, with what they name", file: "accumulator/query/foresee.go",
		in: "accumulator", caught: "TestG1AQueryWhoseObjectsNameOthersIsReplacedTogetherWithWhatTheyName",
		old: `return s.Running.Settled() && s.coming.known.Load()`, new: `return s.Running.Settled()`,
	},
	{
		name: "what a successor names is shown before it is", says: "what they alone name is watched, and not shown", file: "accumulator/query/references.go",
		in: "accumulator", caught: "TestG1AQueryWhoseObjectsNameOthersIsReplacedTogetherWithWhatTheyName",
		old: `if ref.by == 0 || r.behind(ref) {`, new: `if r.behind(ref) {`,
	},
	{
		name: "names are read before all namespaces are known", says: "the first snapshot waits until each object that is named is known", file: "accumulator/collect/taking.go",
		caught: "TestG1NamesCountAsKnownOnlyOnceThoseInAllNamespacesAreRead",
		old: `		if !c.readable(f) {
			continue
		}
`, new: ``,
	},
	{
		name: "what waits was never handed out", says: "a query compares with what it has handed out", file: follow,
		caught: "TestG4AnOwnWriteThatWaitsForWhatItNamesStaysThoughItsStreamHasGivenItUp",
		old:    `	if w, waits := h.waiting.keys[key]; waits {`, new: `	if w, waits := h.waiting.keys[key]; waits && w.object == nil {`,
	},
	{
		name: "the first snapshot is what was read ahead", says: "the first snapshot has what this client wrote", file: follow,
		caught: "TestG4AFirstSnapshotWaitsForTheRelistThoughNamesHaveBeenRead",
		old:    `	if !s.read(shown) && !shown.Present() {`, new: `	if !s.read(shown) && shown == nil {`,
	},
	{
		name: "nobody reads names when the namespaces are known", says: "names are read as the objects come", file: "accumulator/query/union.go",
		caught: "TestG1NamesAreReadWhateverMakesAQueryComplete/its_namespaces",
		old: `	o.Wake = u.wake
`, new: ``,
	},
}
