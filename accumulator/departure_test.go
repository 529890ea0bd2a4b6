package accumulator

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/suite/sim"
)

// fork is a union of two watches. The test decides what each one sees, and when.
type fork struct {
	*sim.Server
	streams     *stream.Set
	a           *Accumulator
	snap        one
	left, right stream.Staging
}

// forked runs a test in which the left watch shows x, at the server's first version.
func forked(t *testing.T, test func(t *testing.T, f *fork)) {
	forkedWith(t, stream.Config{}, test)
}

func forkedWith(t *testing.T, c stream.Config, test func(t *testing.T, f *fork)) {
	forkedOf(t, union(), c, test)
}

func forkedOf(t *testing.T, q query.Query, c stream.Config, test func(t *testing.T, f *fork)) {
	sim.Bubble(t, c, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		f := &fork{Server: s, streams: streams}
		s.Create("as", sim.Thing("x", "l", "yes"))
		f.a = watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(f.a))
		update(t, f.a, &f.snap)
		f.left, f.right = listener(f.a, 0).Stage(), listener(f.a, 1).Stage()
		s.Late(time.Hour)
		test(t, f)
	})
}

// relists makes a watch jump to the server's present state, as a list does.
func (f *fork) relists(t *testing.T, st stream.Staging) {
	t.Helper()
	now := make(map[stream.Key]stream.Object)
	f.Mu.Lock()
	for key, o := range f.Now["as"] {
		if st.Matches(o) {
			now[key] = o.DeepCopy()
		}
	}
	version := strconv.Itoa(f.Rev)
	f.Mu.Unlock()
	require.NoError(t, st.List(now, version, ""))
}

func (f *fork) shows(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	update(t, f.a, &f.snap)
	var got []string
	for _, o := range f.snap.A {
		got = append(got, fmt.Sprint(o.GetName(), "@", sim.Revision(o.GetResourceVersion())-100))
	}
	assert.Equal(t, want, got)
}

func TestG8AListThatSkipsAVisitDoesNotHideWhatAnotherWatchHasYetToShow(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		f.Relabel("x", "r", "yes")
		f.relists(t, f.left)
		f.shows(t, "x@1") // the right watch may have it
		f.Relabel("x", "l", "yes")
		f.relists(t, f.right) // and never shows that it had it
		f.shows(t, "x@1")
		f.relists(t, f.left)
		f.shows(t, "x@3")
	})
}

func TestG8WhatOneWatchTellsAnewTakesNothingFromAnotherThatIsLate(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		f.Create("as", sim.Thing("y", "r", "yes"))
		f.relists(t, f.right)
		gone := f.Relabelled("x", "l", "yes")
		gone.SetResourceVersion(f.Put("as", stream.Key{Namespace: "ns", Name: "x"}, f.Relabelled("x", "r", "yes")).GetResourceVersion())
		require.NoError(t, f.left.Event(gone, true))
		f.left.Restart() // as after more events than the stream notes
		f.shows(t, "x@1", "y@2")
		f.relists(t, f.right)
		f.shows(t, "x@3", "y@2")
	})
}

func TestG4AnOwnWriteThatOneWatchHasBeforeItTellsAllAnewHidesNothing(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		f.Create("as", sim.Thing("y", "r", "yes"))
		f.relists(t, f.right)
		moved := f.Put("as", stream.Key{Namespace: "ns", Name: "x"}, f.Relabelled("x", "r", "yes"))
		require.True(t, f.left.OwnWrite(coherence.Write{
			Key: stream.Key{Namespace: "ns", Name: "x"}, UID: moved.GetUID(), Version: moved.GetResourceVersion(),
		}))
		f.left.Restart()         // as after more events than the stream notes
		f.shows(t, "x@1", "y@2") // the right watch is yet to be told
		f.relists(t, f.right)
		f.shows(t, "x@3", "y@2")
	})
}

