package shards

import (
	"time"

	"github.com/kates-go/kates/internal/loops/fence"
)

// presence is what is known of the replica's own Lease: absent ─▶ present ─▶ seen. From each it
// is absent again when the membership ends.
type presence int

const (
	absent  presence = iota // the replica is no member
	present                 // its Lease exists, and the watch has not shown it yet
	seen                    // the watch has shown it
)

// stored is what is known of the latest update: certain ─▶ unread ─▶ late. It is certain again
// when a later update has succeeded, or when the Lease has another version: updates name the one
// before.
type stored int

const (
	certain stored = iota
	unread         // its answer is missing: the Lease must be read
	late           // the Lease was read and has not got it, and the server may still carry it out
)

// registration is the replica's own Lease, and its requests to the server.
type registration struct {
	presence     presence
	uid, version string
	since        time.Time // when the replica became a member last
	sent         time.Time // when the last successful renewal was sent

	next    time.Time // when the next request is due
	flying  bool      // a request is under way
	stored  stored    // whether the server has what was written last
	failing bool      // the last request has failed
}

// joined reports whether the replica is a member.
func (r *registration) joined() bool { return r.presence != absent }

// age is the time since the last renewal.
func (r *registration) age(now time.Time) time.Duration { return fence.Between(r.sent, now) }

// leave ends the membership. What is known of requests stays.
func (r *registration) leave() {
	r.presence, r.stored, r.uid, r.version = absent, certain, "", ""
}
