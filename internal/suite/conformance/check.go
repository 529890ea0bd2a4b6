package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Check runs all cases on a server, each as a subtest, and compares the answers with those of the
// real one. A case whose ID is among gaps must be answered otherwise: who mends it removes it there.
func Check(t *testing.T, server Server, gaps ...string) {
	t.Helper()
	require.NoError(t, Setup(t.Context(), server))
	cases, err := Cases()
	require.NoError(t, err)
	known := map[string]bool{}
	for _, c := range cases {
		known[c.ID()] = true
	}
	for _, gap := range gaps {
		require.True(t, known[gap], "there is no case %q", gap)
	}
	// Those that run alone come last: a group of parallel tests ends before the next test begins.
	t.Run("all", func(t *testing.T) {
		for _, c := range cases {
			if !c.Alone {
				t.Run(c.ID(), func(t *testing.T) {
					t.Parallel()
					check(t, server, c, slices.Contains(gaps, c.ID()))
				})
			}
		}
	})
	for _, c := range cases {
		if c.Alone {
			t.Run("alone/"+c.ID(), func(t *testing.T) { check(t, server, c, slices.Contains(gaps, c.ID())) })
		}
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

// Update runs all cases whose topic is among topics (or all) on the real server, and writes their
// answers into a folder. workers is how many run at once.
func Update(ctx context.Context, server Server, folder string, workers int, topics ...string) error {
	if err := Setup(ctx, server); err != nil {
		return err
	}
	cases, err := Cases()
	if err != nil {
		return err
	}
	cases = slices.DeleteFunc(cases, func(c Case) bool { return len(topics) > 0 && !slices.Contains(topics, c.Topic) })
	answers, failed := make([]string, len(cases)), make([]error, len(cases))
	var running sync.WaitGroup
	room := make(chan struct{}, workers)
	for i, c := range cases {
		if c.Alone {
			continue
		}
		room <- struct{}{}
		running.Go(func() {
			answers[i], failed[i] = Run(ctx, server, c)
			<-room
		})
	}
	running.Wait()
	for i, c := range cases {
		if c.Alone {
			answers[i], failed[i] = Run(ctx, server, c)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	texts := map[string]string{}
	for i, c := range cases {
		texts[c.Topic] += "=== " + c.Name + "\n" + answers[i] + "\n"
	}
	for topic, text := range texts {
		if err := os.WriteFile(filepath.Join(folder, topic+".answers"), []byte(strings.TrimSuffix(text, "\n")), 0o644); err != nil {
			return err
		}
	}
	return nil
}