// One stream has taken in an own write that moves x to the other stream, which has not.
func TestG1TheFirstSnapshotOfAUnionHasWhatAnOwnWriteTakesFromOneStreamToTheOther(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		moved := f.Put("as", stream.Key{Namespace: "ns", Name: "x"}, f.Relabelled("x", "r", "yes"))
		require.True(t, f.left.OwnWrite(coherence.Write{
			Key: stream.Key{Namespace: "ns", Name: "x"}, UID: moved.GetUID(), Version: moved.GetResourceVersion(),
		}))
		late := &fork{Server: f.Server, streams: f.streams, a: watching(t, f.streams, collect.Options{}, union())}
		assert.False(t, signalled(late.a), "no stream has x now")
		assert.Error(t, late.a.Ready())
		f.relists(t, f.right)
		f.relists(t, f.left)
		synctest.Wait()
		require.True(t, signalled(late.a))
		late.shows(t, "x@2")
	})
}

func TestG4AStreamThatIsJoinedTellsOfOwnWritesBeforeIt(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		key := stream.Key{Namespace: "ns", Name: "x"}
		require.True(t, f.left.OwnWrite(coherence.Write{Key: key, UID: f.Now["as"][key].GetUID(), Version: "110"}))
		late := watching(t, f.streams, collect.Options{}, union())
		sight := listener(late, 0).Look(key)
		assert.Nil(t, sight.Object)
		assert.Equal(t, "110", sight.SkippedRV, "how x has left is not known, so each stream has to come as far")
	})
}

// A reader joins while an own write of ns1/b is pending, and shows ns1/a, which its watch then
// deletes. The model has found this script.
func TestG2ADeletionDoesNotWaitForAnOwnWriteOfAnotherObject(t *testing.T) {
	s := sim.Script{First: []int{0, 0}, Share: true, Steps: []sim.Step{
		{Op: 0, B: 12}, {Op: 15}, {Op: 15, A: 1, B: 1}, {Op: 75, A: 1}, {Op: 94, C: 1}, {Op: 36, A: 1}, {Op: 0}, {Op: 36, A: 1},
	}}
	synctest.Test(t, func(t *testing.T) { require.NoError(t, runScript(s, func() {})) })
}

func TestG4AnOwnWriteIsShownThoughItsWatchWasPastItAndAnotherIsLate(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		key := stream.Key{Namespace: "ns", Name: "x"}
		write := f.streams.Begin(sim.Resource("as"), key)
		wrote := f.Put("as", key, f.Relabelled("x", "l", "yes", "n", "2"))
		f.Relabel("x", "r", "yes")
		f.relists(t, f.left)
		f.shows(t, "x@1")
		require.NoError(t, write.Commit(t.Context(), stream.Outcome{Write: coherence.Write{
			Key: key, UID: wrote.GetUID(), Version: wrote.GetResourceVersion(), Object: wrote,
		}}))
		f.shows(t, "x@2")
		f.relists(t, f.right)
		f.shows(t, "x@3")
	})
}

// Only the server can judge the own write, and it answers from a cache in which the other client's
// write is yet to come.
func TestG4AnOwnWriteIsShownAsTheServerAnswersThoughItsWatchWasPastItAndAnotherIsLate(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		key := stream.Key{Namespace: "ns", Name: "x"}
		r := sim.Resource("as")
		r.Version = "v2"
		write := f.streams.Begin(r, key)
		wrote := f.Put("as", key, f.Relabelled("x", "l", "yes", "n", "2"))
		f.Relabel("x", "r", "yes")
		f.relists(t, f.left)
		f.shows(t, "x@1")
		f.Mu.Lock()
		f.Lag = func(_, atLeast int) int { return atLeast }
		f.Mu.Unlock()
		require.NoError(t, write.Commit(t.Context(), stream.Outcome{Write: coherence.Write{
			Key: key, UID: wrote.GetUID(), Version: wrote.GetResourceVersion(), Object: wrote,
		}}))
		f.shows(t, "x@2")
		f.relists(t, f.right)
		f.shows(t, "x@3")
	})
}

