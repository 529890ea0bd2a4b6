package katestest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, Labels: map[string]string{"app": "web"}},
		Data:       map[string]string{"a": "b"},
	}
}

// doors runs a program with a detector in a bubble, on a fake with some config maps, and returns
// what the detector says.
func doors(t *testing.T, program func(t *testing.T, fake *katestest.Fake)) (errors []string) {
	synctest.Test(t, func(t *testing.T) {
		inner := &recorder{TB: t}
		fake := katestest.New(inner, katestest.WithClientOptions(kates.WithInterval(0)),
			katestest.WithObjects(configMap("a"), configMap("b"), configMap("c")))
		defer inner.end()
		program(t, fake)
		inner.end()
		errors = inner.errors
	})
	return errors
}

// touch is another program's write.
func touch(t *testing.T, fake *katestest.Fake, name, value string) {
	t.Helper()
	other, err := kates.NewClientFromDynamic(fake.Dynamic, fake.Mapper)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Patch(t.Context(), configMap(name), kates.MergePatchType, []byte(`{"data":{"touched":"`+value+`"}}`), nil))
	synctest.Wait()
}

type cmSnap struct{ ConfigMaps []*corev1.ConfigMap }

// watched watches S, and returns what makes the next snapshot.
func watched[S any](t *testing.T, c *kates.Client, queries ...kates.Query) (update func() *S) {
	t.Helper()
	snapshots, err := kates.Watch[S](t.Context(), c, queries...)
	require.NoError(t, err)
	return func() *S {
		synctest.Wait()
		s := new(S)
		_, err := snapshots.Update(t.Context(), s)
		require.NoError(t, err)
		return s
	}
}

func TestG10TheDetectorNamesTheFirstSnapshotThatShowedTheDamage(t *testing.T) {
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		update := watched[cmSnap](t, fake.Client)
		update()
		touch(t, fake, "c", "1")
		update().ConfigMaps[0].Data["a"] = "x"
		touch(t, fake, "c", "2")
		update()
		touch(t, fake, "c", "3")
		update().ConfigMaps[1].Labels["app"] = "y"
		touch(t, fake, "b", "4")
		update()
	})
	assert.Equal(t, []string{
		`somebody wrote to a shared object: ConfigMap prod/a of query "ConfigMaps": data.a: ` +
			`first seen in snapshot 3 of katestest_test.cmSnap; unchanged in snapshot 2 of katestest_test.cmSnap`,
		`somebody wrote to a shared object: ConfigMap prod/b of query "ConfigMaps": metadata.labels.app: ` +
			`first seen after the object had changed, in snapshot 5 of katestest_test.cmSnap; unchanged in snapshot 4 of katestest_test.cmSnap`,
	}, errors)
}

func TestG10TheDetectorSeesAWriteToAnObjectThatIsGone(t *testing.T) {
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		update := watched[cmSnap](t, fake.Client)
		update().ConfigMaps[0].Data["a"] = "x"
		require.NoError(t, fake.Client.Delete(t.Context(), configMap("a"), nil))
		update()
	})
	assert.Equal(t, []string{
		`somebody wrote to a shared object: ConfigMap prod/a of query "ConfigMaps": data.a: ` +
			`first seen after the object had changed, in snapshot 2 of katestest_test.cmSnap; unchanged in snapshot 1 of katestest_test.cmSnap`,
	}, errors)
}

