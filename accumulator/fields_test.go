package accumulator

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// readsNode makes a query's resource one whose objects are selected by the fields that it lists.
func readsNode(q query.Query, known ...string) query.Query {
	q.Resolve = func(context.Context) (object.Resource, error) {
		r := sim.Resource("as")
		r.Field = func(o object.Object, field string) (string, bool) {
			for _, f := range known {
				if f == field {
					v, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "node")
					return v, true
				}
			}
			return "", false
		}
		return r, nil
	}
	return q
}

func onNode(node string) *unstructured.Unstructured {
	u := sim.Thing("x")
	u.SetUID("x")
	_ = unstructured.SetNestedField(u.Object, node, "spec", "node")
	return u
}

func selecting(t *testing.T, text string) query.Query {
	t.Helper()
	q := sim.Query("A", "as")
	var terms []fields.Selector // in the order of the text, which a parser would sort
	for _, term := range strings.Split(text, ",") {
		f, err := fields.ParseSelector(term)
		require.NoError(t, err)
		terms = append(terms, f)
	}
	q.Fields = fields.AndSelectors(terms...)
	return q
}

func TestG4AnOwnWriteMovesAnObjectByAFieldWithoutAList(t *testing.T) {
	for selector, in := range map[string]func(node string) bool{
		"spec.node=n1":                  func(node string) bool { return node == "n1" },
		"spec.node!=n1":                 func(node string) bool { return node != "n1" },
		"spec.node=":                    func(node string) bool { return node == "" },
		"spec.node=n1,metadata.name=x":  func(node string) bool { return node == "n1" },
		"spec.node=n1,metadata.name!=x": func(string) bool { return false },
	} {
		t.Run(selector, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				a := watching(t, streams, collect.Options{}, readsNode(selecting(t, selector), "spec.node"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				s.Late(time.Minute)
				before, o := s.Requests("as"), sim.NewClient(s, streams)
				for _, node := range []string{"n1", "n2", "n1", "", "n2", "n1", "n1"} {
					o.Put("as", onNode(node), 0)
					update(t, a, &snap)
					require.Len(t, snap.A, map[bool]int{true: 1, false: 0}[in(node)], "node %q", node)
				}
				assert.Equal(t, before, s.Requests("as"), "no list")
				shown := len(snap.A)
				sim.After(10 * time.Minute)
				synctest.Wait()
				assert.False(t, update(t, a, &snap).Changed, "the late watch takes nothing back")
				assert.Len(t, snap.A, shown)
				assert.Zero(t, a.Status()[0].Pending)
			})
		})
	}
}

func TestG4AFieldThatCannotBeReadIsSettledByOneListUnlessSomethingElseDecides(t *testing.T) {
	for selector, want := range map[string]struct{ in, lists int }{
		"spec.node=n1":                        {1, 1},
		"spec.node=n2":                        {0, 1},
		"spec.node=n1,metadata.name=x":        {1, 1},
		"spec.node=n1,metadata.name=y":        {0, 0}, // whatever the node
		"spec.node=n1,metadata.namespace=ns":  {1, 1},
		"spec.node=n1,metadata.namespace!=ns": {0, 0},
	} {
		t.Run(selector, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				a := watching(t, streams, collect.Options{}, readsNode(selecting(t, selector), "spec.other"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				s.Late(time.Minute)
				before := s.Requests("as")
				sim.NewClient(s, streams).Put("as", onNode("n1"), 0)
				update(t, a, &snap)
				assert.Len(t, snap.A, want.in)
				assert.Equal(t, want.lists, s.Requests("as")-before)
			})
		})
	}
}

func TestTheServerIsNotCorrectedByWhatFieldsReadHere(t *testing.T) {
	q := selecting(t, "spec.node=n1")
	q.Resolve = func(context.Context) (object.Resource, error) {
		r := sim.Resource("as")
		r.Field = func(object.Object, string) (string, bool) { return "wrong", true }
		return r, nil
	}
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", onNode("n1"))
		a := watching(t, streams, collect.Options{}, q)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 1, "from a list")
		s.Touch("as", "x", 1)
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 1, "from an event")
	})
}
