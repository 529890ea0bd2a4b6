// Package conformance compares the real API server with the answers that the library's tests rely
// on. It has a cluster of its own, whose storage is compacted.
package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/internal/suite/conformance"
)

var (
	update = flag.Bool("update", false, "write the answers of this server, instead of comparing them")
	topics = flag.String("topics", "", "with -update: only these topics, separated by commas")
)

var server *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) int {
	var err error
	if server, err = cluster.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err = server.Stop(); err == nil {
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
	s := conformance.Server{Config: server.Config, Compact: server.Compact}
	if !*update {
		conformance.Check(t, s)
		return
	}
	only := strings.FieldsFunc(*topics, func(r rune) bool { return r == ',' })
	require.NoError(t, conformance.Update(t.Context(), s, "../../internal/suite/conformance/testdata", 8, only...))
}
