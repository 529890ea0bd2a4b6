package kates_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestRequestsAboutAKindThatIsServedOtherwiseAreSentAgain: the client has no watch.
func TestRequestsAboutAKindThatIsServedOtherwiseAreSentAgain(t *testing.T) {
	for name, request := range requestsOfThings {
		for how, c := range map[string][2]definedKind{
			"in no namespace": {namespacedThings, globalThings},
			"in namespaces":   {globalThings, namespacedThings},
			"another plural":  {namespacedThings, {"Namespaced", "thingies", "Thing", "v1", true}},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inMotion(t, c[0], func(m moving) {
					require.NoError(m, m.client.Get(m.Context(), c[0].object("before"), nil)) // it knows the kind
					m.redefine(c[0], c[1], false, "x")
					time.Sleep(time.Minute)
					require.NoError(m, request(m, c[1]))
				})
			})
		}
	}
}

// requestsOfThings are the methods that send requests about an object x, which exists, or a new
// one.
var requestsOfThings = map[string]func(m moving, s definedKind) error{
	"Get": func(m moving, s definedKind) error {
		var got kates.Unstructured
		err := m.client.Get(m.Context(), s.object("x"), &got)
		assert.Equal(m, s.key("x"), strings.TrimPrefix(got.GetNamespace()+"/"+got.GetName(), "/"))
		return err
	},
	"GetCached": func(m moving, _ definedKind) error {
		_, err := kates.GetCached[kates.Unstructured](m.Context(), m.client, "default", "x", kates.OfKind("Thing.v1.moved.test"))
		return err
	},
	"GetSubresource": func(m moving, s definedKind) error {
		return m.client.GetSubresource(m.Context(), s.object("x"), "status", nil)
	},
	"List": func(m moving, s definedKind) error {
		var all []*kates.Unstructured
		q := kates.Query{Kind: "Thing.moved.test"}
		if s.scope == "Namespaced" {
			q.Namespace = "default"
		}
		err := m.client.List(m.Context(), q, &all)
		assert.Len(m, all, 1)
		return err
	},
	"Create": func(m moving, s definedKind) error { return m.client.Create(m.Context(), s.object("new"), nil) },
	"Update": func(m moving, s definedKind) error {
		return m.client.Update(m.Context(), m.stored(s.object("x")), nil)
	},
	"UpdateStatus": func(m moving, s definedKind) error {
		o := m.stored(s.object("x"))
		o.Object["status"] = map[string]any{"a": "b"}
		return m.client.UpdateStatus(m.Context(), o, nil)
	},
	"Patch": func(m moving, s definedKind) error {
		return m.client.Patch(m.Context(), s.object("x"), kates.MergePatchType, []byte(`{"spec":{"a":"b"}}`), nil)
	},
	"Apply":  func(m moving, s definedKind) error { return m.client.Apply(m.Context(), s.object("new"), nil) },
	"Delete": func(m moving, s definedKind) error { return m.client.Delete(m.Context(), s.object("x"), nil) },
	"DeleteAll": func(m moving, s definedKind) error {
		err := m.client.DeleteAll(m.Context(), kates.Query{Kind: "Thing.moved.test"})
		require.True(m, kates.IsNotFound(m.server.Client(m).Get(m.Context(), s.object("x"), nil)))
		return err
	},
	"Upsert": func(m moving, s definedKind) error {
		return m.client.Upsert(m.Context(), nil, s.object("new"), nil)
	},
	"Modify": func(m moving, s definedKind) error {
		_, err := kates.Modify(m.Context(), m.client, s.object("x"), func(u *kates.Unstructured) error {
			u.SetLabels(map[string]string{"a": "b"})
			return nil
		})
		return err
	},
	"SetConditions": func(m moving, s definedKind) error {
		return m.client.SetConditions(m.Context(), s.object("x"), []kates.Condition{{Type: "Ready", Status: "True", Reason: "Done"}})
	},
	"AddFinalizer": func(m moving, s definedKind) error {
		return m.client.AddFinalizer(m.Context(), s.object("x"), "moved.test/f")
	},
	"ApplyOwned": func(m moving, s definedKind) error {
		result, err := m.client.ApplyOwned(m.Context(), m.owned(s))
		if assert.Len(m, result.Applied, 1) {
			assert.Equal(m, s.key("new"), strings.TrimPrefix(result.Applied[0].Namespace+"/"+result.Applied[0].Name, "/"))
		}
		return err
	},
	"ApplyOwned, which prunes": func(m moving, s definedKind) error {
		set := m.owned(s)
		_, err := m.server.Client(m).ApplyOwned(m.Context(), set)
		require.NoError(m, err)
		set.Objects, set.Kinds = nil, []string{"Thing.moved.test"}
		result, err := m.client.ApplyOwned(m.Context(), set)
		assert.Len(m, result.Pruned, 1)
		assert.True(m, kates.IsNotFound(m.server.Client(m).Get(m.Context(), s.object("new"), nil)))
		return err
	},
	"ApplyOwned, which prunes what there is": func(m moving, s definedKind) error {
		set := m.owned(s)
		_, err := m.server.Client(m).ApplyOwned(m.Context(), set)
		require.NoError(m, err)
		var there kates.Unstructured
		require.NoError(m, m.server.Client(m).Get(m.Context(), s.object("new"), &there))
		set.Objects, set.Existing = nil, []kates.Object{&there}
		result, err := m.client.ApplyOwned(m.Context(), set)
		assert.Len(m, result.Pruned, 1)
		assert.True(m, kates.IsNotFound(m.server.Client(m).Get(m.Context(), s.object("new"), nil)))
		return err
	},
	"Watch": func(m moving, s definedKind) error {
		q := kates.Query{Name: "Things", Kind: "Thing.moved.test"}
		if s.scope == "Namespaced" {
			q.Namespace = "default"
		}
		acc, err := m.client.Watch(m.Context(), q)
		if err == nil {
			m.first(acc)
			var snap struct{ Things []*kates.Unstructured }
			_, err = acc.Update(m.Context(), &snap)
			assert.Equal(m, []string{s.key("x")}, keysOf(shownOf(snap.Things)))
		}
		return err
	},
}

