// Package browser looks at the status page in a real browser, Debian's Chromium. The program that
// the page is about runs on katestest's server in memory. It starts no cluster.
package browser

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
