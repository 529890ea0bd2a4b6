package kates_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// definedKind is how a custom kind of the group moved.test is definedKind.
type definedKind struct {
	scope, plural, kind, version string
	status                       bool
}

var (
	namespacedThings = definedKind{"Namespaced", "things", "Thing", "v1", true}
	globalThings     = definedKind{"Cluster", "things", "Thing", "v1", true}
)

func (s definedKind) definition() *kates.Unstructured {
	version := map[string]any{
		"name": s.version, "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true,
		}},
	}
	if s.status {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	return &kates.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": s.plural + ".moved.test"},
		"spec": map[string]any{
			"group": "moved.test", "scope": s.scope, "versions": []any{version},
			"names": map[string]any{"plural": s.plural, "kind": s.kind},
		},
	}}
}

// object is an object of the kind. Its namespace is the same, whatever the scope.
func (s definedKind) object(name string) *kates.Unstructured {
	return &kates.Unstructured{Object: map[string]any{
		"apiVersion": "moved.test/" + s.version, "kind": s.kind,
		"metadata": map[string]any{"namespace": "default", "name": name, "labels": map[string]any{"app": "a"}},
	}}
}

// key is how an object of the kind is named once it is stored.
func (s definedKind) key(name string) string {
	if s.scope == "Cluster" {
		return name
	}
	return "default/" + name
}

// moving is a server whose kind is definedKind in another way, and a client whose watches can be
// cut off.
type moving struct {
	*testing.T
	server *katestest.Server
	faults *katestest.Faults
	client *kates.Client
}

// things are the requests about the kind.
var things = katestest.Match{Where: func(r katestest.Request) bool { return strings.HasPrefix(r.Path, "/apis/moved.test/") }}

// inMotion runs a test in a bubble, with a kind and an object of it, named before.
func inMotion(t *testing.T, from definedKind, test func(m moving), options ...kates.Option) {
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t, katestest.WithObjects(namespaceNamed("other")))
		m := moving{T: t, server: server, faults: katestest.NewFaults(t, 1)}
		config := rest.CopyConfig(server.Config)
		config.Wrap(m.faults.Wrap)
		m.define(from, "before")
		var err error
		m.client, err = kates.NewClientFromRESTConfig(config, append([]kates.Option{kates.WithInterval(0)}, options...)...)
		require.NoError(t, err)
		defer m.client.Close()
		test(m)
	})
}

func namespaceNamed(name string) *kates.Namespace {
	n := &kates.Namespace{}
	n.Name = name
	return n
}

// define defines the kind, by a client of its own, and makes objects.
func (m moving) define(s definedKind, names ...string) {
	m.Helper()
	c := m.server.Client(m)
	defer c.Close()
	require.NoError(m, c.Create(m.Context(), s.definition(), nil))
	for _, name := range names {
		require.NoError(m, c.Create(m.Context(), s.object(name), nil))
	}
}

// undefine deletes the definition, and waits until that is done.
func (m moving) undefine(s definedKind) {
	m.Helper()
	c := m.server.Client(m)
	defer c.Close()
	require.NoError(m, c.Delete(m.Context(), s.definition(), nil))
	synctest.Wait()
	require.True(m, kates.IsNotFound(c.Get(m.Context(), s.definition(), nil)))
}

// first waits for the first snapshot.
func (m moving) first(acc *kates.Accumulator) {
	m.Helper()
	select {
	case <-acc.Changed():
	case <-time.After(time.Hour):
		require.Fail(m, "there is no first snapshot", "%v", acc.Status())
	}
}

// stored returns an object as the server has it, but for its namespace.
func (m moving) stored(o *kates.Unstructured) *kates.Unstructured {
	m.Helper()
	var got kates.Unstructured
	require.NoError(m, m.server.Client(m).Get(m.Context(), o, &got))
	got.SetNamespace(o.GetNamespace())
	return &got
}

// redefine has the kind served in another way. With cut, the watches are cut off meanwhile.
func (m moving) redefine(from, to definedKind, cut bool, names ...string) {
	m.Helper()
	if cut {
		m.cut()
		synctest.Wait()
	}
	m.undefine(from)
	m.define(to, names...)
	if cut {
		m.faults.Heal()
	}
}

// cut ends the watches. The server refuses the next ones.
func (m moving) cut() {
	synctest.Wait() // the watches are open
	m.faults.On(things).Status(http.StatusServiceUnavailable, "", 0)
	m.faults.Now(things).Cut(0)
}

// apply changes what is shown by deltas.
func apply(t *testing.T, shown map[string]string, deltas []*kates.Delta) {
	t.Helper()
	for _, d := range deltas {
		key := strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")
		switch d.DeltaType {
		case kates.ObjectDelete:
			require.Contains(t, shown, key)
			delete(shown, key)
		default:
			shown[key] = d.APIVersion + " " + d.Kind
		}
	}
}

