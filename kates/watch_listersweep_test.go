package kates_test

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// short is the part of an object that a program uses: the reader converts it once, and keeps it.
type short struct {
	Metadata struct{ Name string }
	Data     map[string]string
}

func TestG3AReaderForgetsConversionsOfObjectsThatAreGone(t *testing.T) {
	c := katestest.New(t, katestest.WithoutMutationDetector()).Client // it holds what was handed out
	reader, err := kates.NewLister[*short](t.Context(), c, kates.Query{Kind: "cm"})
	require.NoError(t, err)
	defer reader.Close()
	const rounds, each = 60, 50 // a fake's watch takes no more than 100 at once
	var passed []weak.Pointer[short]
	for round := range rounds {
		for i := range each {
			require.NoError(t, c.Create(t.Context(), labelled(fmt.Sprint(round, "-", i), "yes"), nil))
		}
		require.NoError(t, c.Sync(t.Context()))
		all, err := reader.List("", nil)
		require.NoError(t, err)
		require.Len(t, all, each)
		again, err := reader.List("", nil)
		require.NoError(t, err)
		require.Same(t, all[0], again[0], "converted once")
		for _, o := range all {
			passed = append(passed, weak.Make(o))
			require.NoError(t, c.Delete(t.Context(), labelled(o.Metadata.Name, "yes"), nil))
		}
		require.NoError(t, c.Sync(t.Context()))
	}
	runtime.GC()
	held := 0
	for _, p := range passed {
		if p.Value() != nil {
			held++
		}
	}
	assert.Less(t, held, rounds*each/2, "of %d", rounds*each)
	runtime.KeepAlive(reader)
}