// The answers of two own writes come in the other order. The later one takes x out of the left
// watch, and the right one has yet to be told.
func TestG4AnOwnWriteIsShownThoughALaterOneHasReachedItsWatchAndAnotherIsLate(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		key := stream.Key{Namespace: "ns", Name: "x"}
		write := f.streams.Begin(sim.Resource("as"), key)
		wrote := f.Put("as", key, f.Relabelled("x", "l", "yes", "n", "2"))
		moved := f.Put("as", key, f.Relabelled("x", "r", "yes"))
		later := coherence.Write{Key: key, UID: moved.GetUID(), Version: moved.GetResourceVersion()}
		require.True(t, f.left.OwnWrite(later))
		f.shows(t, "x@1") // the right one may have it
		require.NoError(t, write.Commit(t.Context(), stream.Outcome{Write: coherence.Write{
			Key: key, UID: wrote.GetUID(), Version: wrote.GetResourceVersion(), Object: wrote,
		}}))
		f.shows(t, "x@2")
		later.Object = moved
		require.True(t, f.right.OwnWrite(later))
		f.shows(t, "x@3")
	})
}

func TestG4AnOwnDeletionIsShownThoughItsWatchWasPastItAndAnotherIsLate(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		f.Relabel("x", "r", "yes")
		f.relists(t, f.left)
		f.shows(t, "x@1")
		key := stream.Key{Namespace: "ns", Name: "x"}
		uid := f.Relabelled("x").GetUID()
		write := f.streams.Begin(sim.Resource("as"), key)
		f.Remove("as", "x")
		version := strconv.Itoa(f.Rev)
		f.Create("as", sim.Thing("y", "l", "yes"))
		f.relists(t, f.left)
		f.shows(t, "x@1", "y@4")
		require.NoError(t, write.Commit(t.Context(), stream.Outcome{Write: coherence.Write{Key: key, UID: uid, Version: version}}))
		f.shows(t, "y@4")
		f.relists(t, f.right)
		f.shows(t, "y@4")
	})
}

func TestG8AnObjectThatIsMovedIsNeverOutOfAUnionThoughOneWatchHasToAsk(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		f.Create("as", sim.Thing("y", "l", "yes"))
		f.relists(t, f.left)
		moved := f.Put("as", stream.Key{Namespace: "ns", Name: "y"}, f.Relabelled("y", "r", "yes"))
		w := coherence.Write{Key: stream.Key{Namespace: "ns", Name: "y"}, UID: moved.GetUID(), Version: moved.GetResourceVersion()}
		require.True(t, f.left.OwnWrite(w)) // the right watch has not yet
		f.shows(t, "x@1", "y@2")
		w.Object = moved
		require.True(t, f.right.OwnWrite(w))
		f.shows(t, "x@1", "y@3")
	})
}

func TestG8WhatEntersOneWatchOfAUnionBeforeItLeavesTheOtherIsNotForgotten(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		moved := f.Put("as", stream.Key{Namespace: "ns", Name: "x"}, f.Relabelled("x", "r", "yes"))
		f.relists(t, f.left)
		f.shows(t, "x@1")
		// Another own write moves the object back. Only the right watch knows that by now.
		back := f.Put("as", stream.Key{Namespace: "ns", Name: "x"}, f.Relabelled("x", "l", "yes"))
		w := coherence.Write{Key: stream.Key{Namespace: "ns", Name: "x"}, UID: moved.GetUID(), Version: back.GetResourceVersion()}
		require.True(t, f.right.OwnWrite(w))
		f.shows(t, "x@1")
		w.Object = back
		require.True(t, f.left.OwnWrite(w))
		f.shows(t, "x@3")
	})
}

func TestG4AnOwnWriteThatTakesAnObjectOutOfAUnionIsShownThoughAWatchIsLate(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		key := stream.Key{Namespace: "ns", Name: "x"}
		write := f.streams.Begin(sim.Resource("as"), key)
		wrote := f.Put("as", key, f.Relabelled("x"))
		f.Create("as", sim.Thing("y", "l", "yes"))
		f.relists(t, f.left)
		f.shows(t, "x@1", "y@3") // the right watch may have it
		require.NoError(t, write.Commit(t.Context(), stream.Outcome{Write: coherence.Write{
			Key: key, UID: wrote.GetUID(), Version: wrote.GetResourceVersion(), Object: wrote,
		}}))
		f.shows(t, "y@3")
		f.relists(t, f.right)
		f.shows(t, "y@3")
	})
}

