package kates_test

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// comes is a snapshot with fields whose queries come while the watch runs.
type comes struct {
	Services []*kates.Service
	Common
	Any      []*kates.Unstructured `kates:",later"`         // a Query says the kind
	Unserved []map[string]any      `kates:"unserved,later"` // nothing is asked at first
	Maybe    []map[string]any      `kates:"maybe,optional,later"`
	Never    []*kates.Secret       `kates:"-"`
	Hidden   `kates:"-"`
}

type Common struct {
	Maps map[string]*kates.ConfigMap `kates:",later"`
}

type Hidden struct{ Pods []*kates.Pod }

// changing is what a program changes the queries of a watch with.
type changing interface {
	Add(ctx context.Context, queries ...kates.Query) error
	Remove(ctx context.Context, names ...string) error
	Replace(ctx context.Context, queries ...kates.Query) error
	Change(ctx context.Context, name string, change func(*kates.Query)) error
	Status() kates.Status
}

// inEachWatch runs a test with each kind of watch, of the struct S. first is the query of its first
// snapshot.
func inEachWatch[S any](t *testing.T, objects []kates.Object, first kates.Query, test func(t *testing.T, w changing)) {
	watches := map[string]func(t *testing.T, c *kates.Client, h *kates.Handle) (changing, error){
		"Watch": func(t *testing.T, c *kates.Client, _ *kates.Handle) (changing, error) {
			return kates.Watch[S](t.Context(), c, first)
		},
		"WatchStruct": func(t *testing.T, c *kates.Client, _ *kates.Handle) (changing, error) {
			return c.WatchStruct(t.Context(), reflect.TypeFor[S](), first)
		},
		"WatchEach": func(t *testing.T, c *kates.Client, _ *kates.Handle) (changing, error) {
			return kates.WatchEach[S](t.Context(), c, first)
		},
		"Run": func(t *testing.T, c *kates.Client, h *kates.Handle) (changing, error) {
			go func() { _ = kates.Run(t.Context(), c, func(context.Context, *S) error { return nil }, h, first) }()
			return h, nil
		},
		"RunEach": func(t *testing.T, c *kates.Client, h *kates.Handle) (changing, error) {
			go func() {
				_ = kates.RunEach(t.Context(), c, func(context.Context, string, *S) error { return nil }, h, first)
			}()
			return h, nil
		},
	}
	for name, start := range watches {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithObjects(objects...))
				w, err := start(t, fake.Client, new(kates.Handle))
				require.NoError(t, err)
				synctest.Wait()
				test(t, w)
			})
		})
	}
}

// queriesOf are the names of the queries that run.
func queriesOf(w changing) (names []string) {
	for _, q := range w.Status().Queries {
		names = append(names, q.Name)
	}
	return names
}

func TestAFieldWhoseTagSaysLaterHasAQueryFromItsAddOn(t *testing.T) {
	first := kates.Query{Name: "Services", Key: kates.ByName}
	inEachWatch[comes](t, []kates.Object{service("a", "x")}, first, func(t *testing.T, w changing) {
		add := func(q kates.Query) error { return w.Add(t.Context(), q) }
		require.Equal(t, []string{"Services"}, queriesOf(w))
		require.NoError(t, add(kates.Query{Name: "Maps"}), "the type says the kind")
		require.NoError(t, add(kates.Query{Name: "Any", Kind: "pods"}), "the query says the kind")
		require.NoError(t, add(kates.Query{Name: "Maybe"}), "the tag says that it is optional")
		assert.Equal(t, []string{"Services", "Maps", "Any", "Maybe"}, queriesOf(w))
		assert.ErrorContains(t, add(kates.Query{Name: "Maps"}), "already")
		assert.ErrorContains(t, add(kates.Query{Name: "Unserved"}), `"unserved"`, "the tag says the kind")

		require.NoError(t, w.Remove(t.Context(), "Maps", "Any"))
		assert.ErrorContains(t, add(kates.Query{Name: "Maps", Kind: "pods"}), "ConfigMap", "the type still counts")
		assert.ErrorContains(t, add(kates.Query{Name: "Any"}), "says a kind")
		require.NoError(t, add(kates.Query{Name: "Maps", Namespace: "a"}))
		require.NoError(t, w.Add(t.Context(), kates.Query{Name: "Any", Kind: "secrets"}))
		assert.Len(t, queriesOf(w), 4)
	})
}

func TestWhatComesLaterIsShownWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &kates.ConfigMap{}
		m.Namespace, m.Name = "a", "m"
		fake := katestest.New(t, katestest.WithObjects(service("a", "x"), m))
		w, snap := first[comes](t, fake.Client)
		assert.Nil(t, snap.Maps)
		require.NoError(t, w.Add(t.Context(), kates.Query{Name: "Maps", Namespace: "a"}))
		next(t, w, snap, func() bool { return snap.Maps["m"] != nil })
		require.NoError(t, w.Remove(t.Context(), "Maps"))
		next(t, w, snap, func() bool { return snap.Maps == nil })
		require.NoError(t, w.Add(t.Context(), kates.Query{Name: "Maps"}))
		next(t, w, snap, func() bool { return snap.Maps["a/m"] != nil })
	})
}

func TestAFieldThatIsNoQueryNeverGetsOne(t *testing.T) {
	first := kates.Query{Name: "Services", Key: kates.ByName}
	inEachWatch[comes](t, nil, first, func(t *testing.T, w changing) {
		for name, kind := range map[string]string{"Never": "", "Pods": "", "Hidden": "pods"} {
			for _, err := range []error{
				w.Add(t.Context(), kates.Query{Name: name, Kind: kind}), w.Replace(t.Context(), kates.Query{Name: name, Kind: kind}),
			} {
				assert.ErrorContains(t, err, "query \""+name+"\": field "+name+" has the tag `kates:\"-\"`")
				assert.ErrorContains(t, err, "the tag is `kates:\",later\"`")
			}
		}
		assert.Equal(t, []string{"Services"}, queriesOf(w))
	})
	_, err := kates.Watch[comes](t.Context(), katestest.NewClient(t), kates.Query{Name: "Never"})
	assert.ErrorContains(t, err, "field Never has the tag `kates:\"-\"`, so it is never a query")
}

func TestWhatIsWrongWithAFieldThatComesLaterIsAnErrorAtOnce(t *testing.T) {
	c := katestest.NewClient(t)
	for want, err := range map[string]error{
		"field Maps: its tag says that its query comes later: give that to Add": second(kates.Watch[comes](t.Context(), c, kates.Query{Name: "Maps"})),
		"no field says what to watch at first: Maps comes later":                second(kates.Watch[Common](t.Context(), c)),
		"field X: it has type int": second(kates.Watch[struct {
			Services []*kates.Service
			X        int `kates:",later"`
		}](t.Context(), c)),
		`field X: unknown option "latter"`: second(kates.Watch[struct {
			X []*kates.Pod `kates:",latter"`
		}](t.Context(), c)),
		`field X: the option "root" is of package controller`: second(kates.Watch[struct {
			X *kates.Pod `kates:",root,later"`
		}](t.Context(), c)),
		"field x has a kates tag but is not exported": second(kates.Watch[struct {
			Services []*kates.Service
			x        []*kates.Pod `kates:",later"`
		}](t.Context(), c)),
		"field Maps: there is another one of that name": second(kates.Watch[struct {
			Common
			Maps []*kates.ConfigMap
		}](t.Context(), c)),
	} {
		assert.ErrorContains(t, err, want)
	}
	_ = struct{ x []*kates.Pod }{}.x
}
