package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG1AQueryWhoseObjectsNameOthersIsReplacedTogetherWithWhatTheyName replaces the query of A,
// whose objects name those of B, together with that of C.
func TestG1AQueryWhoseObjectsNameOthersIsReplacedTogetherWithWhatTheyName(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				for _, ns := range []string{"ns", "other"} {
					s.Create("as", sim.In(ns, "a-"+ns, "refs", "x-"+ns))
					s.Create("bs", sim.In(ns, "x-"+ns))
				}
				queries := append(namingQueries(), over("C", "cs", "ns"))
				queries[1].Namespaces = []string{"ns"}
				a := watching(t, streams, collect.Options{}, queries...)
				require.True(t, signalled(a))
				var snap three
				update(t, a, &snap)
				require.Equal(t, []string{"x-ns"}, sim.Names(snap.B))

				forbid(s, "ds")
				require.NoError(t, a.Replace(t.Context(), over("A", "as", "ns", "other"), sim.Query("C", "ds")))
				for n := range 3 {
					sim.After(time.Minute)
					s.Touch("bs", "x-ns", n)
					synctest.Wait()
					assert.Equal(t, []string{"~x-ns"}, told(update(t, a, &snap)), "nothing of what the new ones name")
				}
				assert.Equal(t, 2, a.Status()[0].Refs, "it is watched ahead")
				s.Mu.Lock()
				s.ListDelay = func(string) time.Duration { return 4 * second }
				s.ListAnswer = s.ListDelay
				s.Mu.Unlock()
				s.Create("as", sim.In("other", "later", "refs", "named-later"))
				s.Create("bs", sim.In("other", "named-later"))
				s.Failing(nil)
				changes := func() (all [][]string) {
					for range 120 {
						sim.After(second)
						if r := update(t, a, &snap); r.Changed {
							all = append(all, told(r))
						}
					}
					return all
				}
				assert.Equal(t, [][]string{{"+named-later", "+x-other", "+a-other", "+later"}}, changes(), "all in one snapshot")

				require.NoError(t, a.Replace(t.Context(), over("A", "as", "other")))
				assert.Equal(t, [][]string{{"-x-ns", "-a-ns"}}, changes())

				s.Create("as", sim.In("third", "a-third", "refs", "x-third"))
				s.Create("bs", sim.In("third", "x-third"))
				require.NoError(t, a.Replace(t.Context(), over("A", "as", "third")))
				assert.Equal(t, [][]string{{"-named-later", "-x-other", "+x-third", "-a-other", "-later", "+a-third"}}, changes())
				require.NoError(t, a.Replace(t.Context(), over("A", "as", "ns")))
				a.Close()
				sim.After(time.Minute)
				assert.Zero(t, streams.Len())
			})
		})
	}
}

// TestG2AQueryWhoseObjectsNameOthersIsReplacedWithASignal: its streams run already, and say that
// they are complete before the query is there that waits for them.
func TestG2AQueryWhoseObjectsNameOthersIsReplacedWithASignal(t *testing.T) {
	var s *sim.Server
	config := stream.Config{Source: func(r object.Resource, namespace string, form object.Form) source.Source {
		if r.Resource == "cs" && namespace != "" {
			sim.After(time.Second) // A is complete by then, and does not wait yet
		}
		return sim.Plain(s.Source)(r, namespace, form)
	}}
	sim.Bubble(t, config, func(t *testing.T, server *sim.Server, streams *streamset.Set) {
		s = server
		for _, ns := range []string{"ns", "other"} {
			s.Create("as", sim.In(ns, "a-"+ns, "refs", "x-"+ns))
			s.Create("bs", sim.In(ns, "x-"+ns))
		}
		queries := append(namingQueries(), sim.Query("C", "cs"))
		queries[1].Namespaces = []string{"ns", "other"}
		a := watching(t, streams, collect.Options{}, queries...)
		require.True(t, signalled(a))
		var snap three
		update(t, a, &snap)
		require.Len(t, snap.B, 2)
		sim.After(time.Minute)

		require.NoError(t, a.Replace(t.Context(), over("A", "as", "ns"), over("C", "cs", "ns")))
		require.True(t, signalled(a))
		update(t, a, &snap)
		assert.Equal(t, []string{"x-ns"}, sim.Names(snap.B))
	})
}