func TestG10TheDetectorNamesTheFunctionThatWroteToItsArgument(t *testing.T) {
	vandal := func(o metav1.Object) { o.SetLabels(map[string]string{"written": "here"}) }
	for what, program := range map[string]func(t *testing.T, fake *katestest.Fake){
		"the predicate": func(t *testing.T, fake *katestest.Fake) {
			acc, err := fake.Client.Watch(t.Context(), kates.Query{Name: "ConfigMaps", Kind: "cm"})
			require.NoError(t, err)
			synctest.Wait()
			_, err = acc.FilteredUpdate(t.Context(), &cmSnap{}, nil, func(u *kates.Unstructured) bool {
				if u.GetName() == "b" {
					vandal(u)
				}
				return false // it is in no snapshot
			})
			require.NoError(t, err)
		},
		"the Key function": func(t *testing.T, fake *katestest.Fake) {
			all, err := kates.WatchEach[cmSnap](t.Context(), fake.Client, kates.Query{Name: "ConfigMaps", Key: kates.KeyOf(func(o metav1.Object) []string {
				if o.GetName() != "b" {
					return []string{"key"}
				}
				vandal(o)
				return nil // it is in no turn
			})})
			require.NoError(t, err)
			turn, err := all.Next(t.Context())
			require.NoError(t, err)
			turn.Done(nil)
		},
		"the Signal function": func(t *testing.T, fake *katestest.Fake) {
			watched[cmSnap](t, fake.Client, kates.Query{Name: "ConfigMaps", Signal: kates.SignalOf(func(_, current metav1.Object) bool {
				if current.GetName() == "b" {
					vandal(current)
				}
				return true
			})})()
			touch(t, fake, "b", "1")
		},
		"the Refs function": func(t *testing.T, fake *katestest.Fake) {
			type refs struct {
				ConfigMaps []*corev1.ConfigMap
				Secrets    []*corev1.Secret
			}
			watched[refs](t, fake.Client, kates.Query{Name: "Secrets", Refs: []kates.Ref{
				kates.RefsOf("ConfigMaps", func(u *kates.Unstructured) []types.NamespacedName {
					if u.GetName() == "b" {
						vandal(u)
					}
					return nil
				}),
			}})()
		},
	} {
		t.Run(what, func(t *testing.T) {
			assert.Equal(t, []string{
				`somebody wrote to a shared object: ConfigMap prod/b of query "ConfigMaps": metadata.labels.app, metadata.labels.written: ` +
					`first seen when ` + what + ` of query "ConfigMaps" returned; unchanged when ` + what + ` of query "ConfigMaps" was called`,
			}, doors(t, program))
		})
	}
}

func TestG10TheDetectorLooksAfterFunctionsThatComeAtRunTime(t *testing.T) {
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		all, err := kates.WatchEach[cmSnap](t.Context(), fake.Client, kates.Query{Name: "ConfigMaps", Key: kates.ByName})
		require.NoError(t, err)
		turn, err := all.Next(t.Context())
		require.NoError(t, err)
		turn.Done(nil)
		require.NoError(t, all.Replace(t.Context(), kates.Query{Name: "ConfigMaps", Key: kates.KeyOf(func(o metav1.Object) []string {
			o.SetLabels(nil)
			return []string{"key"}
		})}))
		synctest.Wait()
		turn, err = all.Next(t.Context())
		require.NoError(t, err)
		turn.Done(nil)
	})
	require.Len(t, errors, 3)
	assert.Contains(t, errors[0], `first seen when the Key function of query "ConfigMaps" returned`)
}

func TestG10TheDetectorSeesWritesToInvalidObjects(t *testing.T) {
	type bad struct {
		Data map[string]int `json:"data"` // they are no numbers
	}
	type snap struct {
		ConfigMaps []bad `kates:"configmaps"`
		Invalid    []kates.Invalid
	}
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		client := fake.Client.With(kates.WithOnInvalid(func(i kates.Invalid) {
			if i.Object.GetName() == "a" {
				i.Object.SetLabels(nil)
			}
		}))
		s := watched[snap](t, client)()
		require.Len(t, s.Invalid, 3)
		s.Invalid[1].Object.SetLabels(nil)
	})
	require.Len(t, errors, 2)
	assert.Contains(t, errors[0], `ConfigMap prod/a of query "ConfigMaps": metadata.labels: first seen in snapshot 1`)
	assert.Contains(t, errors[1], `ConfigMap prod/b of query "ConfigMaps": metadata.labels: first seen when the test ended`)
}

