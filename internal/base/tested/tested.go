// Package tested is what the library and a test around it know of each other: whether a goroutine
// is in a bubble, and which clients a program under test has made. It does nothing in a program
// that runs in no test.
package tested

import (
	"bytes"
	"net/http"
	"runtime"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// InBubble reports whether the caller is in a bubble of testing/synctest. Nothing but the
// runtime's own description of a goroutine tells it at once.
func InBubble() bool {
	head := make([]byte, 200)
	head = head[:runtime.Stack(head, false)]
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return bytes.Contains(line, []byte("synctest bubble"))
}

// Witness is a transport of a test that is told of each client that sends through it.
type Witness interface {
	http.RoundTripper
	// MadeClient is told of a *kates.Client before it sends anything.
	MadeClient(client any)
}

// TellWitness tells the first witness among the transports, the outermost one first, of a client.
func TellWitness(transport http.RoundTripper, client any) {
	for transport != nil {
		if w, is := transport.(Witness); is {
			w.MadeClient(client)
			return
		}
		wrapper, is := transport.(utilnet.RoundTripperWrapper)
		if !is {
			return
		}
		transport = wrapper.WrappedRoundTripper()
	}
}
