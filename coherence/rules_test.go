package coherence_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// A quiet resource's bookmark may repeat an old version.
func TestG5APositionNeverGoesBack(t *testing.T) {
	v := coherence.NewView(coherence.Options{Whole: true})
	v.Advance("20")
	v.Advance("10")
	v.List("15", func(types.NamespacedName) types.UID { return "" })
	v.Advance("")
	assert.Equal(t, "20", v.Position())
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 15}
	v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: "15", Object: x}, nil, time.Time{})
	assert.Nil(t, v.Read(x.key, nil), "the watch has been past it, and does not show it")
	assert.Zero(t, v.Pending())
}

func TestG6OwnWritesEndInTheOrderOfTheirVersionsHoweverTheirAnswersCome(t *testing.T) {
	v := at10(coherence.Options{Whole: true})
	for _, rev := range []int{14, 12, 13, 11} {
		x := &thing{key: types.NamespacedName{Name: strconv.Itoa(rev)}, uid: "x", rev: rev}
		v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: x.key.Name, Object: x}, nil, time.Time{})
	}
	for i, rv := range []string{"11", "12", "13", "14"} {
		assert.Len(t, v.Advance(rv), 1, "at %s", rv)
		assert.Equal(t, 3-i, v.Pending())
	}
}

// Answers do not come back in the order in which the server made them.
func TestG4AFloorNeverSinks(t *testing.T) {
	var j coherence.Journal
	for _, version := range []string{"9", "100", "20", "", "0"} {
		j.Commit("things", coherence.Write{Version: version})
	}
	assert.Equal(t, "100", j.Floor("things"))
	assert.Empty(t, j.Floor("others"))
	j.Lower("things")
	assert.Empty(t, j.Floor("things"))
}

// The stream is at 10. Somebody moves the object out of the selector (11) and back (12). We delete
// it (13, which the answer does not say).
func TestG5LeavingASelectorDoesNotEndADeletion(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10, in: true}
	ours := coherence.Write{Key: x.key, UID: x.uid}
	assert.False(t, at10(coherence.Options{}, x).Record(ours, x, time.Time{}), "only the server can tell when")
	v := at10(coherence.Options{Whole: true}, x)
	assert.True(t, v.Record(ours, x, time.Time{}), "a DELETED event is the deletion: it cannot move out")
	assert.Nil(t, v.Read(x.key, x))
	assert.Len(t, v.Observe(coherence.Event{Key: x.key, UID: x.uid, Version: "13"}), 1)
	assert.Zero(t, v.Pending())
}

func at10(o coherence.Options, objects ...*thing) *coherence.View {
	v := coherence.NewView(o)
	v.List("10", func(key types.NamespacedName) types.UID {
		for _, t := range objects {
			if t.key == key {
				return t.uid
			}
		}
		return ""
	})
	return v
}

// A list was under way (11) when we created the object (12) and deleted it (13, which the answer
// does not say). The watch that follows the list has yet to bring both.
func TestG5AListFromBeforeAnObjectDoesNotEndItsDeletion(t *testing.T) {
	nothing := func(types.NamespacedName) types.UID { return "" }
	v := at10(coherence.Options{Whole: true})
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 12}
	v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: "12", Object: x}, nil, time.Time{})
	assert.True(t, v.Record(coherence.Write{Key: x.key, UID: x.uid}, nil, time.Time{}))
	assert.Empty(t, v.List("11", nothing))
	v.Observe(coherence.Event{Key: x.key, UID: x.uid, Object: x, Version: "12"})
	assert.Nil(t, v.Read(x.key, x), "deleted by us")
	assert.Len(t, v.Observe(coherence.Event{Key: x.key, UID: x.uid, Version: "13"}), 1)
	assert.Zero(t, v.Pending())
}

// A server that finds an object already gone may answer a DELETE with the last state that it had
// read: here 11, of an object that somebody deleted at 13.
func TestG5AVersionThatIsTheObjectsOwnIsNotThatOfItsDeletion(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 11}
	gone := coherence.Write{Key: x.key, UID: x.uid, Version: "11"}
	for _, whole := range []bool{true, false} {
		v := at10(coherence.Options{Whole: whole})
		assert.True(t, v.Record(gone, nil, time.Time{}))
		v.Observe(coherence.Event{Key: x.key, UID: x.uid, Object: x, Version: "11"})
		assert.Nil(t, v.Read(x.key, x), "the event has the version, and is no deletion")
		v.Advance("12")
		assert.Nil(t, v.Read(x.key, x))
		assert.Len(t, v.Observe(coherence.Event{Key: x.key, UID: x.uid, Version: "13"}), 1)
		assert.Zero(t, v.Pending())
	}
	v := at10(coherence.Options{Whole: true})
	v.Advance("12")
	later := &thing{key: x.key, uid: x.uid, rev: 12}
	assert.True(t, v.Record(gone, later, time.Time{}))
	assert.Nil(t, v.Read(x.key, later), "the watch has passed the version, and shows the object")
	v = at10(coherence.Options{})
	v.Advance("12")
	assert.False(t, v.Record(gone, x, time.Time{}), "it may have moved in and out: the server is asked")
	assert.True(t, v.Record(gone, later, time.Time{}), "we moved it out, and somebody back in")
	assert.Equal(t, later, v.Read(x.key, later))
}

