package accumulator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
)

var xKey = Key{Namespace: "ns", Name: "x"}

// lookedUp returns the result of a look-up: a version, "none" or "unknown".
func lookedUp(streams *stream.Set, part stream.Part) string {
	switch o, known := streams.Lookup(simResource("as"), xKey, part); {
	case !known:
		return "unknown"
	case o == nil:
		return "none"
	default:
		return o.GetResourceVersion()
	}
}

func TestG4ALookupTellsPresenceAndAbsenceFromARunningStreamAndOwnWrites(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		assert.Equal(t, "unknown", lookedUp(streams, stream.All), "nothing watches it")
		in := simQuery("A", "as")
		in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		watching(t, streams, Options{}, in)
		synctest.Wait()
		assert.Equal(t, "unknown", lookedUp(streams, stream.All), "it may be out of the selector")
		watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		assert.Equal(t, "none", lookedUp(streams, stream.All))

		o := own{s, streams}
		o.late(60 * second)
		o.put("as", thing("x", "in", "no"), 0)
		first := lookedUp(streams, stream.All)
		assert.NotContains(t, []string{"none", "unknown"}, first, "an own write that no watch has brought")
		o.put("as", thing("x", "in", "yes"), 0)
		assert.NotEqual(t, first, lookedUp(streams, stream.All))
		o.delete("as", "x", 0, true)
		assert.Equal(t, "none", lookedUp(streams, stream.All))
		other := simResource("as")
		other.Version = "v2"
		_, known := streams.Lookup(other, xKey, stream.All)
		assert.False(t, known, "in another form")
	})
}

func TestG5ALookupGoesByTheStreamThatHasComeFurthest(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "in", "yes"))
		in := simQuery("A", "as")
		in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		watching(t, streams, Options{}, in)
		synctest.Wait()
		s.late(time.Hour)
		s.remove("as", "x")
		assert.NotEqual(t, "none", lookedUp(streams, stream.All), "nobody has heard of it")
		watching(t, streams, Options{}, simQuery("A", "as")) // its list is new
		synctest.Wait()
		assert.Equal(t, "none", lookedUp(streams, stream.All), "the one that is behind does not count")
		s.create("as", thing("x", "in", "yes"))
		assert.Equal(t, "none", lookedUp(streams, stream.All))
	})
}

func TestALookupGoesByStreamsThatHoldWhatIsAskedFor(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "in", "yes"))
		changed := simQuery("A", "as")
		changed.Transform = func(o Object) error { o.SetLabels(nil); return nil }
		watching(t, streams, Options{}, changed)
		synctest.Wait()
		assert.Equal(t, []string{"unknown", "unknown", "101"}, []string{lookedUp(streams, stream.All), lookedUp(streams, stream.Meta), lookedUp(streams, stream.Version)})
		short := simQuery("A", "as")
		short.Form = Metadata
		watching(t, streams, Options{}, short)
		synctest.Wait()
		assert.Equal(t, []string{"unknown", "101", "101"}, []string{lookedUp(streams, stream.All), lookedUp(streams, stream.Meta), lookedUp(streams, stream.Version)})
	})
}

func TestAListOfARunningStreamIsAllOfItOrNothing(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", in("n1", "x", "app", "a"))
		s.create("as", in("n1", "y", "app", "b"))
		s.create("as", in("n2", "z", "app", "a"))
		of := func(namespace string, selector labels.Selector) []string {
			found, ok := streams.List(simResource("as"), namespace, selector, stream.Meta)
			if !ok {
				return []string{"unknown"}
			}
			return listed(found)
		}
		app := labels.SelectorFromSet(labels.Set{"app": "a"})
		assert.Equal(t, []string{"unknown"}, of("", app))
		one := simQuery("A", "as")
		one.Namespace = "n1"
		a := watching(t, streams, Options{}, one)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"n1/x"}, of("n1", app))
		assert.Equal(t, []string{"unknown"}, of("n2", app))
		assert.Equal(t, []string{"unknown"}, of("", app))
		b := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(b))
		assert.ElementsMatch(t, []string{"n1/x", "n2/z"}, of("", app))
		s.late(time.Hour)
		o := own{s, streams}
		o.put("as", in("n2", "own", "app", "a"), 0)
		assert.ElementsMatch(t, []string{"n2/own", "n2/z"}, of("n2", app))
	})
}

