package trial

import (
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// client-go reports errors that it cannot return to two handlers. One logs them. The other sleeps
// until a millisecond has passed since the last error, by a clock that was read before the bubble:
// there it sleeps for decades. So test binaries do without it. Nothing runs yet that could read
// this variable.
func init() {
	if testing.Testing() && len(utilruntime.ErrorHandlers) == 2 {
		utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	}
}
