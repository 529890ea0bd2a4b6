package kates_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// given is the query that a change of a name would get.
func given(t *testing.T, w changing, name string) (is kates.Query) {
	t.Helper()
	err := w.Change(t.Context(), name, func(q *kates.Query) {
		is = *q
		q.Name = "" // refuses the change
	})
	require.ErrorContains(t, err, `query "`+name+`": the function has changed its name to ""`)
	return is
}

// in moves a query to namespaces.
func in(namespaces ...string) func(*kates.Query) {
	return func(q *kates.Query) { q.Namespace, q.Namespaces = "", namespaces }
}

func TestAChangeOfTheNamespaceKeepsTheSignalAndTheWhere(t *testing.T) {
	type snapshot struct{ Services []*kates.Service }
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithObjects(service("a", "x"), service("b", "x"), service("b", "out")))
		w, err := kates.Watch[snapshot](t.Context(), fake.Client, kates.Query{
			Name: "Services", Namespace: "a", Signal: kates.LabelsChanged,
			Where: kates.WhereOf(func(o metav1.Object) (bool, error) { return o.GetName() != "out", nil }),
		})
		require.NoError(t, err)
		var snap snapshot
		next(t, w, &snap, func() bool { return len(snap.Services) == 1 })
		require.NoError(t, w.Change(t.Context(), "Services", in("b")))
		next(t, w, &snap, func() bool { return snap.Services[0].Namespace == "b" })
		assert.Len(t, snap.Services, 1, "the Where leaves the other one out")

		signals := func(change func(*kates.Service)) int {
			s := service("b", "x")
			change(s)
			_, err := kates.Modify(t.Context(), fake.Client, s, func(o *kates.Service) error { change(o); return nil })
			require.NoError(t, err)
			time.Sleep(time.Minute)
			synctest.Wait()
			return len(w.Changed())
		}
		for len(w.Changed()) > 0 {
			<-w.Changed()
		}
		assert.Zero(t, signals(func(s *kates.Service) { s.Spec.ClusterIP = "10.0.0.1" }), "the Signal is there")
		assert.Equal(t, 1, signals(func(s *kates.Service) { s.Labels = map[string]string{"a": "b"} }))
	})
}

func TestAChangeOfTheNamespaceKeepsTheKeyOfPartitions(t *testing.T) {
	type snapshot struct{ Services []*kates.Service }
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithObjects(service("a", "x"), service("b", "y"), service("b", "z")))
		p, err := kates.WatchEach[snapshot](t.Context(), fake.Client, kates.Query{Name: "Services", Namespace: "a", Key: kates.ByName})
		require.NoError(t, err)
		turns := func() (all []string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for {
				turn, err := p.Next(ctx)
				if err != nil {
					return all
				}
				all = append(all, fmt.Sprint(turn.Key, len(turn.Snapshot.Services)))
				turn.Done(nil)
			}
		}
		assert.Equal(t, []string{"x1"}, turns())
		require.NoError(t, p.Change(t.Context(), "Services", in("b")))
		assert.ElementsMatch(t, []string{"x0", "y1", "z1"}, turns())
	})
}

func TestAChangeGetsTheQueryAsItWasGivenLast(t *testing.T) {
	namespaces := []string{"a", "b"}
	where := kates.WhereOf(func(metav1.Object) (bool, error) { return true, nil })
	first := kates.Query{
		Name: "Services", Namespaces: namespaces, LabelSelector: "!none", AnyOf: []kates.Selection{{LabelSelector: "!never"}},
		Key: kates.ByName, Signal: kates.LabelsChanged, Where: where, Optional: true,
	}
	inEachWatch[comes](t, nil, first, func(t *testing.T, w changing) {
		assert.Equal(t, first, given(t, w, "Services"))
		require.NoError(t, w.Change(t.Context(), "Services", func(q *kates.Query) { q.Namespaces = append(q.Namespaces, "c") }))
		changed := first
		changed.Namespaces = []string{"a", "b", "c"}
		assert.Equal(t, changed, given(t, w, "Services"))

		replaced := kates.Query{Name: "Services", Namespace: "z", Key: kates.ByName}
		require.NoError(t, w.Replace(t.Context(), replaced))
		assert.Equal(t, replaced, given(t, w, "Services"))

		added := kates.Query{Name: "Any", Kind: "pods", Namespaces: []string{"a"}}
		require.NoError(t, w.Add(t.Context(), added, kates.Query{Name: "Maps"}))
		assert.Equal(t, added, given(t, w, "Any"))
		added.Namespaces[0] = "else"
		assert.Equal(t, []string{"a"}, given(t, w, "Any").Namespaces, "the program's own list is another one")
		require.NoError(t, w.Change(t.Context(), "Any", in("b")))
		require.NoError(t, w.Remove(t.Context(), "Any"))
		assert.ErrorContains(t, w.Change(t.Context(), "Any", in("b")), `query "Any": there is no query of that name`)
		require.NoError(t, w.Add(t.Context(), kates.Query{Name: "Any", Kind: "secrets"}))
		assert.Equal(t, kates.Query{Name: "Any", Kind: "secrets"}, given(t, w, "Any"), "what was removed is forgotten")
	})
	assert.Equal(t, []string{"a", "b"}, namespaces)
}

