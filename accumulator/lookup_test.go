package accumulator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

var xKey = object.Key{Namespace: "ns", Name: "x"}

// lookedUp returns the result of a look-up: a version, "none" or "unknown".
func lookedUp(streams *streamset.Set, part intake.Part) string {
	switch o, known := streams.Lookup(sim.Resource("as"), xKey, part); {
	case !known:
		return "unknown"
	case o == nil:
		return "none"
	default:
		return o.GetResourceVersion()
	}
}

func TestG4ALookupTellsPresenceAndAbsenceFromARunningStreamAndOwnWrites(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		assert.Equal(t, "unknown", lookedUp(streams, intake.All), "nothing watches it")
		in := sim.Query("A", "as")
		in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		watching(t, streams, collect.Options{}, in)
		synctest.Wait()
		assert.Equal(t, "unknown", lookedUp(streams, intake.All), "it may be out of the selector")
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		assert.Equal(t, "none", lookedUp(streams, intake.All))

		o := sim.NewClient(s, streams)
		o.Late(60 * second)
		o.Put("as", sim.Thing("x", "in", "no"), 0)
		first := lookedUp(streams, intake.All)
		assert.NotContains(t, []string{"none", "unknown"}, first, "an own write that no watch has brought")
		o.Put("as", sim.Thing("x", "in", "yes"), 0)
		assert.NotEqual(t, first, lookedUp(streams, intake.All))
		o.Delete("as", "x", 0, true)
		assert.Equal(t, "none", lookedUp(streams, intake.All))
		other := sim.Resource("as")
		other.Version = "v2"
		_, known := streams.Lookup(other, xKey, intake.All)
		assert.False(t, known, "in another form")
	})
}

func TestG5ALookupGoesByTheStreamThatHasComeFurthest(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "in", "yes"))
		in := sim.Query("A", "as")
		in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		watching(t, streams, collect.Options{}, in)
		synctest.Wait()
		s.Late(time.Hour)
		s.Remove("as", "x")
		assert.NotEqual(t, "none", lookedUp(streams, intake.All), "nobody has heard of it")
		watching(t, streams, collect.Options{}, sim.Query("A", "as")) // its list is new
		synctest.Wait()
		assert.Equal(t, "none", lookedUp(streams, intake.All), "the one that is behind does not count")
		s.Create("as", sim.Thing("x", "in", "yes"))
		assert.Equal(t, "none", lookedUp(streams, intake.All))
	})
}

func TestALookupGoesByStreamsThatHoldWhatIsAskedFor(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "in", "yes"))
		changed := sim.Query("A", "as")
		changed.Transform = &object.Transform{Do: func(o object.Object) error { o.SetLabels(nil); return nil }}
		watching(t, streams, collect.Options{}, changed)
		synctest.Wait()
		assert.Equal(t, []string{"unknown", "unknown", "101"}, []string{lookedUp(streams, intake.All), lookedUp(streams, intake.Meta), lookedUp(streams, intake.Version)})
		short := sim.Query("A", "as")
		short.Form = object.Metadata
		watching(t, streams, collect.Options{}, short)
		synctest.Wait()
		assert.Equal(t, []string{"unknown", "101", "101"}, []string{lookedUp(streams, intake.All), lookedUp(streams, intake.Meta), lookedUp(streams, intake.Version)})
	})
}

func TestAListOfARunningStreamIsAllOfItOrNothing(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.In("n1", "x", "app", "a"))
		s.Create("as", sim.In("n1", "y", "app", "b"))
		s.Create("as", sim.In("n2", "z", "app", "a"))
		of := func(namespace string, selector labels.Selector) []string {
			found, ok := streams.List(sim.Resource("as"), namespace, selector, intake.Meta)
			if !ok {
				return []string{"unknown"}
			}
			return listed(found)
		}
		app := labels.SelectorFromSet(labels.Set{"app": "a"})
		assert.Equal(t, []string{"unknown"}, of("", app))
		one := sim.Query("A", "as")
		one.Namespace = "n1"
		a := watching(t, streams, collect.Options{}, one)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"n1/x"}, of("n1", app))
		assert.Equal(t, []string{"unknown"}, of("n2", app))
		assert.Equal(t, []string{"unknown"}, of("", app))
		b := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(b))
		assert.ElementsMatch(t, []string{"n1/x", "n2/z"}, of("", app))
		s.Late(time.Hour)
		o := sim.NewClient(s, streams)
		o.Put("as", sim.In("n2", "own", "app", "a"), 0)
		assert.ElementsMatch(t, []string{"n2/own", "n2/z"}, of("n2", app))
	})
}

