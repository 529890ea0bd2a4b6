package golden

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATextIsComparedWithItsFile(t *testing.T) {
	if Updating() {
		return // all files would be written
	}
	file := filepath.Join(t.TempDir(), "some", "folder", "x.yaml")
	_, err := Check(file, "a: 1\n")
	require.ErrorContains(t, err, "go test -update writes it. It would be:\na: 1\n")
	require.NoError(t, write(file, "a: 1\nb: 2\n"))
	wrote, err := Check(file, "a: 1\nb: 2\n")
	require.NoError(t, err)
	assert.False(t, wrote)
	before := "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\n"
	require.NoError(t, write(file, before))
	_, err = Check(file, strings.Replace(before, "b: 2", "b: 3", 1))
	require.ErrorContains(t, err, "go test -update accepts it")
	require.ErrorContains(t, err, ":\n  a: 1\n- b: 2\n+ b: 3\n  c: 3\n  d: 4\n  e: 5\n")
	require.NoError(t, os.WriteFile(file, []byte("a: 1\r\nb: 2\r\n"), 0o600))
	_, err = Check(file, "a: 1\nb: 2\n")
	require.NoError(t, err, "git has changed the ends of lines")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "y"), nil, 0o600))
	_, err = Check(filepath.Join(filepath.Dir(file), "y", "z.yaml"), "a: 1\n")
	require.ErrorContains(t, err, "read the golden file: ")
}

// TestFlags is run by tests, as another process.
func TestFlags(t *testing.T) {
	file := os.Getenv("GOLDEN_FILE")
	if file == "" {
		return // it is another test's
	}
	if _, err := Check(file, "new\n"); err != nil {
		t.Fatal(err)
	}
}

func TestTheFlagUpdateWritesFiles(t *testing.T) {
	for _, flags := range [][]string{
		{"-update"}, {"--update"}, {"-update=true"}, {"-test.v", "-update"}, {"-katestest.update"}, {"-update", "-katestest.update"},
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		out, err := runAgain(t, file, flags...)
		require.NoError(t, err, "%v: %s", flags, out)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, "new\n", string(content))
	}
}

func TestWithoutTheFlagNoFileIsWritten(t *testing.T) {
	for _, flags := range [][]string{nil, {"-update=false"}, {"-katestest.update=false"}} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		out, err := runAgain(t, file, flags...)
		require.Error(t, err, "%v: %s", flags, out)
		assert.Contains(t, out, "there is no golden file")
		assert.NoFileExists(t, file)
	}
}

func runAgain(t *testing.T, file string, flags ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, append([]string{"-test.run=^TestFlags$"}, flags...)...)
	c.Env = append(os.Environ(), "GOLDEN_FILE="+file)
	out, err := c.CombinedOutput()
	return string(out), err
}
