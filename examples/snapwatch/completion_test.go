package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKindsNamesAndFlagsAreCompleted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for args, wanted := range map[string]string{
			"po":                "pods",
			"svc,depl":          "svc,deployments",
			"svc/":              "svc/web",
			"cm,svc/":           "cm,svc/web",
			"--context=":        "blue",
			"-n ":               "elsewhere",
			"-o ":               "deltas",
			"--speed=":          "fastest",
			"ns/":               "ns/prod",
			"-A cm/":            "cm/other",
			"--context=blue ns": "namespaces",
		} {
			_, out, _ := c.run(append([]string{"__complete"}, strings.Split(args, " ")...)...)
			assert.Contains(t, strings.Split(out, "\n"), wanted, args)
		}
	})
}

func TestAPluginOfKubectlNamesItselfSo(t *testing.T) {
	assert.Equal(t, "kubectl snapwatch", nameOf([]string{"/usr/bin/kubectl-snapwatch"}))
	assert.Equal(t, "snapwatch", nameOf([]string{"/tmp/snapwatch"}))
	var out text
	s := streams{in: strings.NewReader(""), out: &out, err: &out}
	assert.Zero(t, execute(t.Context(), []string{"kubectl-snapwatch", "--help"}, s, nil))
	assert.Contains(t, out.String(), "Usage:\n  kubectl snapwatch [flags] (TYPE | TYPE/NAME)...\n")
	assert.Contains(t, out.String(), "\n  kubectl snapwatch svc deploy pods -n prod\n")
	assert.Zero(t, execute(t.Context(), []string{"snapwatch", "completion", "bash"}, s, nil))
	assert.Contains(t, out.take(), "bash completion V2 for snapwatch")
}