func TestAChangeOfAFieldWithoutAQueryGetsItsName(t *testing.T) {
	type snapshot struct {
		Services []*kates.Service
		Pods     []*kates.Unstructured `kates:"pods"`
	}
	inEachWatch[snapshot](t, nil, kates.Query{Name: "Services", Key: kates.ByName}, func(t *testing.T, w changing) {
		assert.Equal(t, kates.Query{Name: "Pods"}, given(t, w, "Pods"))
		require.NoError(t, w.Change(t.Context(), "Pods", in("a")), "the tag still says the kind")
		assert.Equal(t, kates.Query{Name: "Pods", Namespaces: []string{"a"}}, given(t, w, "Pods"))
	})
}

func TestAChangeThatIsRefusedChangesNothing(t *testing.T) {
	first := kates.Query{Name: "Services", Namespaces: []string{"a"}, Key: kates.ByName}
	inEachWatch[comes](t, nil, first, func(t *testing.T, w changing) {
		change := func(f func(*kates.Query)) error { return w.Change(t.Context(), "Services", f) }
		err := change(func(q *kates.Query) {
			q.Namespaces[0] = "b"
			panic("oh no")
		})
		var panicked *kates.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.Equal(t, "oh no", panicked.Value)
		assert.ErrorContains(t, err, `change: query "Services": the function that changes it panicked: oh no`)
		assert.Equal(t, first, given(t, w, "Services"))

		assert.ErrorContains(t, change(func(q *kates.Query) { q.Kind = "pods" }), "its type")
		assert.ErrorContains(t, change(func(q *kates.Query) { q.LabelSelector = "a in" }), "label selector")
		assert.ErrorContains(t, change(nil), "is nil")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, w.Change(ended, "Services", in("c")), context.Canceled)
		assert.Equal(t, first, given(t, w, "Services"))
		require.NoError(t, change(in("d")))
		assert.Equal(t, []string{"d"}, given(t, w, "Services").Namespaces)
	})
}

func TestAChangeOfAnUnknownQueryIsTheErrorOfReplace(t *testing.T) {
	inEachWatch[comes](t, nil, kates.Query{Name: "Services", Key: kates.ByName}, func(t *testing.T, w changing) {
		for _, name := range []string{"Maps", "Never", "Nothing", ""} {
			replaced := w.Replace(t.Context(), kates.Query{Name: name})
			err := w.Change(t.Context(), name, func(*kates.Query) { t.Error("it is called") })
			assert.EqualError(t, err, strings.Replace(replaced.Error(), "replace:", "change:", 1), "%q", name)
		}
	})
	acc, err := katestest.NewClient(t).Watch(t.Context(), kates.Query{Name: "Services", Kind: "services"})
	require.NoError(t, err)
	assert.EqualError(t, acc.Change(t.Context(), "Pods", in("a")), `change: query "Pods": there is no query of that name`)
	require.NoError(t, acc.Change(t.Context(), "Services", in("a")))
	assert.Equal(t, kates.Query{Name: "Services", Kind: "services", Namespaces: []string{"a"}}, given(t, acc, "Services"))
	acc.Close()
	assert.ErrorIs(t, acc.Change(t.Context(), "Services", in("a")), kates.ErrClosed)
}

func TestOfChangesAtATimeNoneIsLost(t *testing.T) {
	inEachWatch[comes](t, nil, kates.Query{Name: "Services", Namespaces: []string{}, Key: kates.ByName}, func(t *testing.T, w changing) {
		var all sync.WaitGroup
		var want []string
		for i := range 20 {
			namespace := fmt.Sprintf("n%02d", i)
			want = append(want, namespace)
			all.Go(func() {
				err := w.Change(t.Context(), "Services", func(q *kates.Query) {
					time.Sleep(time.Second) // all of them have begun
					q.Namespaces = append(q.Namespaces, namespace)
				})
				assert.NoError(t, err)
			})
		}
		all.Wait()
		got := given(t, w, "Services").Namespaces
		slices.Sort(got)
		assert.Equal(t, want, got)
	})
}

func TestAChangeThatAnotherOvertakesIsMadeOfItsResult(t *testing.T) {
	first := kates.Query{Name: "Services", Namespaces: []string{"a"}, Key: kates.ByName}
	inEachWatch[comes](t, nil, first, func(t *testing.T, w changing) {
		var before [][]string
		err := w.Change(t.Context(), "Services", func(q *kates.Query) {
			if before = append(before, q.Namespaces); len(before) == 1 {
				assert.NoError(t, w.Replace(t.Context(), kates.Query{Name: "Services", Namespaces: []string{"b"}, Key: kates.ByName}))
			}
			q.LabelSelector = "!none"
		})
		require.NoError(t, err)
		assert.Equal(t, [][]string{{"a"}, {"b"}}, before)
		is := given(t, w, "Services")
		assert.Equal(t, []string{"b"}, is.Namespaces)
		assert.Equal(t, "!none", is.LabelSelector)

		require.NoError(t, w.Add(t.Context(), kates.Query{Name: "Maps"}))
		calls := 0
		err = w.Change(t.Context(), "Maps", func(*kates.Query) {
			calls++
			assert.NoError(t, w.Remove(t.Context(), "Maps"))
		})
		assert.ErrorContains(t, err, `query "Maps": there is no query of that name`)
		assert.Equal(t, 1, calls)
		ctx, cancel := context.WithCancel(t.Context())
		err = w.Change(ctx, "Services", func(q *kates.Query) {
			cancel()
			assert.NoError(t, w.Change(t.Context(), "Services", in("c")))
			q.LabelSelector = ""
		})
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, []string{"c"}, given(t, w, "Services").Namespaces)
	})
}
