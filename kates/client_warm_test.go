package kates_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// warmForms is what the tests of warm starts watch: every form.
type warmForms struct {
	ConfigMaps []*kates.ConfigMap
	Untyped    []*kates.Unstructured          `kates:"configmaps"`
	Metadata   []*kates.PartialObjectMetadata `kates:"configmaps"`
	Fields     []configLite                   `kates:"configmaps"`
}

type configLite struct {
	Metadata struct{ Name string }
	Data     map[string]string
}

func TestWarmSmoke(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t)
		seed := connected(t, server.Config)
		for i := range 5 {
			cm := &kates.ConfigMap{}
			cm.Namespace, cm.Name = "default", fmt.Sprint("cm-", i)
			cm.Data = map[string]string{"k": fmt.Sprint(i)}
			require.NoError(t, seed.Create(t.Context(), cm, nil))
		}
		first := connected(t, server.Config, kates.WithWarmStart(kates.WarmStartDir(dir)))
		_, snap := started[warmForms](t, first)
		assert.Len(t, snap.ConfigMaps, 5)
		for _, q := range first.Status().Queries {
			t.Log(q.Name, q.Start)
		}
		first.Close()
		second := connected(t, server.Config, kates.WithWarmStart(kates.WarmStartDir(dir)))
		_, again := started[warmForms](t, second)
		assert.Equal(t, snap, again)
		for _, q := range second.Status().Queries {
			t.Log(q.Name, q.Start)
			assert.Equal(t, "warm", q.Start)
		}
	})
}
