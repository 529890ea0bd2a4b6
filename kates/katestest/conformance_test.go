package katestest_test

import (
	"context"
	"testing"

	"github.com/kates-go/kates/internal/suite/conformance"
	"github.com/kates-go/kates/kates/katestest"
)

// gaps are what the server in memory answers otherwise.
var gaps = []string{
	"custom/rules are checked",                  // x-kubernetes-validations: CEL would be a large dependency
	"discovery/the resources of the core group", // what needs a kubelet, and requests that store nothing, are not served
}

// TestAServerInMemoryAnswersAsARealOneDoes compares with the answers of the real API server, which
// the e2e tests compare with, too. They have no controllers.
func TestAServerInMemoryAnswersAsARealOneDoes(t *testing.T) {
	s := katestest.NewServer(t, katestest.WithoutControllers())
	conformance.Check(t, conformance.Server{Config: s.Config}, gaps...)
}

// TestAServerInMemoryForgetsAsARealOneDoes compares after the storage has been compacted.
func TestAServerInMemoryForgetsAsARealOneDoes(t *testing.T) {
	s := katestest.NewServer(t, katestest.WithoutControllers())
	conformance.CheckCompaction(t, conformance.Server{Config: s.Config, Compact: func(context.Context) error {
		s.Compact()
		return nil
	}})
}
