package shards

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// steps of one run of the model: with rapid's 30 hardly anybody gets to have a key.
const steps = "150"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.steps", steps); err != nil { // the command line comes later
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
