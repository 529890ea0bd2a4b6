package shards

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answered takes in the answer to a request that was sent at that time. The answer is the Lease
// as the server has it, or an error.
func (c *core) answered(w write, got peer, sent, now time.Time, err error) {
	c.failing, c.flying = err != nil, false
	switch w.verb {
	case create:
		c.created(got, sent, now, err)
	case update:
		c.updated(w, got, sent, now, err)
	case read:
		c.found(got, now, err)
	case remove:
		c.removed(w, now, err)
	}
	c.aim(now)
}

func (c *core) created(got peer, sent, now time.Time, err error) {
	c.next = now.Add(c.config.RetryPeriod)
	if err != nil {
		return // if it exists, the watch shows it, and it expires
	}
	delete(c.peers, c.self)
	c.joined, c.uid, c.version, c.sent, c.since = true, got.uid, got.version, sent, now
	c.next = sent.Add(c.config.RetryPeriod)
}

func (c *core) updated(w write, got peer, sent, now time.Time, err error) {
	switch {
	case !c.joined || c.uid != w.uid:
	case err == nil:
		c.sent, c.next = sent, sent.Add(c.config.RetryPeriod)
		c.claims(got)
	case apierrors.IsNotFound(err):
		c.lose(errDeleted)
		c.next = now
	default:
		c.asked, c.next = true, now.Add(c.config.RetryPeriod)
		if apierrors.IsConflict(err) {
			c.next = now // reads at once
		}
	}
}

func (c *core) found(got peer, now time.Time, err error) {
	c.next = now.Add(c.config.RetryPeriod)
	switch {
	case !c.joined:
	case apierrors.IsNotFound(err), err == nil && got.uid != c.uid:
		c.lose(errDeleted)
		c.next = now
	case err == nil:
		c.asked, c.next = false, now
		c.claims(got)
	}
}

// claims takes in the replica's own Lease, as the server has it.
func (c *core) claims(got peer) {
	c.version = got.version
	if got.claim == nil || got.claim.equal(c.claim) {
		return
	}
	c.claim, c.claimed = got.claim, got.version
}

// removed takes in the deletion of another replica's Lease. If that was renewed meanwhile, the
// watch shows it, too.
func (c *core) removed(w write, now time.Time, err error) {
	o := c.peers[w.member]
	switch {
	case o == nil || o.uid != w.uid:
	case err == nil:
		delete(c.peers, w.member)
		c.gone[w.uid] = w.uid != ""
	default:
		o.since = now
	}
}

// errDeleted is the error of a replica that finds its own Lease deleted.
var errDeleted = errors.New("its lease was deleted, which others do when it has expired")
