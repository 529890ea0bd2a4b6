package shared

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/client/connection"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/podlogs"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/internal/loops/lease"
)

// Client is the part that a client shares with the clients that With returns. Fields that change
// are safe for concurrent use: they have locks of their own, or are atomic. The others do not
// change.
type Client struct {
	core.Core
	Discovery discovery.CachedDiscoveryInterface // nil for a bare dynamic.Interface
	Untyped   bool                               // no stream has Go types
	Leases    Leases
	Loops     keyed.Loops // those that run
	Told      *Told
	// Hang is how long a step may take before the client is unhealthy.
	Hang time.Duration
	// Link is nil for a client which has only a dynamic.Interface, and so are the next two.
	Link      *connection.Link
	Logs      podlogs.Source
	Configure func(*rest.Config) *rest.Config // what the client's options make of a configuration

	ready        atomic.Bool               // it was, once
	reconnecting chan struct{}             // holds one value while a Reconnect runs
	uid          atomic.Pointer[types.UID] // of the cluster, once it was read
	untold       atomic.Bool               // the cluster has refused to say its UID
}

// Leases are how a client stands for Leases, and how its open runs fare with that.
type Leases struct {
	Client  dynamic.Interface // without a rate limit: a late renewal loses a lease
	Server  string            // names the API server
	Leaders lease.Reports     // of elections
	Shards  lease.Reports     // of memberships in groups of shards
}

// New returns a client that has a connection, or none: then the link is nil.
func New(link *connection.Link) *Client {
	return &Client{Link: link, reconnecting: make(chan struct{}, 1)}
}

// Host is the address of the server, empty for a fake.
func (c *Client) Host() string {
	if c.Link == nil {
		return ""
	}
	return c.Link.Now().Host
}

// Close ends all that the client does, and waits. A Reconnect that runs ends before the
// connections are closed: it may have made the other connection the one in use, and has watches
// open there.
func (c *Client) Close() {
	c.Streams.Close()
	c.Applied.Recollections.Close()
	c.reconnecting <- struct{}{}
	c.Link.Close()
	<-c.reconnecting
	c.Told.End()
}
