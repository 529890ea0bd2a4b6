package kates_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// typedAlone returns a client that watches config maps only in their Go type.
func typedAlone(t *testing.T, s *wireServer, options ...kates.Option) (*kates.Client, *kates.Snapshots[typedMaps]) {
	t.Helper()
	c := s.client(t, options...)
	w, err := kates.Watch[typedMaps](t.Context(), c)
	require.NoError(t, err)
	var snap typedMaps
	next(t, w, &snap, func() bool { return true })
	return c, w
}

func withKind(cm *kates.ConfigMap) *kates.ConfigMap {
	cm = cm.DeepCopy()
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	return cm
}

func TestGetIsAnsweredByAWatchOfAGoTypeInThatTypeAlone(t *testing.T) {
	for _, kept := range []bool{false, true} {
		s := &wireServer{protobuf: true, objects: []any{versioned("a", "5"), broken{versioned("bad", "6")}}}
		s.one = func(*http.Request) any { return withKind(versioned("a", "5")) }
		var options []kates.Option
		if kept {
			options = append(options, kates.WithManagedFields())
		}
		c, w := typedAlone(t, s, options...)
		got, err := kates.GetCached[kates.ConfigMap](t.Context(), c, "ns", "a")
		require.NoError(t, err)
		assert.Equal(t, "v1/ConfigMap v", got.APIVersion+"/"+got.Kind+" "+got.Data["k"])
		assert.Equal(t, kept, got.ManagedFields != nil)
		got.Data["k"] = "the caller's own"
		var snap typedMaps
		_, err = w.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Equal(t, "v", snap.ConfigMaps[0].Data["k"])

		short, err := kates.GetCached[kates.PartialObjectMetadata](t.Context(), c, "ns", "a", kates.OfKind("cm"))
		require.NoError(t, err)
		assert.Equal(t, "ConfigMap a", short.Kind+" "+short.Name)
		assert.Empty(t, s.seen())

		whole, err := kates.GetCached[kates.Unstructured](t.Context(), c, "ns", "a", kates.OfKind("cm"))
		require.NoError(t, err)
		assert.NotEmpty(t, whole.GetManagedFields())
		_, err = kates.GetCached[map[string]any](t.Context(), c, "ns", "a", kates.OfKind("cm"))
		require.NoError(t, err)
		_, err = kates.GetCached[struct{ Unknown string }](t.Context(), c, "ns", "a", kates.OfKind("cm"))
		require.NoError(t, err)
		assert.Equal(t, []string{"GET", "GET", "GET"}, s.seen(), "a Go type does not know all fields")
		_, err = kates.GetCached[kates.ConfigMap](t.Context(), c, "ns", "bad")
		require.NoError(t, err)
		assert.Equal(t, []string{"GET"}, s.seen(), "it does not decode, so the server is asked")
		_, err = kates.GetCached[kates.Unstructured](t.Context(), c, "ns", "none", kates.OfKind("cm"))
		assert.True(t, kates.IsNotFound(err))
		assert.Empty(t, s.seen(), "that there is none, any watch knows")
	}
}

// labelledOwned returns a config map of the set "set" of the owner.
func labelledOwned(owner *kates.ConfigMap, name, version string) *kates.ConfigMap {
	cm := versioned(name, version)
	cm.Labels = map[string]string{kates.OwnedSetLabel: "set." + string(owner.UID)}
	cm.ManagedFields = nil
	yes := true
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes, BlockOwnerDeletion: &yes}}
	return cm
}

func TestApplyOwnedGoesByVersionsWhereOnlyAGoTypeIsWatched(t *testing.T) {
	for _, kept := range []bool{false, true} {
		owner := versioned("owner", "4")
		s := &wireServer{objects: []any{owner, labelledOwned(owner, "x", "5")}}
		stored := labelledOwned(owner, "x", "8")
		stored.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kates", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
		}}
		s.one = func(*http.Request) any { return withKind(stored) }
		var options []kates.Option
		if kept {
			options = append(options, kates.WithManagedFields())
		}
		c, w := typedAlone(t, s, options...)
		wanted := &kates.ConfigMap{Data: map[string]string{"k": "v"}}
		wanted.Name = "x"
		apply := func(applied, unchanged int, requests ...string) {
			t.Helper()
			r, err := c.ApplyOwned(t.Context(), kates.OwnedSet{Owner: owner, SetName: "set", Objects: []kates.Object{wanted}})
			require.NoError(t, err)
			assert.Equal(t, []int{applied, unchanged}, []int{len(r.Applied), len(r.Unchanged)})
			assert.Equal(t, requests, s.seen())
		}
		apply(1, 0, "PATCH")
		apply(0, 1)
		stored = stored.DeepCopy()
		// another writer took the field
		stored.ResourceVersion, stored.ManagedFields[0].FieldsV1 = "9", metav1.NewFieldsV1(`{}`)
		s.send("MODIFIED", stored)
		var snap typedMaps
		next(t, w, &snap, func() bool { return snap.ConfigMaps[1].ResourceVersion == "9" })
		apply(0, 1, "PATCH") // the client does not know who owns the fields
		apply(0, 1)
		s.send("ADDED", broken{labelledOwned(owner, "bad", "10")})
		next(t, w, &snap, func() bool { return len(snap.Invalid) == 1 })
		apply(0, 1, "LIST") // it may be in the set, so the client asks the server
	}
}

func TestG7ARunOverAGoTypeHasDeltasWithTheirKindsAndWhatFailedAgain(t *testing.T) {
	s := &wireServer{protobuf: true, objects: []any{versioned("a", "5")}}
	c := s.client(t)
	var calls [][]string
	stop := errors.New("done")
	err := kates.Run(t.Context(), c, func(_ context.Context, snap *typedMaps) error {
		var told []string
		for _, d := range snap.Deltas {
			told = append(told, d.APIVersion+"/"+d.Kind+" "+d.DeltaType.String()+" "+d.Name+"@"+d.ResourceVersion)
		}
		calls = append(calls, told)
		switch len(calls) {
		case 1:
			s.send("MODIFIED", versioned("a", "8"))
		case 2:
			s.send("ADDED", broken{versioned("bad", "9")})
			s.send("DELETED", broken{versioned("a", "10")})
			return errors.New("again")
		default:
			if len(snap.ConfigMaps) == 0 {
				return kates.Permanent(stop)
			}
			return errors.New("again")
		}
		return nil
	}, kates.WithBackoff(time.Millisecond, time.Millisecond))
	require.ErrorIs(t, err, stop)
	assert.Equal(t, []string{"v1/ConfigMap add a@5"}, calls[0])
	assert.Equal(t, []string{"v1/ConfigMap update a@8"}, calls[1])
	assert.Equal(t, "v1/ConfigMap delete a", calls[len(calls)-1][0][:len("v1/ConfigMap delete a")])
}
