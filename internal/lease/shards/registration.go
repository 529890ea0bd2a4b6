package shards

import (
	"time"

	"github.com/kates-go/kates/internal/fence"
)

// registration is the replica's own Lease, and its requests to the server.
type registration struct {
	joined       bool // the Lease exists
	seen         bool // the watch has shown it
	uid, version string
	sent         time.Time // when the last successful renewal was sent

	next    time.Time // when the next request is due
	flying  bool      // a request is under way
	unknown bool      // the result of a request is unknown: the Lease must be read
	failing bool      // the last request has failed
}

// age is the time since the last renewal.
func (r *registration) age(now time.Time) time.Duration { return fence.Between(r.sent, now) }

// leave ends the membership. What is known of requests stays.
func (r *registration) leave() {
	r.joined, r.seen, r.unknown, r.uid, r.version = false, false, false, "", ""
}