func TestG10TheDetectorSeesSlicesAndMapsThatWereChangedInPlace(t *testing.T) {
	type snap struct {
		Slice  []*corev1.ConfigMap
		Values []corev1.ConfigMap
		Map    map[string]*corev1.ConfigMap
		List   corev1.ConfigMapList
	}
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		update := watched[snap](t, fake.Client, kates.Query{Name: "List", Kind: "configmaps"})
		s := update()
		slices.Reverse(s.Slice)
		s.Values[1].Name = "x"
		delete(s.Map, "prod/a")
		s.Map["new"] = &corev1.ConfigMap{}
		s.List.Items[2].Data = nil
		touch(t, fake, "c", "1")
		update()
	})
	const when = ": first seen in snapshot 2 of katestest_test.snap; unchanged in snapshot 1 of katestest_test.snap"
	assert.Equal(t, []string{
		`somebody wrote to a shared slice, that of query "Slice": [0], [2]` + when,
		`somebody wrote to a shared slice, that of query "Values": [1] (metadata.name)` + when,
		`somebody wrote to a shared map, that of query "Map": [new], [prod/a]` + when,
		`somebody wrote to a shared slice, that of query "List": [2] (data)` + when,
	}, errors)
}

func TestG10TheDetectorSeesWhatLookupsReturn(t *testing.T) {
	type snap struct {
		ConfigMaps kates.Lookup[*corev1.ConfigMap]
	}
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		update := watched[snap](t, fake.Client)
		all, err := update().ConfigMaps.List("", nil)
		require.NoError(t, err)
		slices.Reverse(all) // the slice is the caller's
		all[0].Data["a"] = "x"
		touch(t, fake, "a", "1")
		update()
	})
	assert.Equal(t, []string{
		`somebody wrote to a shared object: ConfigMap prod/c of query "ConfigMaps": data.a: ` +
			`first seen in snapshot 2 of katestest_test.snap; unchanged in snapshot 1 of katestest_test.snap`,
	}, errors)
}

func TestG10TheDetectorNamesTheTurnThatWroteToASharedObject(t *testing.T) {
	type tenant struct {
		ConfigMaps []*corev1.ConfigMap
		Secrets    kates.Lookup[*corev1.Secret]
		All        []*corev1.ConfigMap
	}
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		require.NoError(t, fake.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, nil))
		ctx, cancel := context.WithCancel(t.Context())
		var turns atomic.Int32
		require.NoError(t, kates.RunEach(ctx, fake.Client, func(_ context.Context, key string, snap *tenant) error {
			switch key {
			case "prod/a":
				slices.Reverse(snap.All)
			case "prod/b":
				snap.ConfigMaps[0].Data["a"] = "x"
			case "prod/c":
				secret, err := snap.Secrets.Get("default", "s")
				assert.NoError(t, err)
				secret.Labels = map[string]string{"a": "b"}
			}
			if turns.Add(1) == 3 {
				cancel()
			}
			return nil
		}, kates.Query{Name: "ConfigMaps", Key: kates.ByNamespacedName}))
	})
	assert.Equal(t, []string{
		`somebody wrote to a shared slice, that of query "All": [0], [2]: ` +
			`first seen at the end of turn 1 of katestest_test.tenant, key "prod/a"; unchanged at the start of turn 1 of katestest_test.tenant, key "prod/a"`,
		`somebody wrote to a shared object: ConfigMap prod/b of query "ConfigMaps": data.a: ` +
			`first seen at the end of turn 2 of katestest_test.tenant, key "prod/b"; unchanged at the start of turn 2 of katestest_test.tenant, key "prod/b"`,
		`somebody wrote to a shared object: Secret default/s of query "Secrets": metadata.labels: ` +
			`first seen at the end of turn 3 of katestest_test.tenant, key "prod/c"; unchanged at the start of turn 3 of katestest_test.tenant, key "prod/c"`,
	}, errors)
}

