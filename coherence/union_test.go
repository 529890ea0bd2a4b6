package coherence_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// at is one object at a revision; the table compares these by identity.
var at = func() (all [10]*thing) {
	for rev := range all {
		all[rev] = &thing{key: coherence.Key{Name: "x"}, uid: "x", rev: rev}
	}
	return all
}()

// TestG4G5UnionsTable is the table of the rules U1 to U7: a union of two streams, one row per
// case.
func TestG4G5UnionsTable(t *testing.T) {
	type sight = coherence.Sight
	type departure = coherence.Departure
	none := coherence.Object(nil)
	shows := func(rev int, knownRV string) sight { return sight{Object: at[rev], KnownRV: knownRV} }
	again := &thing{key: at[3].key, uid: "x", rev: 3} // with another content
	contentOf := func(o *thing, listedRV string) sight {
		return sight{Object: o, KnownRV: "9", ListedRV: listedRV}
	}
	empty := func(knownRV string) sight { return sight{KnownRV: knownRV} }
	listed := func(s sight, skippedRV string) sight { s.SkippedRV = skippedRV; return s }
	left := func(leftRV string, last int) departure {
		return departure{LeftRV: leftRV, Last: at[last]}
	}
	wrote := func(d departure, o coherence.Object, wroteRV string) departure {
		return d.And(departure{LeftRV: wroteRV, Wrote: o, WroteRV: wroteRV})
	}
	for _, c := range []struct {
		rule, name string
		shown      coherence.Object
		left       departure
		sights     []sight
		want       coherence.Object
		until      string
	}{
		{"U1", "the newest of what streams show",
			none, departure{}, []sight{shows(3, "3"), shows(2, "2")}, at[3], ""},
		{"U1", "of one version, what the stream shows that has listed last",
			at[3], departure{}, []sight{shows(3, "9"), contentOf(again, "5")}, again, ""},
		{"U1", "of one version, the same the other way round",
			at[3], departure{}, []sight{contentOf(again, "5"), contentOf(at[3], "4")}, again, ""},
		{"U1", "a newer version, whoever has listed last",
			at[3], departure{}, []sight{shows(4, "9"), contentOf(again, "5")}, at[4], ""},
		{"U2", "while it is open, a version stays as it was shown last",
			again, departure{LeftRV: "5", Last: again}, []sight{empty("5"), shows(3, "3")}, again, "5"},
		{"U1", "one stream shows it, the other has never had it",
			none, departure{}, []sight{shows(3, "3"), empty("9")}, at[3], ""},
		{"U1", "no stream has ever had it",
			none, departure{}, []sight{empty("3"), empty("9")}, none, ""},
		{"U1", "no stream covers it any more",
			at[1], departure{}, nil, none, ""},

		{"U2", "it left one stream, and the other may have it by now",
			at[1], left("2", 1), []sight{empty("2"), empty("1")}, at[1], "2"},
		{"U2", "it left one stream, and the other has reached that version without it",
			at[1], left("2", 1), []sight{empty("2"), empty("2")}, none, ""},
		{"U2", "it left one stream, and the other shows it no older than that",
			at[1], left("2", 1), []sight{empty("2"), shows(2, "2")}, at[2], ""},
		{"U2", "it left one stream, and the other shows an older state",
			none, left("4", 3), []sight{empty("4"), shows(2, "2")}, at[3], "4"},
		{"U2", "it came and went unread: the last state until it is known where it went",
			none, left("4", 3), []sight{empty("4"), empty("2")}, at[3], "4"},
		{"U2", "it left after the departures were taken",
			at[1], departure{}, []sight{{KnownRV: "2", Left: left("2", 1)}, empty("1")}, at[1], "2"},
		{"U2", "nothing is newer than a deletion at an unknown version",
			at[1], left("2", 1), []sight{empty("2"), {Gone: "x", KnownRV: "1"}}, none, ""},
		{"U4", "but an object that was made anew",
			at[3], left("4", 3), []sight{empty("4"), {Gone: "former", KnownRV: "2"}}, at[3], "4"},
		{"U4", "and the deleted object is not a newer one that was shown before",
			at[3], left("4", 3), []sight{empty("4"), {Gone: "later", KnownRV: "3"}}, none, ""},

		{"U3", "a stream that is late shows an older state than was shown",
			at[3], departure{}, []sight{empty("3"), shows(2, "2")}, at[3], "3"},
		{"U3", "a stream that takes another's place has not reached what was shown",
			at[3], departure{}, []sight{empty("2")}, at[3], "3"},
		{"U3", "all streams have reached what was shown, and none has it",
			at[3], departure{}, []sight{empty("3"), empty("4")}, none, ""},

		{"U4", "an own write deleted it, and a stream is late",
			at[1], wrote(left("2", 1), nil, "2"), []sight{empty("2"), empty("1")}, none, "2"},
		{"U4", "an own deletion says nothing of a newer state",
			at[3], wrote(left("4", 3), nil, "2"), []sight{empty("4"), empty("1")}, at[3], "4"},
		{"U4", "an own write that its stream has passed is the newest known state",
			at[1], wrote(left("3", 1), at[2], "2"), []sight{empty("3"), empty("1")}, at[2], "3"},
		{"U4", "also where no stream knows a state before it",
			at[1], wrote(departure{}, at[2], "2"), []sight{empty("3"), empty("1")}, at[2], "2"},
		{"U4", "a late stream shows what an own write has deleted",
			at[2], wrote(left("3", 2), nil, "3"), []sight{empty("3"), shows(1, "1")}, none, "3"},
		{"U4", "an own write says nothing where there was nothing",
			none, wrote(departure{}, at[2], "2"), []sight{empty("3"), empty("1")}, none, "2"},

		{"U5", "a list may have skipped a visit: all have to reach its version",
			at[1], left("2", 1), []sight{listed(empty("2"), "2"), listed(empty("3"), "3")}, at[1], "3"},
		{"U5", "all have reached the newest list",
			at[1], left("2", 1), []sight{listed(empty("3"), "2"), listed(empty("3"), "3")}, none, ""},
		{"U5", "a list does not matter where a stream shows the object",
			at[1], left("2", 1), []sight{shows(2, "2"), listed(empty("3"), "3")}, at[2], ""},

		{"U6", "a stream is lost: what is shown stays, whatever another shows",
			at[1], left("2", 1), []sight{{Lost: true}, shows(3, "3")}, at[1], ""},
		{"U6", "a stream is lost: what was not shown appears later",
			none, departure{}, []sight{{Lost: true}, shows(3, "3")}, none, ""},
	} {
		t.Run(c.rule+" "+c.name, func(t *testing.T) {
			d := coherence.Decide(c.shown, c.left, c.sights)
			assert.True(t, c.want == d.Object, "%v, and not %v", d.Object, c.want) // not its equal
			assert.Equal(t, c.until, d.UntilRV)
			assert.Equal(t, c.until != "" || c.rule == "U6", d.Open)
			if c.until != "" {
				assert.Equal(t, c.until, d.Left.LeftRV, "so that it is decided with it again")
			}
			if d.Kept {
				assert.True(t, c.shown == d.Object, "%v, and not %v", d.Object, c.shown)
			}
		})
	}
}

