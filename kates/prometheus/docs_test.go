package prometheus

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var documented = regexp.MustCompile("(?m)^\\| `(kates_\\w+)` \\| (\\w+) \\| (.*?) \\| (.*?) \\| (.+?) \\|$")

func TestTheDocumentHasEveryMetricAsItIs(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	var is, want []string
	for _, m := range documented.FindAllStringSubmatch(string(text), -1) {
		is = append(is, strings.Join(m[1:5], " | "))
	}
	for _, m := range all {
		want = append(want, strings.Join([]string{m.name, m.kind, strings.Join(m.labels, ", "), m.help}, " | "))
	}
	assert.ElementsMatch(t, want, is, "name, type, labels and help")
}
