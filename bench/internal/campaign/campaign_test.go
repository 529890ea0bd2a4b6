package campaign

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/bench/internal/consumer"
)

func TestNoConsumerIsAlwaysAfterTheSame(t *testing.T) {
	all := []consumer.Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	order := func(n int) (s string) {
		for _, v := range rotated(all, n) {
			s += v.Name
		}
		return s
	}
	assert.Equal(t, []string{"abc", "acb", "cab", "cba"}, []string{order(0), order(1), order(2), order(3)})
	assert.Equal(t, "a", all[0].Name, "the list stays")
	assert.Empty(t, rotated(nil, 3))
}

func TestTheMachineIsDescribedWithoutItsName(t *testing.T) {
	m := machine(t.Context())
	assert.Positive(t, m.Cores)
	assert.NotEmpty(t, m.Go)
	assert.NotEmpty(t, m.Versions)
	name, err := os.Hostname()
	require.NoError(t, err)
	assert.NotContains(t, m.CPU+m.OS, name)
}

func TestValuesOfSystemFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("other\nmodel name\t: A CPU @ 2 GHz\nmodel name\t: B\n"), 0o600))
	assert.Equal(t, "A CPU @ 2 GHz", valueOf(path, "model name"))
	assert.Empty(t, valueOf(path, "nothing"))
	assert.Empty(t, valueOf(path+"-not", "model name"))
}
