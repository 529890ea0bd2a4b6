package apiserver

import "sync"

// tailSize is enough for the stack trace of a process that panics.
const tailSize = 16 << 10

// tail is an io.Writer that keeps the end of what is written to it. The zero value is ready. It
// is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	// It cuts at twice the size, so that each byte is moved at most once.
	if over := len(t.kept) - tailSize; over > tailSize {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String returns the last tailSize bytes, or all if there are fewer.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept[max(0, len(t.kept)-tailSize):])
}
