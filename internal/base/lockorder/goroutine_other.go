//go:build lockorder && !amd64 && !arm64

package lockorder

import "runtime"

// goroutine is the number of the goroutine that calls it, which takes some microseconds: it is at
// the beginning of a stack trace, "goroutine 18 [running]:".
func goroutine() (id uint64) {
	var text [32]byte
	n := runtime.Stack(text[:], false)
	for _, c := range text[len("goroutine "):n] {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + uint64(c-'0')
	}
	return id
}
