package campaign

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/bench/internal/consumer"
)

func TestEachRunStartsWithAnotherConsumerAndNoneIsAlwaysAfterTheSame(t *testing.T) {
	orders := func(names string, runs int) (all []string) {
		var consumers []consumer.Variant
		for _, name := range names {
			consumers = append(consumers, consumer.Variant{Name: string(name)})
		}
		for n := range runs {
			order := ""
			for _, v := range rotated(consumers, n) {
				order += v.Name
			}
			all = append(all, order)
		}
		assert.Equal(t, names[:1], consumers[0].Name, "the list stays")
		return all
	}
	assert.Equal(t, []string{"a", "a"}, orders("a", 2))
	assert.Equal(t, []string{"ab", "ba", "ab", "ba"}, orders("ab", 4))
	assert.Equal(t, []string{"abc", "bac", "cab", "acb", "bca", "cba"}, orders("abc", 6))
	assert.Equal(t, []string{"abcd", "badc", "cdab", "dcba", "abcd"}, orders("abcd", 5))
	assert.Empty(t, rotated[consumer.Variant](nil, 3))
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
