// Package ownflag has only tests: of a test package that has a flag -update of its own.
package ownflag

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kates-go/kates/internal/test/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	asText = os.Getenv("GOLDEN_FLAG") == "text"
	update = ownFlag()
)

// ownFlag defines the package's flag: a boolean, or a text.
func ownFlag() func() string {
	if asText {
		text := flag.String("update", "", "what to update")
		return func() string { return *text }
	}
	is := flag.Bool("update", false, "update the files of this package")
	return func() string { return map[bool]string{true: "true", false: "false"}[*is] }
}

// TestFlags is run by tests, as another process. It prints the package's flag, and what Updating
// makes of it.
func TestFlags(t *testing.T) {
	file := os.Getenv("GOLDEN_FILE")
	if file == "" {
		return // it is another test's
	}
	text := update()
	if golden.Updating() {
		text += " updating"
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func TestAFlagOfThePackageStaysItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		form  string
		flags []string
		want  string
	}{
		"a boolean, set":       {"", []string{"-update"}, "true updating"},
		"a boolean, not set":   {"", nil, "false"},
		"a boolean, false":     {"", []string{"--update=false"}, "false"},
		"a text":               {"text", []string{"-update", "one"}, "one"},
		"a text, and our name": {"text", []string{"-update=one", "-katestest.update"}, "one updating"},
	} {
		file := filepath.Join(t.TempDir(), "out")
		self, err := os.Executable()
		require.NoError(t, err)
		run := exec.CommandContext(t.Context(), self, append([]string{"-test.run=^TestFlags$"}, c.flags...)...)
		run.Env = append(os.Environ(), "GOLDEN_FILE="+file, "GOLDEN_FLAG="+c.form)
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got), name)
	}
}
