// Package conformance compares the real API server with the answers that the library's tests rely
// on. It has clusters of its own.
package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/internal/test/suite/conformance"
)

var (
	update = flag.Bool("update", false, "write the answers of this server, instead of comparing them")
	topics = flag.String("topics", "", "with -update: only these topics, separated by commas")
)

// server is one with a cache, as they all have. Storage is compacted behind the one without.
var server, uncached *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) (code int) {
	var err error
	if server, err = cluster.Start(context.Background()); err == nil {
		if uncached, err = cluster.Start(context.Background(), "watch-cache=false"); err == nil {
			code = m.Run()
			err = uncached.Stop()
		}
		err = errors.Join(err, server.Stop())
	}
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// TestConformanceOfTheRealServer finds that a new version of the server answers otherwise. With
// -update, the new answers are written, and the difference is for the reader of the commit.
func TestConformanceOfTheRealServer(t *testing.T) {
	all := conformance.Server{Config: server.Config}
	compacted := conformance.Server{Config: uncached.Config, Compact: uncached.Compact}
	if *update {
		only := strings.FieldsFunc(*topics, func(r rune) bool { return r == ',' })
		require.NoError(t, conformance.Update(t.Context(), all, compacted, "../../internal/test/suite/conformance/testdata", 8, only...))
		return
	}
	t.Run("with a cache", func(t *testing.T) { conformance.Check(t, all) })
	t.Run("compacted", func(t *testing.T) { conformance.CheckCompaction(t, compacted) })
}
