package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTailIsTheEndOfWhatWasWritten(t *testing.T) {
	var out tail
	var all strings.Builder
	for i := range 10_000 {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		n, err := out.Write([]byte(line))
		require.NoError(t, err)
		require.Equal(t, len(line), n)
		want := all.String()
		require.Equal(t, want[max(0, len(want)-tailSize):], out.String())
		require.LessOrEqual(t, len(out.kept), 2*tailSize)
	}
}
