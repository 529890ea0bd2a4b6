package fleet

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/kates"
)

// Cluster is a member of a fleet, with one history: a name, a client, and a cluster behind it. It
// stays the same while credentials and addresses change. If another cluster takes the name (the
// UID of its namespace kube-system differs), that is another *Cluster.
//
// Its methods are safe for concurrent use and do not wait for the network.
type Cluster struct {
	name   string
	client *kates.Client
	owned  bool // the fleet has made the client, and closes it

	ctx   context.Context // ends when the cluster leaves
	leave context.CancelFunc

	mu     lockorder.Mutex[lockorder.FleetCluster]
	uid    types.UID
	labels map[string]string
	config *rest.Config // nil if the program has made the client
	health Health
}

// Phase is how a cluster is doing.
type Phase string

// The phases of a cluster.
const (
	// Connecting: no request to the cluster has been answered yet.
	Connecting Phase = "connecting"
	// Unreachable: the same, and several requests have failed.
	Unreachable Phase = "unreachable"
	// Up: the latest request to the cluster was answered in time.
	Up Phase = "up"
	// Stale: the cluster does not answer. What was known of it is shown on.
	Stale Phase = "stale"
)

// Health is how a cluster is doing, by the fleet's own requests to it.
type Health struct {
	Phase Phase `json:"phase"`
	// Since is when the phase began. A cluster is stale since its last answer.
	Since time.Time `json:"since"`
	// Heard is when the cluster answered last. It is zero if it never did.
	Heard time.Time `json:"heard,omitzero"`
	// Error is why the latest request failed. It is empty if that was answered. A cluster is up until
	// two in a row have failed.
	Error string `json:"error,omitempty"`
	// Rotation is why the newest configuration is not in use, and an older one is. It is empty
	// otherwise.
	Rotation string `json:"rotation,omitempty"`
}

// Name of the cluster in the fleet.
func (c *Cluster) Name() string { return c.name }

// Client of the cluster. It is for reads, writes and watches, and ends with the cluster.
func (c *Cluster) Client() *kates.Client { return c.client }

// Done is closed when the cluster has left the fleet, or another cluster has taken its name.
func (c *Cluster) Done() <-chan struct{} { return c.ctx.Done() }

// UID of the cluster's namespace kube-system, which identifies the cluster. It is empty until it
// is known, and if the client may not read it.
func (c *Cluster) UID() types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uid
}

// Labels that the source has for the cluster. The map is the caller's.
func (c *Cluster) Labels() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.labels)
}

// Config is how the cluster is reached now, with credentials. It is the same pointer until that
// changes: nobody may write to it. It is nil if the program has made the client.
func (c *Cluster) Config() *rest.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.config
}

// reach notes how the cluster is reached.
func (c *Cluster) reach(config *rest.Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config = rest.CopyConfig(config)
}

// Health of the cluster.
func (c *Cluster) Health() Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// change edits the cluster's health and reports whether that is news: anything but the time of the
// last answer.
func (c *Cluster) change(edit func(*Health)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.health
	edit(&c.health)
	now := c.health
	before.Heard, now.Heard = time.Time{}, time.Time{}
	return before != now
}

// answered notes an answer of the cluster at a time.
func (c *Cluster) answered(at time.Time) (news bool) {
	return c.change(func(h *Health) {
		if h.Phase != Up {
			h.Phase, h.Since = Up, at
		}
		h.Heard, h.Error = at, ""
	})
}

// failed notes that a request has failed. again: the one before it has failed, too.
func (c *Cluster) failed(err error, again bool) (news bool) {
	return c.change(func(h *Health) {
		h.Error = err.Error()
		switch {
		case again && h.Phase == Up:
			h.Phase, h.Since = Stale, h.Heard
		case again && h.Phase == Connecting:
			h.Phase = Unreachable
		}
	})
}

// identify notes the UID of the cluster, unless one is known, and returns the known one. An empty
// UID says nothing.
func (c *Cluster) identify(uid types.UID) (known types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uid == "" {
		c.uid = uid
	}
	return c.uid
}