func TestG10TheDetectorNamesTheReconcileThatWroteToASharedObject(t *testing.T) {
	type site struct {
		Root  *struct{ Data map[string]string } `kates:"configmaps,root"`
		Owned []*corev1.Service                 `kates:",owned"`
		Info  controller.Info
	}
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "s"}}
		root := configMap("b")
		root.APIVersion, root.Kind = "v1", "ConfigMap"
		require.NoError(t, kates.SetControllerReference(root, service))
		require.NoError(t, fake.Client.Create(t.Context(), service, nil))
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int32
		c, err := controller.New(fake.Client, "sites", func(_ context.Context, p *site) (controller.Result, error) {
			switch p.Info.Key {
			case "prod/a":
				p.Info.Root.SetLabels(nil)
			case "prod/b":
				controller.Owned(p)[0].SetLabels(map[string]string{"a": "b"})
			case "prod/c":
				p.Root.Data["a"] = "x"
			}
			if calls.Add(1) == 3 {
				cancel()
			}
			return controller.Done, nil
		})
		require.NoError(t, err)
		require.NoError(t, c.Run(ctx))
	})
	const start, end = `unchanged at the start of turn `, ` of controller "sites", key `
	assert.Equal(t, []string{
		`somebody wrote to a shared object: ConfigMap prod/a of query "Root": metadata.labels: ` +
			`first seen at the end of turn 1` + end + `"prod/a"; ` + start + `1` + end + `"prod/a"`,
		`somebody wrote to a shared object: Service prod/s of query "Owned": metadata.labels: ` +
			`first seen at the end of turn 2` + end + `"prod/b"; ` + start + `2` + end + `"prod/b"`,
		`somebody wrote to a shared object: ConfigMap prod/c of query "Root": Data.a: ` +
			`first seen at the end of turn 3` + end + `"prod/c"; ` + start + `3` + end + `"prod/c"`,
	}, errors)
}

func TestG10TheDetectorSeesWhatAFleetShows(t *testing.T) {
	type snap struct {
		ConfigMaps []fleet.Object[*corev1.ConfigMap]
		Untyped    map[string][]map[string]any `kates:"configmaps"`
	}
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		f, err := fleet.New(fleet.Options{})
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, f.Set(fleet.Member{Name: "east", Client: fake.Client}))
		snapshots, err := fleet.Watch[snap](t.Context(), f)
		require.NoError(t, err)
		for s, err := range snapshots.All(t.Context()) {
			require.NoError(t, err)
			s.ConfigMaps[0].Object.Data["a"] = "x"
			s.Untyped["east"][1]["data"] = nil
			slices.Reverse(s.ConfigMaps)
			delete(s.Untyped, "east")
			break
		}
		touch(t, fake, "c", "1")
		s := &snap{}
		_, err = snapshots.Update(t.Context(), s)
		require.NoError(t, err)
		assert.Equal(t, "a", s.ConfigMaps[0].Object.Name, "it was made anew")
	})
	const part = `: first seen in snapshot 2 of the queries "ConfigMaps", "Untyped"; unchanged in snapshot 1 of the queries "ConfigMaps", "Untyped"`
	const whole = `: first seen in snapshot 2 of katestest_test.snap; unchanged in snapshot 1 of katestest_test.snap`
	assert.Equal(t, []string{
		`somebody wrote to a shared object: ConfigMap prod/a of query "ConfigMaps": data.a` + part,
		`somebody wrote to a shared object: ConfigMap prod/b of the queries ["ConfigMaps" "Untyped"]: data` + part,
		`somebody wrote to a shared slice, that of query "ConfigMaps": ` +
			`[0] (Object.data.a, Object.metadata.name), [2] (Object.data.a, Object.metadata.name)` + whole,
		`somebody wrote to a shared map, that of query "Untyped": [east]` + whole,
	}, errors)
}
