package fake

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// AheadMost is how many events of a reactor's watch are read ahead.
const AheadMost = aheadMost

// Block holds the lock of a server, as a long list does, until it is called off.
func (s *Server) Block() (unblock func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

// Pump reads a watch whose events nobody takes, until ctx ends.
func Pump(ctx context.Context, upstream watch.Interface, late bool) {
	w := &watcher{
		upstream: upstream, late: late, drains: make(chan chan struct{}), notices: make(chan notice),
		pumped: make(chan struct{}),
	}
	w.pump(ctx)
}
