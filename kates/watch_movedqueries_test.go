package kates_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// scopes are the two ways in which a scope changes.
var scopes = map[string][2]definedKind{
	"in no namespace": {namespacedThings, globalThings}, "in namespaces": {globalThings, namespacedThings},
}

// TestG8EveryFormOfAFieldFollowsAKindThatComesBackWithAnotherScope: each has a stream of its own.
func TestG8EveryFormOfAFieldFollowsAKindThatComesBackWithAnotherScope(t *testing.T) {
	type snapshot struct {
		Untyped  []*kates.Unstructured          `kates:"things.moved.test"`
		Metadata []*kates.PartialObjectMetadata `kates:"things.moved.test"`
		Maps     []map[string]any               `kates:"things.moved.test"`
		Structs  []struct {
			Metadata struct{ Namespace, Name string }
		} `kates:"things.moved.test"`
		Known  map[types.NamespacedName]*kates.Unstructured `kates:"things.moved.test"`
		Narrow []*kates.Unstructured                        `kates:"things.moved.test"`
	}
	for name, c := range scopes {
		for how, cut := range map[string]bool{"connected": false, "cut off": true} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inMotion(t, c[0], func(m moving) {
					s, err := kates.Watch[snapshot](m.Context(), m.client, kates.Query{Name: "Narrow", LabelSelector: "app=a"})
					require.NoError(m, err)
					defer s.Close()
					var snap snapshot
					shows := func(name string, of definedKind) {
						m.Helper()
						time.Sleep(time.Minute)
						synctest.Wait()
						_, err := s.Update(m.Context(), &snap)
						require.NoError(m, err)
						want := []string{of.key(name)}
						require.Equal(m, want, keysOf(shownOf(snap.Untyped)), "%v", s.Status())
						require.Equal(m, want, keysOf(shownOf(snap.Narrow)), "%v", s.Status())
						require.Len(m, snap.Metadata, 1)
						require.Equal(m, name, snap.Metadata[0].Name)
						require.Len(m, snap.Maps, 1)
						require.Len(m, snap.Structs, 1)
						require.Equal(m, name, snap.Structs[0].Metadata.Name)
						require.Len(m, snap.Known, 1)
						require.NoError(m, s.Status().Err())
					}
					shows("before", c[0])
					m.redefine(c[0], c[1], cut, "after")
					shows("after", c[1])
					lister, err := kates.NewLister[*kates.Unstructured](m.Context(), m.client, kates.Query{Kind: "things.moved.test"})
					require.NoError(m, err)
					defer lister.Close()
					m.redefine(c[1], c[0], cut, "again")
					shows("again", c[0])
					all, err := lister.List("", nil)
					require.NoError(m, err)
					require.Equal(m, []string{c[0].key("again")}, keysOf(shownOf(all)))
				})
			})
		}
	}
}

// TestG8WhatAQueryOfNamespacesShowsStaysWhileItsKindHasNone: it is shown again when it has.
func TestG8WhatAQueryOfNamespacesShowsStaysWhileItsKindHasNone(t *testing.T) {
	for name, q := range map[string]kates.Query{
		"one": {Namespace: "default"}, "several": {Namespaces: []string{"default", "other"}},
		"selected": {NamespaceSelector: "kubernetes.io/metadata.name in (default,other)"},
	} {
		t.Run(name, func(t *testing.T) {
			inMotion(t, namespacedThings, func(m moving) {
				q.Name, q.Kind, q.Optional = "Things", "things.moved.test", true
				acc, err := m.client.Watch(m.Context(), q)
				require.NoError(m, err)
				m.first(acc)
				var snap struct{ Things []*kates.Unstructured }
				shows := func(names ...string) {
					m.Helper()
					time.Sleep(2 * time.Minute)
					_, err := acc.Update(m.Context(), &snap)
					require.NoError(m, err)
					require.Equal(m, names, keysOf(shownOf(snap.Things)), "%v", acc.Status())
				}
				shows("default/before")
				m.redefine(namespacedThings, globalThings, false, "global")
				shows()
				require.ErrorContains(m, acc.Status().Err(), "in no namespace")
				_, err = m.client.Watch(m.Context(), q)
				require.ErrorContains(m, err, "in no namespace")
				m.redefine(globalThings, namespacedThings, false, "again")
				shows("default/again")
				require.NoError(m, acc.Status().Err())
				other := q
				other.Optional = false
				_, err = m.client.Watch(m.Context(), other)
				require.NoError(m, err)
			})
		})
	}
}

// TestG8NamedObjectsFollowAKindThatComesBackWithAnotherScope: they have a stream each.
func TestG8NamedObjectsFollowAKindThatComesBackWithAnotherScope(t *testing.T) {
	for name, c := range scopes {
		t.Run(name, func(t *testing.T) {
			inMotion(t, c[0], func(m moving) {
				cm := kates.NewUnstructured("ConfigMap", "v1")
				cm.SetName("names")
				require.NoError(m, m.client.Create(m.Context(), cm, nil))
				acc, err := m.client.Watch(m.Context(), kates.Query{Name: "Maps", Kind: "cm", Namespace: "default"},
					kates.Query{Name: "Things", Kind: "things.moved.test", Refs: []kates.Ref{
						kates.RefsOf("Maps", func(*kates.Unstructured) []types.NamespacedName {
							return []types.NamespacedName{{Name: "before"}, {Name: "after"}}
						}),
					}})
				require.NoError(m, err)
				m.first(acc)
				var snap struct{ Maps, Things []*kates.Unstructured }
				shows := func(names ...string) {
					m.Helper()
					time.Sleep(2 * time.Minute)
					_, err := acc.Update(m.Context(), &snap)
					require.NoError(m, err)
					require.Equal(m, names, keysOf(shownOf(snap.Things)), "%v", acc.Status())
				}
				shows(c[0].key("before"))
				m.redefine(c[0], c[1], false, "after", "not-named")
				shows(c[1].key("after"))
				require.NoError(m, acc.Status().Err())
			})
		})
	}
}

// TestG8PartitionsFollowAKindThatComesBackWithAnotherScope: the keys are those of the new one.
func TestG8PartitionsFollowAKindThatComesBackWithAnotherScope(t *testing.T) {
	for name, c := range scopes {
		t.Run(name, func(t *testing.T) {
			inMotion(t, c[0], func(m moving) {
				type snapshot struct {
					Things []*kates.Unstructured `kates:"things.moved.test"`
				}
				parts, err := kates.WatchEach[snapshot](m.Context(), m.client, kates.Query{Name: "Things", Key: kates.ByNamespacedName})
				require.NoError(m, err)
				defer parts.Close()
				var turns []string
				go func() {
					for {
						turn, err := parts.Next(m.Context())
						if err != nil {
							return
						}
						turns = append(turns, turn.Key)
						turn.Done(nil)
					}
				}()
				time.Sleep(time.Minute)
				m.redefine(c[0], c[1], false, "after")
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Equal(m, []string{c[0].key("before"), c[0].key("before"), c[1].key("after")}, turns)
				assert.Equal(m, []string{c[1].key("after")}, parts.Keys())
			})
		})
	}
}
