package kates_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type untypedMaps struct {
	ConfigMaps []*kates.Unstructured `kates:"configmaps"`
}

const alike, groups = 4, 40

// groupedMaps returns untyped config maps, of which a few at a time have the same labels.
func groupedMaps(t *testing.T, wrap func(*kates.Client) *kates.Client, queries ...kates.Query) []*kates.Unstructured {
	t.Helper()
	s := &wireServer{}
	for i := range alike * groups {
		cm := versioned(fmt.Sprint("cm-", i), fmt.Sprint(i+1))
		cm.Labels = map[string]string{"group": fmt.Sprint(i % groups)}
		s.objects = append(s.objects, cm)
	}
	w, err := kates.Watch[untypedMaps](t.Context(), wrap(s.client(t, kates.Tuning{Lists: kates.PagedLists})), queries...)
	require.NoError(t, err)
	var snap untypedMaps
	next(t, w, &snap, func() bool { return len(snap.ConfigMaps) == alike*groups })
	return snap.ConfigMaps
}

func asIs(c *kates.Client) *kates.Client { return c }

// labelMaps counts the maps of labels in memory.
func labelMaps(all []*kates.Unstructured) int {
	found := map[uintptr]bool{}
	for _, u := range all {
		found[reflect.ValueOf(u.Object["metadata"].(map[string]any)["labels"]).Pointer()] = true
	}
	return len(found)
}

func TestUntypedObjectsShareEqualParts(t *testing.T) {
	all := groupedMaps(t, asIs)
	assert.Less(t, labelMaps(all), alike*groups*3/4)
	for _, u := range all {
		assert.Len(t, u.GetLabels(), 1)
		var i int
		_, err := fmt.Sscanf(u.GetName(), "cm-%d", &i)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(i%groups), u.GetLabels()["group"])
		assert.Equal(t, fmt.Sprint(i+1), u.GetResourceVersion())
	}
}

func TestATransformWritesToItsOwnObjectAlone(t *testing.T) {
	all := groupedMaps(t, asIs, kates.Query{Name: "ConfigMaps", Transform: kates.TransformOf(func(o *kates.Unstructured) error {
		labels := o.Object["metadata"].(map[string]any)["labels"].(map[string]any)
		labels["group"] = labels["group"].(string) + "!"
		return nil
	})})
	assert.Less(t, labelMaps(all), alike*groups*3/4, "what it has made is shared")
	for _, u := range all {
		assert.Equal(t, 1, strings.Count(u.GetLabels()["group"], "!"), u.GetName())
	}
}

func TestG4AnswersToOwnWritesShareEqualParts(t *testing.T) {
	s := &wireServer{}
	c := s.client(t, kates.Tuning{Lists: kates.PagedLists})
	w, err := kates.Watch[untypedMaps](t.Context(), c)
	require.NoError(t, err)
	var snap untypedMaps
	next(t, w, &snap, func() bool { return true })
	for i := range alike * groups {
		cm := versioned(fmt.Sprint("cm-", i), fmt.Sprint(i+8))
		cm.Kind, cm.APIVersion = "ConfigMap", "v1"
		cm.Labels = map[string]string{"group": fmt.Sprint(i % groups)}
		s.one = func(*http.Request) any { return cm }
		got := &kates.Unstructured{}
		require.NoError(t, c.Update(t.Context(), cm, got))
		spoil := got.Object["metadata"].(map[string]any)["labels"].(map[string]any)
		spoil["group"] = "the target is the caller's"
	}
	_, err = w.Update(t.Context(), &snap)
	require.NoError(t, err)
	assert.Len(t, snap.ConfigMaps, alike*groups)
	assert.Less(t, labelMaps(snap.ConfigMaps), alike*groups*3/4)
	for _, u := range snap.ConfigMaps {
		var i int
		_, err := fmt.Sscanf(u.GetName(), "cm-%d", &i)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(i%groups), u.GetLabels()["group"])
	}
}

// complaints are the errors of a test that is part of this one.
type complaints struct {
	testing.TB
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (c *complaints) Helper()          {}
func (c *complaints) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

func (c *complaints) Error(args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = append(c.errors, fmt.Sprint(args...))
}

func TestG10TheDetectorFindsAWriteToAPartThatUntypedObjectsShare(t *testing.T) {
	inner := &complaints{TB: t}
	all := groupedMaps(t, func(c *kates.Client) *kates.Client { return c.With(katestest.DetectMutations(inner)) })
	all[7].Object["metadata"].(map[string]any)["labels"].(map[string]any)["group"] = "mine"
	for _, f := range inner.cleanups {
		f()
	}
	require.NotEmpty(t, inner.errors)
	named := 0
	for _, text := range inner.errors {
		assert.Contains(t, text, "metadata.labels.group")
		if strings.Contains(text, "object: ConfigMap ns/"+all[7].GetName()+" ") {
			named++
		}
	}
	assert.Equal(t, 1, named, inner.errors)
}
