package accumulator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// shapesOfQueries are queries of the kind as, whose objects are in the namespace that sim uses.
func shapesOfQueries() map[string]query.Query {
	label := func(text string) object.Selection {
		s, _ := labels.Parse(text)
		return object.Selection{Labels: s}
	}
	all := map[string]query.Query{}
	add := func(name string, change func(*query.Query)) {
		q := sim.Query("A", "as")
		q.Optional = true
		change(&q)
		all[name] = q
	}
	add("of all", func(*query.Query) {})
	add("of several namespaces", func(q *query.Query) { q.Namespaces = []string{"n1", "n2"} })
	add("of any of two selections", func(q *query.Query) { q.AnyOf = []object.Selection{label("a"), label("!a")} })
	return all
}

// lacks is what a server answers whose resource as has not a verb.
func lacks(verb string) func(string, string) error {
	return func(asked, resource string) error {
		if resource == "as" && (asked == verb || verb == "") {
			return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: resource}, asked)
		}
		return nil
	}
}

func TestG8AnOptionalKindThatTurnsOutToBeUnwatchableHoldsNothingUp(t *testing.T) {
	for name, q := range shapesOfQueries() {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{KindPoll: time.Second}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				var answer atomic.Pointer[error]
				says := func(err error) { answer.Store(&err) }
				says(errors.New("discovery is incomplete"))
				q.Resolve = func(context.Context) (object.Resource, error) { return sim.Resource("as"), *answer.Load() }
				s.Create("as", sim.In("n1", "x"))
				s.Create("bs", sim.Thing("y"))
				a := watching(t, streams, collect.Options{}, q, sim.Query("B", "bs"))
				sim.After(time.Minute)
				require.Error(t, a.Ready(), "nobody knows whether there are such objects")

				says(fmt.Errorf("%w: as cannot be watched: it has only create", query.ErrUnfit))
				sim.After(time.Minute)
				require.True(t, signalled(a))
				var snap two
				require.True(t, update(t, a, &snap).Complete)
				assert.Nil(t, snap.A)
				assert.Equal(t, []string{"y"}, sim.Names(snap.B))
				require.NoError(t, a.Ready())
				assert.Contains(t, a.Status()[0].Error, "it has only create")

				says(nil)
				sim.After(time.Minute)
				update(t, a, &snap)
				assert.Equal(t, []string{"x"}, sim.Names(snap.A), "it can be watched now")
				says(fmt.Errorf("%w: as cannot be watched: it has only create", query.ErrUnfit))
				s.Failing(lacks(""))
				s.Cut()
				sim.After(time.Minute)
				assert.False(t, update(t, a, &snap).Changed, "what was shown stays")
				assert.Equal(t, []string{"x"}, sim.Names(snap.A))
				assert.Contains(t, a.Status()[0].Error, "it has only create", "the kind is looked up again")
				assert.NoError(t, a.Ready())
			})
		})
	}
}

func TestG8AnOptionalKindWithoutListsHoldsNothingUpWhateverDiscoverySays(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		for name, q := range shapesOfQueries() {
			t.Run(fmt.Sprintf("%s, streamed lists: %t", name, streamed), func(t *testing.T) {
				sim.Bubble(t, stream.Config{StreamLists: streamed}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
					s.Create("as", sim.In("n1", "x"))
					s.Create("bs", sim.Thing("y"))
					s.Failing(lacks(""))
					a := watching(t, streams, collect.Options{}, q, sim.Query("B", "bs"))
					required := q
					required.Optional = false
					strict := watching(t, streams, collect.Options{}, required)
					sim.After(time.Minute)
					require.True(t, signalled(a))
					var snap two
					require.True(t, update(t, a, &snap).Complete)
					assert.Nil(t, snap.A)
					assert.Equal(t, []string{"y"}, sim.Names(snap.B))
					assert.True(t, a.Status()[0].Absent)
					assert.Contains(t, a.Status()[0].Error, "not supported")
					require.Error(t, strict.Ready(), "a required kind is waited for")

					s.Failing(nil)
					sim.After(time.Minute)
					update(t, a, &snap)
					assert.Equal(t, []string{"x"}, sim.Names(snap.A))
					assert.NoError(t, strict.Ready())
				})
			})
		}
	}
}

func TestG8AKindThatIsListedAndNotWatchedIsShownAsItsListsAre(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprintf("streamed lists: %t", streamed), func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: streamed}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				s.Failing(lacks("watch"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				sim.After(time.Minute)
				var snap one
				require.True(t, update(t, a, &snap).Complete)
				assert.Equal(t, []string{"x"}, sim.Names(snap.A))
				assert.Contains(t, a.Status()[0].Error, "not supported")
				s.Create("as", sim.Thing("z"))
				sim.After(2 * time.Minute)
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "z"}, sim.Names(snap.A), "the next list has it")
				assert.Less(t, s.Requests("as"), 40, "pauses grow")
			})
		})
	}
}
