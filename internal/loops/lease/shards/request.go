package shards

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/loops/lease"
)

// verb is a kind of request.
type verb int

const (
	none verb = iota
	create
	update
	read
	remove
)

// others reports whether an error is the consequence of what another replica does. A creation that
// finds nothing is not: then the namespace does not exist (any more).
func (v verb) others(err error) bool {
	if v == create {
		return apierrors.IsAlreadyExists(err)
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// write is a request that is due.
type write struct {
	verb         verb
	member       string
	uid, version string
	claim        claim
	next         *plan // that is proposed; nil: none
}

// removal is the request that deletes a Lease as it was seen.
func (o *observed) removal() write {
	return write{verb: remove, member: o.member, uid: o.uid, version: o.version}
}

// todo returns the request to make now, and when to call todo again if nothing happens. The
// request must be answered before that.
func (c *core) todo(now time.Time) (write, time.Time) {
	if c.own.joined() && c.own.age(now) >= c.config.RenewDeadline {
		c.lose(fmt.Errorf("its lease could not be renewed within %s", c.config.RenewDeadline))
	}
	w, wake := write{}, now
	if c.own.joined() {
		w, wake = c.stay(now)
	} else {
		w, wake = c.join(now)
	}
	c.own.flying = w.verb != none
	if w.claim != nil {
		c.keys.written = c.keys.written.with(w.claim)
	}
	return w, wake
}

// sends notes a request that is about to be sent.
func (c *core) sends(w write, now time.Time) {
	if w.verb == create || w.verb == update {
		c.config.Written.Sends(lease.StampOf(now))
	}
}

// wrote reports whether a Lease under the replica's identity is as this process wrote it. It may
// be a copy's of this process.
func (c *core) wrote(p peer) bool { return c.config.Written.Has(lease.StampOf(p.renewed)) }

// join is todo for a replica that is no member. An older Lease of its name has to expire first.
// One that this process has written need not: no work goes on under it when the replica has none.
func (c *core) join(now time.Time) (write, time.Time) {
	if old := c.group.peers[c.self]; old != nil {
		switch until := old.expiry(); {
		case !now.Before(until):
			return old.removal(), now
		case !c.config.OwnIdentity || len(c.running) > 0 || !c.wrote(old.peer):
			return write{}, until
		case now.Before(c.own.next):
			return write{}, c.own.next
		}
		return old.removal(), now
	}
	if now.Before(c.own.next) {
		return write{}, c.own.next
	}
	return write{verb: create, member: c.self}, now
}

// stay is todo for a member. It renews its Lease, with what it goes for as its claim if the work
// for other keys has ended, and deletes the Leases of others that have expired.
func (c *core) stay(now time.Time) (write, time.Time) {
	due, wake := !now.Before(c.own.next), c.own.next
	sooner := func(t time.Time) {
		if wake.IsZero() || t.Before(wake) {
			wake = t
		}
	}
	sooner(c.own.sent.Add(c.config.RenewDeadline))
	if c.own.stored == unread {
		if due {
			return write{verb: read, member: c.self}, now
		}
		return write{}, wake
	}
	w := write{verb: update, member: c.self, uid: c.own.uid, version: c.own.version, claim: c.keys.claim}
	if c.goal.claim != nil && !same(c.goal.claim, c.keys.claim) {
		drained, again := c.drained(now)
		if drained {
			w.claim = c.goal.claim
			due = due || !c.own.failing
		} else {
			sooner(again)
		}
	}
	if w.next = c.proposal(); w.next != nil {
		due = due || !c.own.failing && (c.keys.proposed == nil || !w.next.equal(c.keys.proposed))
	}
	if at := c.proposes(); c.byRanges() && now.Before(at) {
		sooner(at)
	}
	if due {
		return w, now
	}
	for _, o := range c.group.peers {
		until := o.expiry()
		if !now.Before(until) {
			return o.removal(), now
		}
		sooner(until)
	}
	return write{}, wake
}

// drained reports whether no work is left for keys that other members own by now. If some is
// left, it also returns when to look again. Work that takes too long is cancelled. Later nobody
// waits for it.
func (c *core) drained(now time.Time) (bool, time.Time) {
	patience, waited := c.config.LeaseDuration, now.Sub(c.goal.since)
	if waited >= 2*patience {
		return true, time.Time{}
	}
	drained, again := true, c.goal.since.Add(patience)
	for _, t := range c.running {
		if c.goal.claim.owner(c.config.Group, t.key) == c.self {
			continue
		}
		if drained = false; waited >= patience {
			t.revoke(fmt.Errorf("%w: it has not ended %s after the key was another's", ErrLost, patience))
			again = c.goal.since.Add(2 * patience)
		}
	}
	return drained, again
}

// proposal is the plan that this replica has made, until it claims it: others are to go for it,
// too.
func (c *core) proposal() *plan {
	p := c.goal.plan
	if p == nil || p.proposer != c.self || same(p, c.keys.claim) || !same(p, c.goal.claim) {
		return nil
	}
	return p
}
