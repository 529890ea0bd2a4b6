package apiserver

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is one cluster for all tests of a test binary. The first test that asks for it starts it.
// [Share] makes a Shared. It is safe for concurrent use.
type Shared struct {
	options []Option

	starting sync.Mutex // held while the cluster starts: the other tests wait
	begun    bool
	cluster  *Cluster
	err      error
}

// Share returns a cluster that is not started yet. It belongs into a variable of the package:
//
//	var shared = apiserver.Share(apiserver.WithCRDs("testdata/crds"))
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		cluster := shared.Cluster(t)
//		namespace := cluster.Namespace(t)
//		...
//	}
//
// Without Run the cluster ends within seconds after the test binary has.
func Share(options ...Option) *Shared { return &Shared{options: options} }

// Cluster returns the cluster, and starts it first if no test has. If the start fails, it fails
// this test and all later ones, without another try.
func (s *Shared) Cluster(t testing.TB) *Cluster {
	t.Helper()
	s.starting.Lock()
	defer s.starting.Unlock()
	if !s.begun {
		s.begun = true
		ctx, cancel := inTime(t)
		defer cancel()
		s.cluster, s.err = Start(ctx, s.options...)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

// Run runs all tests, ends the cluster if one of them has started it, and returns the code for
// os.Exit. When it returns, no process and no goroutine of the cluster is left. m is the
// *testing.M of TestMain.
func (s *Shared) Run(m interface{ Run() int }) int {
	code := m.Run()
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.cluster == nil {
		return code
	}
	if err := s.cluster.Kill(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
