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

	"github.com/kates-go/kates/accumulator/stream"
)

// readsNode makes a query's resource one whose objects are selected by the fields that it lists.
func readsNode(q Query, known ...string) Query {
	q.Resolve = func(context.Context) (Resource, error) {
		r := simResource("as")
		r.Field = func(o Object, field string) (string, bool) {
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
	u := thing("x")
	u.SetUID("x")
	_ = unstructured.SetNestedField(u.Object, node, "spec", "node")
	return u
}

func selecting(t *testing.T, text string) Query {
	t.Helper()
	q := simQuery("A", "as")
	var terms []fields.Selector // in the order of the text, which a parser would sort
	for _, term := range strings.Split(text, ",") {
		f, err := fields.ParseSelector(term)
		require.NoError(t, err)
		terms = append(terms, f)
	}
	q.Fields = fields.AndSelectors(terms...)
	return q
}

// requests counts all lists of the resource, including those of one object.
func (s *sim) requests(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[resource] + s.probes[resource]
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
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				a := watching(t, streams, Options{}, readsNode(selecting(t, selector), "spec.node"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				s.late(time.Minute)
				before, o := s.requests("as"), own{s, streams}
				for _, node := range []string{"n1", "n2", "n1", "", "n2", "n1", "n1"} {
					o.put("as", onNode(node), 0)
					update(t, a, &snap)
					require.Len(t, snap.A, map[bool]int{true: 1, false: 0}[in(node)], "node %q", node)
				}
				assert.Equal(t, before, s.requests("as"), "no list")
				shown := len(snap.A)
				after(10 * time.Minute)
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
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				a := watching(t, streams, Options{}, readsNode(selecting(t, selector), "spec.other"))
				var snap one
				synctest.Wait()
				update(t, a, &snap)
				s.late(time.Minute)
				before := s.requests("as")
				own{s, streams}.put("as", onNode("n1"), 0)
				update(t, a, &snap)
				assert.Len(t, snap.A, want.in)
				assert.Equal(t, want.lists, s.requests("as")-before)
			})
		})
	}
}

func TestTheServerIsNotCorrectedByWhatFieldsReadHere(t *testing.T) {
	q := selecting(t, "spec.node=n1")
	q.Resolve = func(context.Context) (Resource, error) {
		r := simResource("as")
		r.Field = func(Object, string) (string, bool) { return "wrong", true }
		return r, nil
	}
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", onNode("n1"))
		a := watching(t, streams, Options{}, q)
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 1, "from a list")
		s.touch("as", "x", 1)
		synctest.Wait()
		update(t, a, &snap)
		require.Len(t, snap.A, 1, "from an event")
	})
}

func TestOnAFakeFieldsAreReadAsTheServerWouldAndOthersByTheirPath(t *testing.T) {
	r := Resource{Field: func(_ Object, field string) (string, bool) { return "from here", field == "spec.node" }}
	for text, want := range map[string]bool{
		"spec.node=from here": true, "spec.node=n1": false, "spec.other=": true, "spec.node!=n1,spec.other=x": false,
	} {
		f, err := fields.ParseSelector(text)
		require.NoError(t, err)
		assert.Equal(t, want, stream.Selects(r, Selection{Fields: f}, onNode("n1")), text)
	}
}