func TestG5UnionsTableOfANewHistory(t *testing.T) {
	shown := at[9]
	now := []coherence.Sight{{Object: at[2], KnownRV: "3"}, {KnownRV: "1", SkippedRV: "5"}}
	d := coherence.DecideAnew(shown, now)
	assert.Equal(t, coherence.Decision{Object: at[2]}, d, "U7: older than shown")
	d = coherence.DecideAnew(shown, now[1:])
	assert.Equal(t, coherence.Decision{}, d, "U7: nothing to wait for")
	d = coherence.DecideAnew(shown, append(now, coherence.Sight{Lost: true}))
	assert.Equal(t, coherence.Decision{Object: shown, Kept: true}, d, "U6")
}

// TestG4PassedTable is the table of rule U4: what an own write at version 5 tells.
func TestG4PassedTable(t *testing.T) {
	type departure = coherence.Departure
	in := coherence.Write{Version: "5", Object: at[5]}
	out := coherence.Write{Version: "5"}
	for _, c := range []struct {
		name  string
		write coherence.Write
		fate  coherence.Fate
		rv    string // at which the deleted object was there
		want  departure
	}{
		{"the stream selects the object as written, and knows something newer", in, coherence.Elsewhere, "",
			departure{LeftRV: "5", Wrote: at[5], WroteRV: "5"}},
		{"the stream does not select it, another may", out, coherence.Elsewhere, "",
			departure{LeftRV: "5"}},
		{"deleted", out, coherence.Gone, "4",
			departure{LeftRV: "5", WroteRV: "5"}},
		{"deleted, at a version that is not known", out, coherence.GoneBefore, "",
			departure{WroteRV: "5"}},
		{"deleted, at a version that is not known, after one at which it was there", out, coherence.GoneBefore, "3",
			departure{Deleted: "gone", ExistedRV: "3"}},
	} {
		c.write.UID = "gone"
		assert.Equal(t, c.want, coherence.Passed(c.write, c.fate, c.rv), c.name)
	}
}

// TestG4G5GivenUpTable is the table of rule U6: a stream gives up an own write at version 5, and
// then no longer shows a state.
func TestG4G5GivenUpTable(t *testing.T) {
	type departure = coherence.Departure
	for _, c := range []struct {
		name      string
		write     coherence.Object
		leftRV    string
		lastShown coherence.Object
		want      departure
	}{
		{"the object as written is the newest state", at[5], "7", at[4],
			departure{LeftRV: "7", Last: at[5], Wrote: at[5], WroteRV: "5"}},
		{"unless the stream shows a newer one before it goes", at[5], "7", at[6],
			departure{LeftRV: "7", Last: at[6], Wrote: at[5], WroteRV: "5"}},
		{"an object that the write took out of the stream does not come back", nil, "7", at[4],
			departure{LeftRV: "7", Wrote: at[4], WroteRV: "4"}},
		{"it may have come back", nil, "7", at[6],
			departure{LeftRV: "7", Last: at[6]}},
	} {
		d := coherence.GivenUp(c.write, "5").Leave(c.leftRV, c.lastShown)
		assert.Equal(t, c.want, d, c.name)
	}
}

