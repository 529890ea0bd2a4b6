package shards

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/loops/lease"
)

// errDeleted is the error of a replica that finds its own Lease deleted.
var errDeleted = errors.New("its lease was deleted, which others do when it has expired")

// answered takes in the answer to a request that was sent at that time. The answer is the Lease
// as the server has it, or an error.
func (c *core) answered(w write, got peer, sent, now time.Time, err error) {
	c.own.failing, c.own.flying = err != nil, false
	if err == nil && (w.verb == create || w.verb == update) {
		c.config.Written.Stored(lease.StampOf(sent))
	}
	switch w.verb {
	case create:
		c.created(got, sent, now, err)
	case update:
		c.updated(w, got, sent, now, err)
	case read:
		c.found(got, now, err)
	case remove:
		c.group.removed(w, now, err)
		if w.member == c.self && err != nil {
			c.own.next = now.Add(c.config.RetryPeriod)
		}
	}
	c.decide(now)
}

func (c *core) created(got peer, sent, now time.Time, err error) {
	c.own.next = now.Add(c.config.RetryPeriod)
	if err != nil {
		return // if it exists, the watch shows it, and it expires
	}
	delete(c.group.peers, c.self)
	c.group.since, c.goal.since = now, now
	c.own.presence, c.own.uid, c.own.version, c.own.sent = present, got.uid, got.version, sent
	c.own.since = sent
	c.own.next = sent.Add(c.config.RetryPeriod)
}

func (c *core) updated(w write, got peer, sent, now time.Time, err error) {
	switch {
	case !c.own.joined() || c.own.uid != w.uid:
	case err == nil:
		if c.own.age(now) >= c.config.LeaseDuration {
			c.keys.lapses++
		}
		c.own.sent, c.own.next, c.own.stored = sent, sent.Add(c.config.RetryPeriod), certain
		c.claims(got)
	case apierrors.IsNotFound(err):
		c.lose(errDeleted)
		c.own.next = now
	default:
		c.own.stored, c.own.next = unread, now.Add(c.config.RetryPeriod)
		if apierrors.IsConflict(err) {
			c.own.next = now // reads at once
		}
	}
}

func (c *core) found(got peer, now time.Time, err error) {
	c.own.next = now.Add(c.config.RetryPeriod)
	switch {
	case !c.own.joined():
	case apierrors.IsNotFound(err), err == nil && got.uid != c.own.uid:
		c.lose(errDeleted)
		c.own.next = now
	case err == nil && !c.wrote(got):
		c.lose(errCopied)
	case err == nil:
		c.own.next = now
		if c.own.stored = late; got.version != c.own.version {
			c.own.stored = certain
		}
		c.claims(got)
	}
}

// claims takes in the replica's own Lease, as the server has it.
func (c *core) claims(got peer) {
	c.own.version = got.version
	c.keys.proposed = got.next
	if got.claim != nil && !same(got.claim, c.keys.claim) {
		c.keys.claim, c.keys.claimedRV = got.claim, got.version
	}
}

// removed takes in the deletion of another replica's Lease. If that was renewed meanwhile, the
// watch shows it, too.
func (m *members) removed(w write, now time.Time, err error) {
	o := m.peers[w.member]
	switch {
	case o == nil || o.uid != w.uid:
	case err == nil:
		delete(m.peers, w.member)
		m.gone[w.uid] = w.uid != ""
	default:
		o.since = now
	}
}