// shownOf are objects by their names.
func shownOf(all []*kates.Unstructured) map[string]string {
	shown := map[string]string{}
	for _, o := range all {
		shown[strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = o.GetAPIVersion() + " " + o.GetKind()
	}
	return shown
}

// TestG5G7G8AKindThatComesBackServedOtherwiseIsShownAsItIs: neither a second Watch nor
// InvalidateCache is needed.
func TestG5G7G8AKindThatComesBackServedOtherwiseIsShownAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		kind     string
		from, to definedKind
	}{
		"in no namespace":  {"things.moved.test", namespacedThings, globalThings},
		"in namespaces":    {"things.moved.test", globalThings, namespacedThings},
		"another plural":   {"Thing.moved.test", namespacedThings, definedKind{"Namespaced", "thingies", "Thing", "v1", true}},
		"plural and scope": {"Thing.moved.test", namespacedThings, definedKind{"Cluster", "thingies", "Thing", "v1", true}},
		"another kind":     {"things.moved.test", namespacedThings, definedKind{"Namespaced", "things", "Other", "v1", true}},
		"another version":  {"things.moved.test", namespacedThings, definedKind{"Namespaced", "things", "Thing", "v2", true}},
		"all of it":        {"things.moved.test", namespacedThings, definedKind{"Cluster", "things", "Other", "v2", true}},
		"without a status": {"things.moved.test", namespacedThings, definedKind{"Namespaced", "things", "Thing", "v1", false}},
	} {
		for query, q := range map[string]kates.Query{
			"all": {}, "by label": {LabelSelector: "app=a"}, "by name": {FieldSelector: "metadata.name!=none"},
			"any of": {AnyOf: []kates.Selection{{LabelSelector: "app=a"}, {LabelSelector: "app=b"}}},
		} {
			for how, cut := range map[string]bool{"connected": false, "cut off": true} {
				t.Run(name+"/"+query+"/"+how, func(t *testing.T) {
					inMotion(t, c.from, func(m moving) { m.followed(c.kind, q, c.from, c.to, cut) })
				})
			}
		}
	}
}

// followed checks that a watch follows a kind which is definedKind in another way.
func (m moving) followed(kind string, q kates.Query, from, to definedKind, cut bool) {
	type snapshot struct{ Things []*kates.Unstructured }
	q.Name, q.Kind = "Things", kind
	acc, err := m.client.Watch(m.Context(), q)
	require.NoError(m, err)
	m.first(acc)
	var snap snapshot
	var deltas []*kates.Delta
	shown := map[string]string{}
	update := func() {
		_, err := acc.UpdateWithDeltas(m.Context(), &snap, &deltas)
		require.NoError(m, err)
		apply(m.T, shown, deltas)
		require.Equal(m, shownOf(snap.Things), shown, "G7")
	}
	update()
	require.Len(m, shown, 1)

	m.redefine(from, to, cut, "after")
	for range 60 {
		time.Sleep(time.Second)
		update()
	}
	want := map[string]string{to.key("after"): "moved.test/" + to.version + " " + to.kind}
	require.Equal(m, want, shown, "%v", acc.Status())
	st := acc.Status().Queries[0]
	assert.Equal(m, kates.StateSynced, st.State)
	assert.Zero(m, st.Lag)

	require.NoError(m, m.client.Create(m.Context(), to.object("own"), nil))
	update()
	require.Contains(m, shown, to.key("own"), "G4")
	time.Sleep(time.Hour)
	update()
	require.Len(m, shown, 2)
	assert.NoError(m, acc.Status().Err())
}

// TestG7G8WhatIsShownStaysUntilTheKindsNewWatchIsComplete: the server has forgotten the deletions,
// so only the difference tells them.
func TestG7G8WhatIsShownStaysUntilTheKindsNewWatchIsComplete(t *testing.T) {
	for _, c := range [][2]definedKind{{namespacedThings, globalThings}, {globalThings, namespacedThings}} {
		inMotion(t, c[0], func(m moving) {
			acc, err := m.client.Watch(m.Context(), kates.Query{Name: "Things", Kind: "things.moved.test"})
			require.NoError(m, err)
			m.first(acc)
			var snap struct{ Things []*kates.Unstructured }
			var deltas []*kates.Delta
			_, err = acc.UpdateWithDeltas(m.Context(), &snap, &deltas)
			require.NoError(m, err)
			m.cut()
			m.undefine(c[0])
			m.define(c[1], "after")
			m.server.Compact()
			m.faults.Heal()
			m.faults.On(things).Delay(5 * time.Second)
			for range 60 {
				time.Sleep(time.Second)
				changed, err := acc.UpdateWithDeltas(m.Context(), &snap, &deltas)
				require.NoError(m, err)
				require.Len(m, snap.Things, 1)
				if changed {
					require.Len(m, deltas, 2)
					break
				}
				require.Equal(m, "before", snap.Things[0].GetName())
			}
			require.Equal(m, []string{c[1].key("after")}, keysOf(shownOf(snap.Things)))
		})
	}
}

func TestTheStatusOfAWatchWhoseKindIsServedOtherwiseSaysSinceWhenItIsBehind(t *testing.T) {
	inMotion(t, namespacedThings, func(m moving) {
		acc, err := m.client.Watch(m.Context(), kates.Query{Name: "Things", Kind: "Thing.moved.test"})
		require.NoError(m, err)
		m.first(acc)
		m.undefine(namespacedThings)
		time.Sleep(time.Minute)
		others := definedKind{"Namespaced", "things", "Other", "v1", true}
		before := time.Now()
		m.define(others) // nothing is a Thing any more
		time.Sleep(10 * time.Second)
		require.Equal(m, kates.StateSynced, acc.Status().Queries[0].State, "an empty list contradicts nothing")
		after := time.Now()
		require.NoError(m, m.server.Client(m).Create(m.Context(), others.object("after"), nil))
		time.Sleep(10 * time.Minute)
		st := acc.Status().Queries[0]
		assert.NotEqual(m, kates.StateSynced, st.State)
		assert.WithinRange(m, st.Heard, before, after)
		assert.Equal(m, time.Since(st.Heard).Truncate(time.Millisecond), st.Lag)
		assert.ErrorContains(m, acc.Status().Err(), "Other")
	})
}
