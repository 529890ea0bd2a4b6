package many

import (
	"bufio"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAFleetOfFewClustersIsMeasured(t *testing.T) {
	stdin, end := io.Pipe()
	out, stdout := io.Pipe()
	go func() { _ = Serve(3, 1, 5, stdin, stdout) }()
	defer func() { _ = end.Close() }()
	var addresses []string
	for lines := bufio.NewScanner(out); len(addresses) < 3 && lines.Scan(); {
		addresses = append(addresses, lines.Text())
	}
	r, err := Measure(t.Context(), addresses, 3, 200*time.Millisecond, time.Millisecond)
	require.NoError(t, err)
	require.Len(t, r.Fleet, 3)
	require.Len(t, r.Alone, 3)
	require.Positive(t, r.First)
	require.Contains(t, r.String(), "| goroutines |")
}
