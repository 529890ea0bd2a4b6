package main

import (
	"bytes"
	"context"
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

func TestAVersionGoesFromStageToStage(t *testing.T) { synctest.Test(t, promotes) }

func promotes(t *testing.T) {
	// the simulation repeats every 7.5 seconds
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var errs bytes.Buffer
	out := &until{cancel: cancel, texts: []string{
		`version=1.1 stage=done message="version 1.1 is everywhere"`,
		`version=1.2-broken stage=test message="shop in test: Failed`,
		`version=1.3 stage=done`,
		`version=1.4 stage=live message="shop in west: `,
		`version=1.4 stage=done`,
	}}
	require.NoError(t, run(ctx, nil, out, &errs), errs.String())
	for _, want := range out.texts {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "cluster=east kind=Deployment name=shop from=shop:1.1 to=shop:1.2-broken")
	order := []string{
		"cluster=test kind=Deployment name=shop from=shop:1.0 to=shop:1.1", "cluster=west kind=Site name=pages from=1.0 to=1.1",
		"stage=done message=\"version 1.1", "cluster=test kind=Site name=pages from=1.1 to=1.2-broken",
	}
	at := -1
	for _, want := range order {
		next := strings.Index(out.String(), want)
		assert.Greater(t, next, at, "%s is not there, or too early:\n%s", want, out)
		at = next
	}
	assert.Empty(t, errs.String())
}

func TestItEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands still while the program works
		var out, errs bytes.Buffer
		start := time.Now()
		require.NoError(t, run(t.Context(), []string{"-for", "500ms"}, &out, &errs))
		assert.Equal(t, 500*time.Millisecond, time.Since(start))
		assert.Contains(t, out.String(), "version 1.0 is everywhere")
	})
}

func TestMistakesOfTheUserAreOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"-kubeconfig", "/does/not/exist"},
		{"-contexts", "a,b"},
		{"-for", "soon"},
		{"-for", "-1s"},
		{"extra"},
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), args, &out, &errs)
		require.Error(t, err, args)
		text := strings.SplitN(errs.String(), "\n", 2)[0]
		if text == "" {
			text = err.Error()
		}
		assert.NotContains(t, text, "panic")
		assert.NotEmpty(t, text, args)
		assert.Empty(t, out.String(), args)
	}
}