func TestG3OneKeyWrittenOverAndOverIsOneEntry(t *testing.T) {
	v := coherence.NewView(coherence.Options{Whole: true})
	before := heap()
	for rev := 1; rev <= 100_000; rev++ {
		x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: rev}
		v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: version(rev), Object: x}, nil, time.Time{})
	}
	assert.Equal(t, 1, v.Pending())
	assert.Less(t, heap(), before+1<<20)
	assert.Len(t, v.Advance("100000"), 1)
	assert.Zero(t, v.Pending())
}

// heap returns how many bytes the heap has.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The stream is at 20, and has x as of 15. A DELETED event has x's own version.
func TestG2G4ADeletionThatHasTheStoredVersionEndsNothingButTheDeletionOfThatObject(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 15}
	next := &thing{key: x.key, uid: "next", rev: 25}
	newer := &thing{key: x.key, uid: x.uid, rev: 25}
	wrote := func(o *thing) coherence.Write {
		return coherence.Write{Key: x.key, UID: o.uid, Version: version(o.rev), Object: o}
	}
	for name, test := range map[string]struct {
		ours    []coherence.Write
		shown   coherence.Object
		pending int
	}{
		"no own write":                       {},
		"another object of that name":        {ours: []coherence.Write{wrote(next)}, shown: next, pending: 1},
		"a newer state":                      {ours: []coherence.Write{wrote(newer)}, shown: newer, pending: 1},
		"a state that the watch has passed":  {ours: []coherence.Write{wrote(x)}},
		"what the server was asked for":      {ours: []coherence.Write{{Key: x.key, UID: x.uid, Version: "25", Object: x}}},
		"its deletion, at a version":         {ours: []coherence.Write{{Key: x.key, UID: x.uid, Version: "25"}}, pending: 1},
		"its deletion, at an unknown one":    {ours: []coherence.Write{{Key: x.key, UID: x.uid}}},
		"its deletion, answered with its RV": {ours: []coherence.Write{{Key: x.key, UID: x.uid, Version: "15"}}},
	} {
		t.Run(name, func(t *testing.T) {
			v := coherence.NewView(coherence.Options{Whole: true})
			v.List("20", func(types.NamespacedName) types.UID { return x.uid })
			for _, w := range test.ours {
				assert.True(t, v.Record(w, x, time.Time{}))
			}
			v.Observe(coherence.Event{Key: x.key, UID: x.uid, LastRV: x.GetResourceVersion()})
			assert.Equal(t, test.shown, v.Read(x.key, nil))
			assert.Equal(t, test.pending, v.Pending())
			assert.Equal(t, "20", v.Position())
			v.Advance("30")
			assert.Zero(t, v.Pending())
		})
	}
}

// The answers were on their way when the event came.
func TestG5AnAnswerFromBeforeADeletionThatHasTheStoredVersionBringsNothingBack(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	v := at10(coherence.Options{Whole: true}, x)
	v.Begin(x.key)
	v.Observe(coherence.Event{Key: x.key, UID: x.uid, LastRV: "10"})
	assert.True(t, v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: "12", Object: x}, nil, time.Time{}))
	assert.Nil(t, v.Read(x.key, nil))
	assert.False(t, status(v, x, nil), "nobody knows since when it is gone: the server is asked")
	v.End(x.key)
	assert.Zero(t, v.Pending())
}

// In a stream with a selector, the answer is that to the question what the stream shows.
func TestG5AnAnswerThatHasTheDeletedStateBringsNothingBackInAStreamWithASelector(t *testing.T) {
	x := &thing{key: types.NamespacedName{Name: "x"}, uid: "x", rev: 10}
	v := at10(coherence.Options{}, x)
	v.Begin(x.key)
	v.Observe(coherence.Event{Key: x.key, UID: x.uid, LastRV: "10"})
	assert.True(t, v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: "12", Object: x}, nil, time.Time{}))
	assert.Nil(t, v.Read(x.key, nil))
	assert.Zero(t, v.Pending())
	newer := &thing{key: x.key, uid: x.uid, rev: 13}
	assert.True(t, v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: "13", Object: newer}, nil, time.Time{}))
	assert.Equal(t, newer, v.Read(x.key, nil), "if the event was a move out of the selector, this is a move in")
	v.End(x.key)
}

func TestG2ADeletionHasTheLastStateIfItHasTheUIDAndTheVersionOfWhatIsStored(t *testing.T) {
	x := &thing{uid: "x", rev: 15}
	for name, test := range map[string]struct {
		stored, deleted coherence.Object
		want            bool
	}{
		"the same":         {x, &thing{uid: "x", rev: 15}, true},
		"nothing stored":   {nil, x, false},
		"its own version":  {x, &thing{uid: "x", rev: 16}, false},
		"old news":         {x, &thing{uid: "x", rev: 14}, false},
		"another object's": {x, &thing{uid: "y", rev: 15}, false},
		"no version":       {&thing{uid: "x"}, &thing{uid: "x"}, false},
	} {
		assert.Equal(t, test.want, coherence.LastState(test.stored, test.deleted), name)
	}
}
