// Package tested is what the library knows of a test around it: whether a goroutine is in a bubble.
package tested

import (
	"bytes"
	"runtime"
)

// InBubble reports whether the caller is in a bubble of testing/synctest. Nothing but the
// runtime's own description of a goroutine tells it at once.
func InBubble() bool {
	head := make([]byte, 200)
	head = head[:runtime.Stack(head, false)]
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return bytes.Contains(line, []byte("synctest bubble"))
}