func TestALookupTellsNothingBeforeTheFirstListNorWhileOwnWritesAreGivenUp(t *testing.T) {
	bubble(t, stream.Config{PendingMax: 2}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		s.listDelay = func(string) time.Duration { return time.Second }
		told := func() []string {
			_, known := streams.Lookup(simResource("as"), Key{Namespace: "ns", Name: "none"}, stream.All)
			_, listed := streams.List(simResource("as"), "ns", labels.Everything(), stream.All)
			return []string{lookedUp(streams, stream.All), fmt.Sprint(known), fmt.Sprint(listed)}
		}
		nothing := []string{"unknown", "false", "false"}
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		assert.Equal(t, nothing, told(), "the list is on its way")
		after(2 * time.Second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"101", "true", "true"}, told())
		o := own{s, streams}
		o.late(60 * second)
		for _, name := range []string{"x", "b", "c"} {
			o.put("as", thing(name), 0)
		}
		assert.Equal(t, nothing, told(), "what is stored is older than the write")
		after(2 * time.Minute) // a new list
		assert.Equal(t, "true", told()[1])
		assert.NotEqual(t, "unknown", told()[0])
	})
}

func TestATypedStreamTellsWhatItsGoTypeKnowsAndThatThereIsNothingButNotAllOfAnObject(t *testing.T) {
	parts := []stream.Part{stream.All, stream.Known, stream.Meta, stream.Version}
	told := func(streams *stream.Set) (all []string) {
		for _, part := range parts {
			all = append(all, lookedUp(streams, part))
		}
		return all
	}
	inTyped(t, func(t *testing.T, s *sim, streams *stream.Set) {
		acc := watching(t, streams, Options{}, typedQuery())
		synctest.Wait()
		assert.Equal(t, []string{"none", "none", "none", "none"}, told(streams))
		s.create("as", thing("x"))
		synctest.Wait()
		_, version := update(t, acc, &things{}), lookedUp(streams, stream.Version)
		assert.Equal(t, []string{"unknown", version, version, version}, told(streams))
		found, ok := streams.List(simResource("as"), "ns", labels.Everything(), stream.Meta)
		assert.Equal(t, []string{"ns/x"}, listed(found))
		assert.True(t, ok)
		_, ok = streams.List(simResource("as"), "ns", labels.Everything(), stream.All)
		assert.False(t, ok)
		s.create("as", thing("y", "bad", "yes"))
		synctest.Wait()
		_, ok = streams.List(simResource("as"), "ns", labels.Everything(), stream.Meta)
		assert.False(t, ok, "one does not decode, and may have any label")
		_, ok = streams.List(simResource("as"), "other", labels.Everything(), stream.Meta)
		assert.True(t, ok)
	})
}

func TestG5ALookupDoesNotTellWhatAStreamOfAnotherFormHasShownToBeOld(t *testing.T) {
	inTyped(t, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "in", "yes"))
		whole := simQuery("A", "as")
		watching(t, streams, Options{}, whole)
		synctest.Wait()
		first := lookedUp(streams, stream.All)
		s.late(time.Hour)
		s.touch("as", "x", 1)
		assert.Equal(t, first, lookedUp(streams, stream.All), "nobody has heard of it")
		watching(t, streams, Options{}, typedQuery()) // its list is new
		synctest.Wait()
		assert.NotEqual(t, first, lookedUp(streams, stream.Known))
		assert.Equal(t, "unknown", lookedUp(streams, stream.All))
		s.remove("as", "x")
		short := simQuery("A", "as")
		short.Form = Metadata
		watching(t, streams, Options{}, short)
		synctest.Wait()
		assert.Equal(t, []string{"none", "none"}, []string{lookedUp(streams, stream.All), lookedUp(streams, stream.Known)})
	})
}
