package trial

import (
	"bytes"
	"runtime"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// InBubble reports whether the caller is in a bubble of testing/synctest. Nothing but the
// runtime's own description of a goroutine tells it at once.
func InBubble() bool {
	head := make([]byte, 200)
	head = head[:runtime.Stack(head, false)]
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return bytes.Contains(line, []byte("synctest bubble"))
}

// client-go reports errors that it cannot return to two handlers. One logs them. The other sleeps
// until a millisecond has passed since the last error, by a clock that was read before the bubble:
// there it sleeps for decades. So test binaries do without it. Nothing runs yet that could read
// this variable.
func init() {
	if testing.Testing() && len(utilruntime.ErrorHandlers) == 2 {
		utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	}
}
