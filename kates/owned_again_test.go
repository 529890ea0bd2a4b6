package kates_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// applier is a process that applies a set and watches what it has applied, in a Go type.
type applier struct {
	*testing.T
	server *katestest.Server
	*katestest.Faults
	client *kates.Client
	watch  *kates.Lister[*kates.ConfigMap]
	set    kates.OwnedSet
}

func startApplier(t *testing.T, server *katestest.Server, set kates.OwnedSet, options ...kates.Option) *applier {
	a := &applier{T: t, server: server, Faults: katestest.NewFaults(t, 1), set: set}
	config := rest.CopyConfig(server.Config)
	config.Wrap(a.Wrap)
	var err error
	a.client, err = kates.NewClientFromRESTConfig(config, options...)
	require.NoError(t, err)
	a.watch, err = kates.NewLister[*kates.ConfigMap](t.Context(), a.client, kates.Query{})
	require.NoError(t, err)
	return a
}

// apply applies the set, and returns the number of requests by verb.
func (a *applier) apply(opts ...kates.WriteOption) (kates.OwnedResult, map[string]int) {
	a.Helper()
	before := len(a.Requests(katestest.Match{}))
	result, err := a.client.ApplyOwned(a.Context(), a.set, opts...)
	require.NoError(a, err)
	seen := make(map[string]int)
	for _, r := range a.Requests(katestest.Match{})[before:] {
		if r.Verb != "watch" {
			seen[r.Verb]++
		}
	}
	return result, seen
}

// another patches an object as somebody else, and waits until the watch has brought that.
func (a *applier) another(name, patch string) {
	a.Helper()
	c := a.server.Client(a.T, kates.WithFieldManager("another"))
	o := configMap(name)
	o.Namespace = "default"
	require.NoError(a, c.Patch(a.Context(), o, kates.MergePatchType, []byte(patch), nil))
	c.Close()
	require.NoError(a, a.client.Sync(a.Context()))
}

func ofAppliers(t *testing.T, test func(t *testing.T, server *katestest.Server, set kates.OwnedSet)) {
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t)
		c := server.Client(t)
		defer c.Close()
		root := configMap("root")
		root.Namespace = "default"
		require.NoError(t, c.Create(t.Context(), root, root))
		set := kates.OwnedSet{Owner: root, SetName: "set", Existing: []kates.Object{}}
		for i := range 20 {
			set.Objects = append(set.Objects, configMap(fmt.Sprintf("c%02d", i), "k", fmt.Sprint(i)))
		}
		test(t, server, set)
	})
}

func TestApplyOwnedOfAProcessThatBeginsAnewKnowsWhatWasAppliedFromItsWatchOfAGoType(t *testing.T) {
	ofAppliers(t, func(t *testing.T, server *katestest.Server, set kates.OwnedSet) {
		first := startApplier(t, server, set)
		result, _ := first.apply()
		assert.Len(t, result.Applied, 20)
		// Some of it changes: by its value, by its owner, beside it, by what says what it is.
		first.another("c01", `{"data":{"k":"drifted"}}`)
		first.another("c02", `{"data":{"k":"drifted"}}`)
		first.another("c02", `{"data":{"k":"2"}}`)
		first.another("c03", `{"data":{"other":"theirs"}}`)
		first.another("c04", `{"metadata":{"annotations":{"kates.io/applied":"something"}}}`)
		first.another("c07", `{"metadata":{"annotations":{"kates.io/applied":null}}}`)
		require.NoError(t, first.client.Delete(t.Context(), set.Objects[8], nil))
		first.client.Close()

		set.Objects[5] = configMap("c05", "k", "5", "l", "more")
		set.Objects[6] = configMap("c06")
		next := startApplier(t, server, set)
		result, seen := next.apply(kates.ForceOwnership())
		assert.ElementsMatch(t, []string{"c01", "c02", "c04", "c05", "c06", "c07", "c08"}, ofResult(result.Applied))
		assert.Len(t, result.Unchanged, 13)
		assert.Equal(t, map[string]int{"patch": 7}, seen, "what the server need not be asked is not asked")
		_, seen = next.apply()
		assert.Empty(t, seen)
		o, err := next.watch.Get("default", "c03")
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"k": "3", "other": "theirs"}, o.Data)
		assert.Empty(t, o.ManagedFields, "they are read, and dropped")
		next.client.Close()

		// With managedFields in the watch no request is needed, either.
		next = startApplier(t, server, set, kates.WithManagedFields())
		result, seen = next.apply()
		assert.Len(t, result.Unchanged, 20)
		assert.Empty(t, seen)
		next.client.Close()

		// Another manager has applied nothing of it.
		next = startApplier(t, server, set, kates.WithFieldManager("other"))
		result, seen = next.apply()
		assert.Len(t, result.Applied, 20)
		assert.Equal(t, map[string]int{"list": 1, "patch": 20}, seen)
		next.client.Close()
		// And one that a call names is not the client's.
		next = startApplier(t, server, set)
		result, _ = next.apply(kates.FieldManager("third"))
		assert.Len(t, result.Applied, 20)
		next.client.Close()
	})
}

func TestApplyOwnedThroughAWatchOfAGoTypeSendsNothingWhereOthersHaveChangedWhatIsTheirs(t *testing.T) {
	ofAppliers(t, func(t *testing.T, server *katestest.Server, set kates.OwnedSet) {
		a := startApplier(t, server, set)
		defer a.client.Close()
		a.apply()
		for i := range 3 {
			for n := range set.Objects {
				a.another(fmt.Sprintf("c%02d", n), fmt.Sprintf(`{"data":{"other":"theirs %d"}}`, i))
			}
			result, seen := a.apply()
			assert.Len(t, result.Unchanged, 20)
			assert.Empty(t, seen)
		}
		a.another("c07", `{"data":{"k":"drifted"}}`)
		result, seen := a.apply(kates.ForceOwnership())
		assert.Equal(t, []string{"c07"}, ofResult(result.Applied))
		assert.Equal(t, map[string]int{"patch": 1}, seen)
	})
}
