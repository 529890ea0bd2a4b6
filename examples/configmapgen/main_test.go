package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// until cancels when all of the texts have been written.
type until struct {
	bytes.Buffer
	texts  []string
	cancel func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if !slices.ContainsFunc(u.texts, func(text string) bool { return !strings.Contains(u.String(), text) }) {
		u.cancel()
	}
	return n, err
}

func TestItGeneratesForAUserWhoChangesThings(t *testing.T) { synctest.Test(t, generates) }

func generates(t *testing.T) {
	// the simulation repeats every 3 seconds
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var errs bytes.Buffer
	out := &until{cancel: cancel, texts: []string{
		"template=default/web applied=2 unchanged=0 pruned=0",
		"template=default/web applied=1 unchanged=1 pruned=0", // another secret
		`reason=SecretNotFound message="configMaps[tls].data[ca]: there is no secret \"ca\""`,
		"template=default/web applied=1 unchanged=1 pruned=1", // which exists now
		"template=default/shop applied=1",
		"being deleted: removing its entry\" template=default/shop",
		"gone template=default/shop",
	}}
	require.NoError(t, run(ctx, nil, out, &errs), errs.String())
	for _, want := range out.texts {
		assert.Contains(t, out.String(), want)
	}
	assert.Contains(t, out.String(), "Outside of the cluster there is: map[default/web:[web-env ")
	assert.Empty(t, errs.String())
}

func TestItEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands still while the program works
		var out, errs bytes.Buffer
		start := time.Now()
		require.NoError(t, run(t.Context(), []string{"-for", "500ms"}, &out, &errs))
		assert.Equal(t, 500*time.Millisecond, time.Since(start))
		assert.Contains(t, out.String(), "applied=2")
		assert.Empty(t, errs.String())
	})
}

func TestMistakesOfTheUserAreOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"-kubeconfig", "/does/not/exist"},
		{"-for", "soon"},
		{"-for", "-1s"},
		{"-workers", "0"},
		{"-registry", filepath.Join(t.TempDir(), "no", "such", "folder"), "-context", "nobody's"},
		{"extra"},
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), args, &out, &errs)
		require.Error(t, err, args)
		assert.NotContains(t, err.Error(), "\n")
		assert.Empty(t, out.String())
	}
}
