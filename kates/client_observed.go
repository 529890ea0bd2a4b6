package kates

import (
	"slices"
	"sync/atomic"

	"github.com/kates-go/kates/internal/guard"
)

// ClientObserver is an [Observer] that has another one for each client: one that knows whose doings
// it is told of. It learns of clients by itself, and so a program says WithObserver and no more.
type ClientObserver interface {
	Observer
	// ObserveClient is called when a client has been made with this observer. What it returns is
	// told what the client does, in place of this observer, unless it is nil. closed is called
	// once, when the client is closed; it may be nil. ObserveClient sends no requests.
	ObserveClient(c *Client) (o Observer, closed func())
}

// WithClusterName names the cluster of a client, for metrics, logs and the status page. It is for
// programs with clients of several clusters. Package fleet names those that it makes
// itself.
func WithClusterName(name string) Option {
	if name == "" {
		return senseless("WithClusterName: the name is empty; without the option the cluster has none")
	}
	return option(func(s *settings) { s.cluster = name })
}

// ClusterName returns what [WithClusterName] has set; "" if nothing has.
func (c *Client) ClusterName() string { return c.core.observed.cluster }

// observed is who is told what a client does. It does not change once the client is made.
type observed struct {
	cluster string // its name
	all     []Observer
	closed  []func()
	ended   atomic.Bool
}

// begin tells the observers of the client, which is whole but for these.
func (d *observed) begin(c *Client, s *settings) {
	d.cluster, d.all = s.cluster, slices.Clone(s.observers)
	for i, o := range d.all {
		if of, ok := o.(ClientObserver); ok {
			d.tell(c, "ObserveClient of an observer panicked", func() {
				own, closed := of.ObserveClient(c)
				if own != nil {
					d.all[i] = own
				}
				if closed != nil {
					d.closed = append(d.closed, closed)
				}
			})
		}
	}
}

// end tells them that the client is closed.
func (d *observed) end(c *Client) {
	if d.ended.Swap(true) {
		return
	}
	for _, closed := range d.closed {
		d.tell(c, "an observer panicked when the client was closed", closed)
	}
}

// tell calls a function of an observer. Its panic ends nothing.
func (d *observed) tell(c *Client, what string, f func()) {
	err := guard.Named(what, func() error {
		f()
		return nil
	})
	if err != nil {
		c.core.log.Error(err, "an observer failed", guard.Attribute(err)...)
	}
}