func TestG8AnOwnDeletionTakesNothingFromWhatWasMadeAnewSince(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		key := stream.Key{Namespace: "ns", Name: "x"}
		uid := f.Relabelled("x").GetUID()
		write := f.streams.Begin(sim.Resource("as"), key)
		f.Remove("as", "x")
		f.Create("as", sim.Thing("x", "l", "yes"))
		f.relists(t, f.left)
		f.shows(t, "x@3")
		f.Create("as", sim.Thing("y", "l", "yes"))
		require.NoError(t, write.Commit(t.Context(), stream.Outcome{Write: coherence.Write{Key: key, UID: uid}}))
		f.Relabel("x", "r", "yes")
		f.relists(t, f.left)
		f.shows(t, "x@3", "y@4") // the right watch has not shown the move yet
		f.relists(t, f.right)
		f.shows(t, "x@5", "y@4")
	})
}

func TestG8AnOwnDeletionLeavesNoGapWhileWatchesAreAskedForWhatWasMadeAnewSince(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		f.Relabel("x", "r", "yes") // recreated, and moved by an own write
		f.relists(t, f.left)
		f.relists(t, f.right)
		f.shows(t, "x@2")
		f.Relabel("x", "l", "yes")
		w := coherence.Write{Key: stream.Key{Namespace: "ns", Name: "x"}, UID: "another", Version: "103"}
		require.True(t, f.right.OwnDeletion(w)) // the left watch has not answered yet
		f.shows(t, "x@2")
		w.Object = f.Relabelled("x", "l", "yes")
		require.True(t, f.left.OwnDeletion(w))
		f.shows(t, "x@3")
	})
}

// One watch has shown the deletion, and what was made anew since. The other has to ask the server.
func TestG8AnOwnDeletionThatOneWatchHasShownTakesNothingFromWhatWasMadeAnewSince(t *testing.T) {
	everything := stream.Selection{}
	q := sim.Query("A", "as")
	q.AnyOf = []stream.Selection{everything, {Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}}
	forkedOf(t, q, stream.Config{}, func(t *testing.T, f *fork) {
		all, some := f.left, f.right
		key := stream.Key{Namespace: "ns", Name: "x"}
		gone := f.Relabelled("x", "l", "yes")
		write := f.streams.Begin(sim.Resource("as"), key)
		f.Remove("as", "x")
		gone.SetResourceVersion(strconv.Itoa(f.Rev))
		require.NoError(t, all.Event(gone, true))
		f.Create("as", sim.Thing("x", "l", "yes"))
		f.relists(t, some)
		f.Relabel("x", "l", "no")
		f.relists(t, all)
		f.shows(t, "x@4")
		f.Create("bs", sim.Thing("other")) // so that the answer to the watch that asks is newer
		w := coherence.Write{Key: key, UID: gone.GetUID()}
		require.NoError(t, write.Commit(t.Context(), stream.Outcome{Write: w}))
		f.shows(t, "x@4")
		f.relists(t, all)
		f.relists(t, some)
		f.shows(t, "x@4")
	})
}

