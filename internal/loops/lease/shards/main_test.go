package shards

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// steps is the length of one run of the model. With rapid's 30 hardly any replica ever has a key.
const steps = "150"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.steps", steps); err != nil { // the command line comes later
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
