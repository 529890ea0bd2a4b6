package fleet

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// The handlers keep the time of the last error, for all bubbles of synctest. In one whose clock
	// is behind, they would sleep until then.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}