// One watch still shows what was deleted. The other has to ask the server, whose answer is newer
// than an own write of what was made anew since.
func TestG4AnOwnWriteOfWhatWasMadeAnewIsShownThoughAnAnswerToTheDeletionIsNewer(t *testing.T) {
	everything := stream.Selection{}
	q := sim.Query("A", "as")
	q.AnyOf = []stream.Selection{everything, {Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}}
	forkedOf(t, q, stream.Config{}, func(t *testing.T, f *fork) {
		key := stream.Key{Namespace: "ns", Name: "x"}
		gone := f.Relabelled("x", "l", "yes")
		deletion := f.streams.Begin(sim.Resource("as"), key)
		f.Remove("as", "x")
		gone.SetResourceVersion(strconv.Itoa(f.Rev))
		f.Create("as", sim.Thing("x", "l", "no"))
		write := f.streams.Begin(sim.Resource("as"), key)
		wrote := f.Put("as", key, f.Relabelled("x", "l", "no", "n", "2"))
		f.Create("bs", sim.Thing("other")) // so that the answer to the watch that asks is newer
		w := coherence.Write{Key: key, UID: gone.GetUID()}
		require.NoError(t, deletion.Commit(t.Context(), stream.Outcome{Write: w}))
		require.NoError(t, f.left.Event(gone.DeepCopy(), true))
		w = coherence.Write{Key: key, UID: wrote.GetUID(), Version: wrote.GetResourceVersion(), Object: wrote}
		require.NoError(t, write.Commit(t.Context(), stream.Outcome{Write: w}))
		f.shows(t, "x@4")
		f.relists(t, f.left)
		f.relists(t, f.right)
		f.shows(t, "x@4")
	})
}

func TestG3ABurstOfOwnWritesThatAUnionHasPassedLeavesNoRoomBehind(t *testing.T) {
	forked(t, func(t *testing.T, f *fork) {
		for i := range 2 * 1024 {
			key := stream.Key{Namespace: "ns", Name: fmt.Sprint("gone-", i)}
			f.left.Passed(coherence.Write{Key: key, Version: "101"})
		}
		assert.Equal(t, 2*1024, f.left.Held().Room)
		f.shows(t, "x@1")
		assert.Zero(t, f.left.Held().Room, "a fresh map")
	})
}

// An own write takes x out of both watches. Then the client writes so many objects that the
// watches give up its writes. An older event comes late, and each watch lists again at a version
// of its own.
func TestG5WhatAnOwnWriteTookOutOfAUnionStaysOutThoughItIsGivenUp(t *testing.T) {
	c := stream.Config{PendingMax: 1}
	forkedWith(t, c, func(t *testing.T, f *fork) {
		f.Mu.Lock()
		f.ListAnswer = func(string) time.Duration { return time.Hour }
		f.Mu.Unlock()
		o := sim.NewClient(f.Server, f.streams)
		f.Relabel("x", "l", "yes", "n", "2")
		late := f.Relabelled("x", "l", "yes", "n", "2")
		o.Put("as", f.Relabelled("x"), 0)
		f.shows(t)
		o.Put("as", sim.Thing("y", "l", "yes"), 0)
		require.True(t, f.left.Held().GivenUp)
		require.True(t, f.right.Held().GivenUp)
		require.NoError(t, f.left.Event(late, false))
		f.shows(t)
		f.relists(t, f.right)
		f.Create("as", sim.Thing("z", "l", "yes"))
		f.relists(t, f.left)
		f.shows(t, "y@4", "z@5") // the right watch is late
		f.relists(t, f.right)
		f.shows(t, "y@4", "z@5")
	})
}

// In the left watch x comes and goes after its batch was taken, and before the merge asks the
// watch for x.
func TestG5WhatLeavesAUnionWhileItIsMergedLeavesOnce(t *testing.T) {
	var stage staged
	forkedWith(t, stream.Config{Points: stage.reached}, func(t *testing.T, f *fork) {
		f.Remove("as", "x")
		f.relists(t, f.left)
		f.shows(t, "x@1") // the right watch may have it
		stage.on(stream.AtMerge, func() {
			f.Create("as", sim.Thing("x", "l", "yes"))
			f.relists(t, f.left)
			f.Remove("as", "x")
			f.relists(t, f.left)
			f.relists(t, f.right)
		})
		f.shows(t)
		require.Nil(t, stage.do, "the point was reached")
		f.Create("as", sim.Thing("y", "r", "yes"))
		f.relists(t, f.right)
		f.shows(t, "y@5") // the left watch is late
		f.relists(t, f.left)
		f.shows(t, "y@5")
	})
}
