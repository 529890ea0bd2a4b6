package kates_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// The fake has versions of lists, and never brings a watch up to another's.
func TestAUnionOnTheFakeIsShownWhateverTheVersionsOfItsLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewClient(t)
		var snap struct{ Maps []*kates.ConfigMap }
		q := kates.Query{Name: "Maps", Kind: "configmaps", Namespace: "x", FieldSelector: "metadata.name=one"}
		acc, err := c.Watch(t.Context(), q)
		require.NoError(t, err)
		synctest.Wait()
		cm := func(name string) *kates.ConfigMap {
			cm := &kates.ConfigMap{}
			cm.Namespace, cm.Name = "x", name
			return cm
		}
		require.NoError(t, c.Create(t.Context(), cm("two"), nil)) // the second list is newer
		q.FieldSelector = ""
		q.AnyOf = []kates.Selection{{FieldSelector: "metadata.name=one"}, {FieldSelector: "metadata.name=two"}}
		require.NoError(t, acc.Replace(t.Context(), q))
		synctest.Wait()
		time.Sleep(time.Second)
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Len(t, snap.Maps, 1)
		require.NoError(t, c.Delete(t.Context(), cm("two"), nil))
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Empty(t, snap.Maps)
	})
}

func TestAnOwnDeletionLeavesAUnionOnTheFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewClient(t)
		var snap struct{ Maps []*kates.ConfigMap }
		cm := &kates.ConfigMap{}
		cm.Namespace, cm.Name = "x", "one"
		q := kates.Query{Name: "Maps", Kind: "configmaps", Namespace: "x", FieldSelector: "metadata.name=one"}
		acc, err := c.Watch(t.Context(), q)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, c.Create(t.Context(), cm, nil))
		q = kates.Query{Name: "Maps", Kind: "configmaps", AnyOf: []kates.Selection{
			{LabelSelector: "app=1"}, {FieldSelector: "metadata.namespace=x,metadata.name=one"},
		}}
		require.NoError(t, acc.Replace(t.Context(), q))
		time.Sleep(time.Minute)
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Len(t, snap.Maps, 1)
		time.Sleep(time.Minute)
		require.NoError(t, c.Delete(t.Context(), cm, nil))
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Empty(t, snap.Maps)
	})
}
