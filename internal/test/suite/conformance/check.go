package conformance

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Check runs the cases on a server, each as a subtest, and compares the answers with those of the
// real one. A case whose ID is among gaps must be answered otherwise: who mends it removes it
// there.
//
// Cases that need a server whose storage can be compacted are for [CheckCompaction].
func Check(t *testing.T, server Server, gaps ...string) {
	t.Helper()
	all(t, server, false, gaps)
}

// CheckCompaction runs the cases that compact the server's storage, one after the other. The
// server needs a Compact, and has no cache that remembers what its storage has forgotten (the real
// one: the flag watch-cache=false).
func CheckCompaction(t *testing.T, server Server, gaps ...string) {
	t.Helper()
	all(t, server, true, gaps)
}

// CheckInBubbles runs all cases, each in a synctest bubble, on a server of its own, which start
// makes there: nobody waits for what takes a real server seconds.
func CheckInBubbles(t *testing.T, start func(t *testing.T) Server, gaps ...string) {
	t.Helper()
	for _, c := range checked(t, func(Case) bool { return true }, gaps) {
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := start(t)
				require.NoError(t, Setup(t.Context(), server))
				check(t, server, c, slices.Contains(gaps, c.ID()))
			})
		})
	}
}

// checked returns the cases that are wanted. All gaps are among them.
func checked(t *testing.T, wanted func(Case) bool, gaps []string) []Case {
	t.Helper()
	cases, err := Cases()
	require.NoError(t, err)
	cases = slices.DeleteFunc(cases, func(c Case) bool { return !wanted(c) })
	for _, gap := range gaps {
		require.True(t, slices.ContainsFunc(cases, func(c Case) bool { return c.ID() == gap }), "there is no case %q", gap)
	}
	return cases
}

func all(t *testing.T, server Server, alone bool, gaps []string) {
	t.Helper()
	require.NoError(t, Setup(t.Context(), server))
	for _, c := range checked(t, func(c Case) bool { return c.Alone == alone }, gaps) {
		t.Run(c.ID(), func(t *testing.T) {
			if !alone {
				t.Parallel()
			}
			check(t, server, c, slices.Contains(gaps, c.ID()))
		})
	}
}

func check(t *testing.T, server Server, c Case, gap bool) {
	t.Helper()
	wanted, err := answersOf(c.Topic)
	require.NoError(t, err)
	require.Contains(t, wanted, c.Name, "the case has no answers yet")
	got, err := Run(t.Context(), server, c)
	difference := ""
	if err == nil {
		difference = cmp.Diff(strings.Split(wanted[c.Name], "\n"), strings.Split(got, "\n"))
	}
	switch {
	case gap && err == nil && difference == "":
		t.Errorf("it is answered as the real server does: %q is no gap any more", c.ID())
	case gap:
	case err != nil:
		t.Error(err)
	case difference != "":
		t.Errorf("the server answers otherwise (-real +this):\n%s\nthe script:\n%s", difference, c.text)
	}
}

// Setup makes the custom kinds of the cases, and returns when they are served.
func Setup(ctx context.Context, server Server) error {
	files, err := fs.Glob(testdata, "testdata/*.yaml")
	if err != nil {
		return err
	}
	r := &run{server: server}
	if err := r.connect(); err != nil {
		return err
	}
	for _, file := range files {
		text, err := testdata.ReadFile(file)
		if err != nil {
			return err
		}
		if err := r.install(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// install makes a custom kind, unless it is there.
func (r *run) install(ctx context.Context, text []byte) error {
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	made, err := r.ask(ctx, request{method: http.MethodPost, target: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: body})
	if err != nil {
		return err
	}
	if made.code != http.StatusCreated && made.code != http.StatusConflict {
		return fmt.Errorf("%d %v", made.code, made.body)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		list := step{verb: http.MethodGet, modifiers: []string{"until 200"},
			target: fmt.Sprintf("/apis/%s/%s/%s", crd.Spec.Group, v.Name, crd.Spec.Names.Plural)}
		if _, err := r.repeat(ctx, &list); err != nil {
			return err
		}
	}
	return nil
}

// Gaps returns the IDs of the cases that a server answers otherwise than the real one.
func Gaps(ctx context.Context, server Server) (gaps []string, err error) {
	if err := Setup(ctx, server); err != nil {
		return nil, err
	}
	cases, err := Cases()
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		if c.Alone {
			continue
		}
		wanted, err := answersOf(c.Topic)
		if err != nil {
			return nil, err
		}
		if got, err := Run(ctx, server, c); err != nil || got != wanted[c.Name] {
			gaps = append(gaps, c.ID())
		}
	}
	return gaps, nil
}