// A stream has left at 7, by an own write that it then gave up. An own write at 4 is answered
// late, and shown by the stream until it lists.
func TestG4AnOwnWriteThatIsAnsweredAfterItsStreamGaveUpReplacesWhatIsOlder(t *testing.T) {
	left := coherence.GivenUp(nil, "7").Leave("7", at[4])
	sights := []coherence.Sight{{KnownRV: "7", SkippedRV: "7"}, {KnownRV: "5"}}
	assert.Equal(t, at[4], coherence.Decide(at[3], left, sights).Object)
	assert.Equal(t, at[5], coherence.Decide(at[5], left, sights).Object)
	assert.Nil(t, coherence.Decide(nil, left, sights).Object, "it brings nothing back")
}

func TestTwoDeparturesAreTheNewestOfBoth(t *testing.T) {
	first := coherence.Departure{LeftRV: "4", Last: at[3], Wrote: at[2], WroteRV: "2"}
	second := coherence.Departure{LeftRV: "5", Last: at[1], WroteRV: "5"}
	both := coherence.Departure{LeftRV: "5", Last: at[3], WroteRV: "5"}
	assert.Equal(t, both, first.And(second))
	assert.Equal(t, both, second.And(first))

	all := make(coherence.Departures)
	all.Add(at[1].key, first)
	all.Add(at[1].key, coherence.Departure{})
	all.Add(at[1].key, second)
	assert.Equal(t, coherence.Departures{at[1].key: both}, all)
}

// TestG4AnOwnDeletionAndOtherOwnWritesReplaceEachWhatIsOlder: the deletion was answered after the
// others, and nobody knows when it was.
func TestG4AnOwnDeletionAndOtherOwnWritesReplaceEachWhatIsOlder(t *testing.T) {
	of := func(uid types.UID, rev int) *thing { return &thing{key: at[1].key, uid: uid, rev: rev} }
	deletion := coherence.Departure{LeftRV: "7", Deleted: "first", ExistedRV: "3"}
	moved := coherence.Departure{LeftRV: "5", WroteRV: "5"} // an own write that no stream selects
	made := coherence.Departure{LeftRV: "5", Wrote: of("second", 5), WroteRV: "5"}
	none := coherence.Object(nil)
	for name, c := range map[string]struct {
		left        coherence.Departure
		state, want coherence.Object
	}{
		"the deleted object":                               {deletion, of("first", 3), none},
		"the deleted object, newer than it was known":      {deletion, of("first", 4), none},
		"another one before it":                            {deletion, of("zeroth", 2), none},
		"another one after it":                             {deletion, of("second", 4), of("second", 4)},
		"another one before what was moved out":            {deletion.And(moved), of("second", 4), none},
		"another one after what was moved out":             {deletion.And(moved), of("second", 6), of("second", 6)},
		"another one before what was made":                 {deletion.And(made), of("second", 4), of("second", 5)},
		"what was made is what was deleted":                {made.And(coherence.Departure{Deleted: "second", ExistedRV: "5"}), of("second", 4), none},
		"what was made is what was deleted, known earlier": {made.And(coherence.Departure{Deleted: "second", ExistedRV: "4"}), of("second", 4), none},
		"the first of two that were deleted":               {deletion.And(coherence.Departure{Deleted: "second", ExistedRV: "5"}), of("first", 4), none},
		"what came after both":                             {deletion.And(coherence.Departure{Deleted: "second", ExistedRV: "5"}), of("third", 6), of("third", 6)},
	} {
		c.left.LeftRV, c.left.Last = "9", c.state
		d := coherence.Decide(nil, c.left, []coherence.Sight{{KnownRV: "9"}, {KnownRV: "1"}})
		assert.Equal(t, coherence.Decision{Object: c.want, Open: true, Left: c.left, UntilRV: "9"}, d, name)
	}
	for _, d := range []coherence.Departure{deletion, moved, made} {
		for _, other := range []coherence.Departure{deletion, moved, made} {
			if d.WroteRV != other.WroteRV {
				assert.Equal(t, d.And(other), other.And(d))
			}
		}
	}
}

// BenchmarkDecide decides one key of a union of four streams, one of which is late.
func BenchmarkDecide(b *testing.B) {
	sights := []coherence.Sight{
		{KnownRV: "5", SkippedRV: "1"}, {KnownRV: "5"}, {KnownRV: "5"}, {Object: at[2], KnownRV: "3"},
	}
	left := coherence.Departure{LeftRV: "5", Last: at[4]}
	b.ReportAllocs()
	for b.Loop() {
		if d := coherence.Decide(at[4], left, sights); d.UntilRV != "5" {
			b.Fatal(d)
		}
	}
}
