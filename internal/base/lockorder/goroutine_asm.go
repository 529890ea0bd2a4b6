//go:build lockorder && (amd64 || arm64)

package lockorder

// goroutine is the address of the runtime's state of the goroutine that calls it.
func goroutine() uint64
