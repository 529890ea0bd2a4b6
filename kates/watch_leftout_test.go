package kates_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestAProgramThatNotesWhatItsPredicateRefusesIsToldOfEachChange: such a program, as Emissary's,
// publishes its notes when an update says that something has changed.
func TestAProgramThatNotesWhatItsPredicateRefusesIsToldOfEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithObjects(service("a", "good")))
		c := fake.Client.With(kates.WithInterval(0))
		acc, err := c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "services"})
		require.NoError(t, err)
		notes, published := map[string]string{}, ""
		publish := func() (deltas []*kates.Delta) {
			t.Helper()
			<-acc.Changed() // it is woken
			synctest.Wait()
			var snap struct{ Services []*kates.Service }
			changed, err := acc.FilteredUpdate(t.Context(), &snap, &deltas, func(u *kates.Unstructured) bool {
				delete(notes, u.GetName())
				if why := u.GetAnnotations()["why"]; why != "" {
					notes[u.GetName()] = why
				}
				return notes[u.GetName()] == ""
			})
			require.NoError(t, err)
			if changed {
				published = fmt.Sprint(notes)
			}
			return deltas
		}
		publish()
		bad := service("a", "bad")
		write := func(why string) {
			t.Helper()
			_, err := kates.Modify(t.Context(), c, bad, func(s *kates.Service) error { s.Annotations = map[string]string{"why": why}; return nil })
			require.NoError(t, err)
		}
		bad.Annotations = map[string]string{"why": "no port"}
		require.NoError(t, c.Create(t.Context(), bad, nil))
		assert.Empty(t, publish())
		assert.Equal(t, "map[bad:no port]", published, "one that comes")
		write("no selector")
		assert.Empty(t, publish())
		assert.Equal(t, "map[bad:no selector]", published, "another fault")
		write("")
		assert.Len(t, publish(), 1)
		assert.Equal(t, "map[]", published, "it is valid again")
		write("no port")
		assert.Len(t, publish(), 1)
		assert.Equal(t, "map[bad:no port]", published, "it was valid")
		published = "as before"
		require.NoError(t, c.Delete(t.Context(), bad, nil))
		assert.Empty(t, publish())
		assert.NotEqual(t, "as before", published, "it is gone")
	})
}

// TestG8AnObjectThatDoesNotDecodeIsAChangeForEachWayToUpdate: it comes, its fault is another one,
// it is valid again, and it goes.
func TestG8AnObjectThatDoesNotDecodeIsAChangeForEachWayToUpdate(t *testing.T) {
	type snapshot struct {
		Maps []*struct {
			Data struct{ N int }
		} `kates:"configmaps"`
	}
	all := func(*kates.Unstructured) bool { return true }
	for name, update := range map[string]func(ctx context.Context, acc *kates.Accumulator, into *snapshot) (bool, error){
		"Update": func(ctx context.Context, acc *kates.Accumulator, into *snapshot) (bool, error) {
			return acc.Update(ctx, into)
		},
		"UpdateWithDeltas": func(ctx context.Context, acc *kates.Accumulator, into *snapshot) (bool, error) {
			return acc.UpdateWithDeltas(ctx, into, nil)
		},
		"FilteredUpdate": func(ctx context.Context, acc *kates.Accumulator, into *snapshot) (bool, error) {
			return acc.FilteredUpdate(ctx, into, nil, all)
		},
		"JudgedUpdate": func(ctx context.Context, acc *kates.Accumulator, into *snapshot) (bool, error) {
			return acc.JudgedUpdate(ctx, into, nil, nil, func(*kates.Unstructured) (bool, error) { return true, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t)
				c := fake.Client.With(kates.WithInterval(0))
				acc, err := c.Watch(t.Context(), kates.Query{Name: "Maps", Kind: "configmaps"})
				require.NoError(t, err)
				changes := func(what string) {
					t.Helper()
					<-acc.Changed()
					synctest.Wait()
					changed, err := update(t.Context(), acc, &snapshot{})
					require.NoError(t, err)
					assert.True(t, changed, what)
				}
				changes("the first one")
				cm := kates.NewUnstructured("ConfigMap", "v1")
				cm.SetNamespace("default")
				cm.SetName("bad")
				cm.Object["data"] = map[string]any{"N": "one"}
				require.NoError(t, c.Create(t.Context(), cm, cm))
				changes("it comes")
				cm.Object["data"] = "two"
				require.NoError(t, c.Update(t.Context(), cm, cm))
				changes("its fault is another one")
				cm.Object["data"] = map[string]any{"N": int64(1)}
				require.NoError(t, c.Update(t.Context(), cm, cm))
				changes("it is valid")
				cm.Object["data"] = "two"
				require.NoError(t, c.Update(t.Context(), cm, cm))
				changes("it is not")
				require.NoError(t, c.Delete(t.Context(), cm, nil))
				changes("it is gone")
			})
		})
	}
}