func TestALookupTellsNothingBeforeTheFirstListNorWhileOwnWritesAreGivenUp(t *testing.T) {
	sim.Bubble(t, stream.Config{PendingMax: 2}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		s.ListDelay = func(string) time.Duration { return time.Second }
		told := func() []string {
			_, known := streams.Lookup(sim.Resource("as"), object.Key{Namespace: "ns", Name: "none"}, intake.All)
			_, listed := streams.List(sim.Resource("as"), "ns", labels.Everything(), intake.All)
			return []string{lookedUp(streams, intake.All), fmt.Sprint(known), fmt.Sprint(listed)}
		}
		nothing := []string{"unknown", "false", "false"}
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		assert.Equal(t, nothing, told(), "the list is on its way")
		sim.After(2 * time.Second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"101", "true", "true"}, told())
		o := sim.NewClient(s, streams)
		o.Late(60 * second)
		for _, name := range []string{"x", "b", "c"} {
			o.Put("as", sim.Thing(name), 0)
		}
		assert.Equal(t, nothing, told(), "what is stored is older than the write")
		sim.After(2 * time.Minute) // a new list
		assert.Equal(t, "true", told()[1])
		assert.NotEqual(t, "unknown", told()[0])
	})
}

func TestATypedStreamTellsWhatItsGoTypeKnowsAndThatThereIsNothingButNotAllOfAnObject(t *testing.T) {
	parts := []intake.Part{intake.All, intake.Known, intake.Meta, intake.Version}
	told := func(streams *streamset.Set) (all []string) {
		for _, part := range parts {
			all = append(all, lookedUp(streams, part))
		}
		return all
	}
	inTyped(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		acc := watching(t, streams, collect.Options{}, typedQuery())
		synctest.Wait()
		assert.Equal(t, []string{"none", "none", "none", "none"}, told(streams))
		s.Create("as", sim.Thing("x"))
		synctest.Wait()
		_, version := update(t, acc, &things{}), lookedUp(streams, intake.Version)
		assert.Equal(t, []string{"unknown", version, version, version}, told(streams))
		found, ok := streams.List(sim.Resource("as"), "ns", labels.Everything(), intake.Meta)
		assert.Equal(t, []string{"ns/x"}, listed(found))
		assert.True(t, ok)
		_, ok = streams.List(sim.Resource("as"), "ns", labels.Everything(), intake.All)
		assert.False(t, ok)
		s.Create("as", sim.Thing("y", "bad", "yes"))
		synctest.Wait()
		_, ok = streams.List(sim.Resource("as"), "ns", labels.Everything(), intake.Meta)
		assert.False(t, ok, "one does not decode, and may have any label")
		_, ok = streams.List(sim.Resource("as"), "other", labels.Everything(), intake.Meta)
		assert.True(t, ok)
	})
}

func TestG5ALookupDoesNotTellWhatAStreamOfAnotherFormHasShownToBeOld(t *testing.T) {
	inTyped(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "in", "yes"))
		whole := sim.Query("A", "as")
		watching(t, streams, collect.Options{}, whole)
		synctest.Wait()
		first := lookedUp(streams, intake.All)
		s.Late(time.Hour)
		s.Touch("as", "x", 1)
		assert.Equal(t, first, lookedUp(streams, intake.All), "nobody has heard of it")
		watching(t, streams, collect.Options{}, typedQuery()) // its list is new
		synctest.Wait()
		assert.NotEqual(t, first, lookedUp(streams, intake.Known))
		assert.Equal(t, "unknown", lookedUp(streams, intake.All))
		s.Remove("as", "x")
		short := sim.Query("A", "as")
		short.Form = object.Metadata
		watching(t, streams, collect.Options{}, short)
		synctest.Wait()
		assert.Equal(t, []string{"none", "none"}, []string{lookedUp(streams, intake.All), lookedUp(streams, intake.Known)})
	})
}

// TestG5ALookupIsNoOlderThanWhatAStreamHasShownThatGaveUpOwnWrites: the other stream is late.
func TestG5ALookupIsNoOlderThanWhatAStreamHasShownThatGaveUpOwnWrites(t *testing.T) {
	sim.Bubble(t, stream.Config{PendingMax: 2}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		late := sim.Query("A", "as")
		late.Namespace = "ns"
		require.True(t, signalled(watching(t, streams, collect.Options{}, late)))
		s.Late(time.Hour)
		s.Touch("as", "x", 1)
		require.True(t, signalled(watching(t, streams, collect.Options{}, sim.Query("A", "as"))))
		require.Equal(t, "102", lookedUp(streams, intake.All), "as the list of all namespaces has it")
		o := sim.NewClient(s, streams)
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return time.Minute }
		s.Mu.Unlock()
		for _, name := range []string{"a", "b", "c"} { // one more than may be pending
			o.Put("as", sim.In("n2", name), 0)
		}
		assert.Equal(t, "unknown", lookedUp(streams, intake.All))
	})
}
