package coherence_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// text is an object without versions.
type text struct{ says string }

func (*text) GetUID() types.UID          { return "" }
func (*text) GetResourceVersion() string { return "" }

var (
	a     = types.NamespacedName{Name: "a"}
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// byContent is the view of a server that answers without versions.
func byContent() *coherence.View {
	return coherence.NewView(coherence.Options{Hold: 10 * time.Second, Same: func(a, b coherence.Object) bool {
		return a.(*text).says == b.(*text).says
	}})
}

// wrote records a write of key a; "" is a deletion.
func wrote(v *coherence.View, says string, at time.Time) { v.Record(written(says), nil, at) }

func written(says string) coherence.Write { return coherence.Write{Key: a, Object: said(says)} }

// said is an object that says something, nil for nothing.
func said(says string) coherence.Object {
	if says == "" {
		return nil
	}
	return &text{says}
}

// shown is the event of an object of key a.
func shown(says string) coherence.Event { return coherence.Event{Key: a, Object: said(says)} }

func TestG4AWriteWithoutAVersionIsShownUntilAnEventHasItsContent(t *testing.T) {
	v := byContent()
	old := &text{"old"}
	wrote(v, "new", start)
	assert.Equal(t, said("new"), v.Read(a, old))
	assert.Empty(t, v.Observe(shown("old")), "it is from before the write")
	assert.Equal(t, said("new"), v.Read(a, old))
	assert.Equal(t, []coherence.Ended{{Key: a, Object: said("new")}}, v.Observe(shown("new")))
	assert.Equal(t, old, v.Read(a, old), "the watch has the word again")
	assert.Zero(t, v.Pending())

	wrote(v, "", start)
	assert.Nil(t, v.Read(a, old))
	assert.Empty(t, v.Observe(shown("new")))
	assert.Equal(t, []coherence.Ended{{Key: a}}, v.Observe(shown("")))
	assert.Equal(t, old, v.Read(a, old))
}

func TestG4WritesWithoutVersionsEndInTheirOrder(t *testing.T) {
	v := byContent()
	for _, says := range []string{"1", "2", "", "3"} {
		wrote(v, says, start)
	}
	assert.Equal(t, 4, v.Pending())
	assert.Equal(t, said("3"), v.Read(a, nil), "the newest is shown")
	assert.Empty(t, v.Observe(shown("2")), "it ends the first as well")
	assert.Equal(t, 2, v.Pending())
	assert.Empty(t, v.Observe(shown("1")), "it is over")
	assert.Equal(t, []coherence.Ended{{Key: a, Object: said("3")}}, v.Observe(shown("3")))
	assert.Zero(t, v.Pending())
}

func TestG3AWriteWithoutAVersionIsHeldForAWhileAlone(t *testing.T) {
	v := byContent()
	_, any := v.Deadline()
	assert.False(t, any)
	wrote(v, "1", start)
	wrote(v, "2", start.Add(3*time.Second))
	later := types.NamespacedName{Name: "later"}
	for i := range 5 {
		later.Namespace = strconv.Itoa(i)
		v.Record(coherence.Write{Key: later, Object: said("x")}, nil, start.Add(time.Hour))
	}
	at, any := v.Deadline()
	assert.True(t, any)
	assert.Equal(t, start.Add(10*time.Second), at)
	assert.Empty(t, v.Expire(at.Add(-1)))
	assert.Equal(t, 7, v.Pending())
	assert.Empty(t, v.Expire(at), "a newer write is shown")
	at, _ = v.Deadline()
	assert.Equal(t, start.Add(13*time.Second), at)
	assert.Equal(t, said("2"), v.Read(a, nil))
	assert.Equal(t, []coherence.Ended{{Key: a, Object: said("2")}}, v.Expire(at))
	assert.Nil(t, v.Read(a, nil))
	assert.Len(t, v.Expire(start.Add(2*time.Hour)), 5)
	assert.Zero(t, v.Pending())
}

// TestKeysAreThoseThatOwnWritesAreShownFor has a write with a version, and some without.
func TestKeysAreThoseThatOwnWritesAreShownFor(t *testing.T) {
	v := coherence.NewView(coherence.Options{Whole: true, Hold: time.Second, Same: func(a, b coherence.Object) bool { return a == b }})
	b, c := types.NamespacedName{Name: "b"}, types.NamespacedName{Name: "c"}
	v.Advance("10")
	assert.Equal(t, "10", v.Newest())
	x := &thing{key: b, uid: "x", rev: 12}
	v.Record(coherence.Write{Key: b, UID: "x", Version: "12", Object: x}, nil, start)
	v.Record(coherence.Write{Key: a, Object: &thing{key: a}}, nil, start.Add(1))
	v.Record(coherence.Write{Key: b, Object: &thing{key: b}}, nil, start.Add(2))
	y := &thing{key: c, uid: "y", rev: 9}
	v.Record(coherence.Write{Key: c, UID: "y"}, y, start.Add(3))
	assert.ElementsMatch(t, []types.NamespacedName{a, b, c}, slices.Collect(v.Keys), "each once")
	for range v.Keys {
		break
	}
	assert.Equal(t, 4, v.Pending())
	assert.Equal(t, 1, v.Undated())
	assert.Equal(t, "12", v.Newest())

	since := map[string]int64{}
	for w, at := range v.Outstanding {
		since[w.Key.Name+w.Version] = at.Sub(start).Nanoseconds()
	}
	assert.Equal(t, map[string]int64{"b12": 0, "a": 1, "b": 2, "c": 3}, since, "a deletion at an unknown version has none")
	for n := range 4 {
		count := 0
		for range v.Outstanding {
			if count++; count > n {
				break
			}
		}
		assert.Equal(t, n+1, count)
	}

	known, bounded := v.Known(b)
	assert.Equal(t, "12 true", known+" "+strconv.FormatBool(bounded))
	known, bounded = v.Known(a)
	assert.Equal(t, "10 true", known+" "+strconv.FormatBool(bounded))
	_, bounded = v.Known(c)
	assert.False(t, bounded)

	assert.Equal(t, []types.NamespacedName{c}, keys(v.List("11", func(types.NamespacedName) types.UID { return "" })), "the list does not have it")
	assert.Zero(t, v.Undated())
	v.GiveUp()
	assert.Empty(t, slices.Collect(v.Keys))
	assert.Zero(t, v.Pending())
	assert.Equal(t, "11", v.Newest())
}

func keys(ended []coherence.Ended) []types.NamespacedName {
	all := map[types.NamespacedName]bool{}
	for _, e := range ended {
		all[e.Key] = true
	}
	return slices.Collect(maps.Keys(all))
}
