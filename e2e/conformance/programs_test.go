package conformance

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/test/suite/conformance"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	programs = flag.Int("programs", 60, "how many random programs the real server and the one in memory run")
	first    = flag.Int("first-program", 0, "the number of the first one")
)

// requests is how many requests a random program has, beside those that tell what has happened.
const requests = 50

// TestRandomProgramsAreAnsweredAlike runs programs on the real server and on the one in memory.
// UIDs, times and tokens are not compared, and versions by their order. The number of a program is
// its seed.
func TestRandomProgramsAreAnsweredAlike(t *testing.T) {
	inMemory := katestest.NewServer(t, katestest.WithoutControllers())
	one, other := conformance.Server{Config: server.Config}, conformance.Server{Config: inMemory.Config}
	require.NoError(t, conformance.Setup(t.Context(), one))
	require.NoError(t, conformance.Setup(t.Context(), other))
	drawn := rapid.Custom(func(t *rapid.T) conformance.Case { return conformance.Program(t, requests) })
	t.Run("programs", func(t *testing.T) {
		for i := *first; i < *first+*programs; i++ {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				difference, err := conformance.Compare(t.Context(), one, other, drawn.Example(i))
				require.NoError(t, err)
				require.Empty(t, difference)
			})
		}
	})
}