// owned is a set that a namespace owns.
func (m moving) owned(s definedKind) kates.OwnedSet {
	m.Helper()
	var owner kates.Namespace
	require.NoError(m, m.client.Get(m.Context(), namespaceNamed("default"), &owner))
	return kates.OwnedSet{Owner: &owner, SetName: "set", Objects: []kates.Object{s.object("new")}}
}

func keysOf(m map[string]string) (all []string) {
	for key := range m {
		all = append(all, key)
	}
	return all
}

// TestAnObjectThatIsNotThereCostsNoDiscovery: nor does a namespace that is not there, or a second
// path that is not.
func TestAnObjectThatIsNotThereCostsNoDiscovery(t *testing.T) {
	inMotion(t, namespacedThings, func(m moving) {
		discoveries := func() int {
			return len(m.faults.Requests(katestest.Match{Where: func(r katestest.Request) bool {
				return r.Path == "/api" || r.Path == "/apis"
			}}))
		}
		require.NoError(m, m.client.Get(m.Context(), namespacedThings.object("before"), nil))
		before := discoveries()
		elsewhere := namespacedThings.object("x")
		elsewhere.SetNamespace("nowhere")
		for range 10 {
			time.Sleep(time.Minute)
			require.True(m, kates.IsNotFound(m.client.Get(m.Context(), namespacedThings.object("none"), nil)))
			require.True(m, kates.IsNotFound(m.client.Create(m.Context(), elsewhere, nil)))
			require.True(m, kates.IsNotFound(m.client.Delete(m.Context(), namespacedThings.object("none"), nil)))
		}
		require.Equal(m, before, discoveries())
		m.undefine(namespacedThings)
		for range 100 {
			require.Error(m, m.client.Get(m.Context(), namespacedThings.object("before"), nil))
		}
		require.LessOrEqual(m, discoveries()-before, 4, "once a second at most")
	})
}

// TestAStatusIsWrittenWhenItsKindHasGotOne: and the error of a kind that has lost it says so.
func TestAStatusIsWrittenWhenItsKindHasGotOne(t *testing.T) {
	without := namespacedThings
	without.status = false
	write := func(m moving) error {
		return m.client.SetConditions(m.Context(), namespacedThings.object("before"), []kates.Condition{{Type: "Ready", Status: "True", Reason: "Done"}})
	}
	inMotion(t, without, func(m moving) {
		require.ErrorContains(m, write(m), "its kind has no status subresource")
		m.redefine(without, namespacedThings, false, "before")
		require.NoError(m, write(m))
		m.redefine(namespacedThings, without, false, "before")
		require.ErrorContains(m, write(m), "its kind has no status subresource")
	})
}
