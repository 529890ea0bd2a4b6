package shards

import (
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/loops/lease"
)

// ErrLost is the error of work for a key that the replica has lost.
var ErrLost = errors.New("key lost to another replica")

// ErrNever is the error of a run that ends before it was a shard.
var ErrNever = errors.New("it never was one of the shards")

// errFormer is why a replica waits that came back under its identity.
var errFormer = errors.New("its former lease, or that of a copy of its process, has not expired yet")

// errCopied is the error of a replica that finds in its own Lease what it has not written.
var errCopied = errors.New("another process with the same identity has renewed its lease")

// core is the protocol of one replica: it takes in what happens, and says what to do. It has no
// lock.
type core struct {
	config  Config
	self    string
	own     registration
	group   members
	goal    goal
	keys    ownership
	load    []shardrange.Load  // what this replica knows of the objects of its hashes
	running map[string]*tenure // by the name of the key
	lost    error              // why the membership ended last
}

// tenure is one replica's work for one key, until it has ended. What outlives it may write only
// until the next grant: the replica may lose the key, and get it back after another's work.
type tenure struct {
	key     Key
	revoked error
	cancel  func(error)
	ended   *grant // the current one at its end
}

func newCore(config Config) *core {
	if config.Written == nil {
		config.Written = &lease.Written{}
	}
	self := member(config.Identity)
	return &core{config: config, self: self, group: newMembers(self), running: map[string]*tenure{}}
}

// held returns nil as long as the replica's Lease protects the work of the tenure.
func (c *core) held(t *tenure, now time.Time) error {
	switch {
	case t.revoked != nil:
		return t.revoked
	case c.running[t.key.Name] != t && (t.ended != c.keys.current() || !c.keys.has(t.key)):
		return fmt.Errorf("%w: its work has ended", ErrLost)
	case c.own.age(now) >= c.config.LeaseDuration:
		return fmt.Errorf("%w: its lease has not been renewed for %s", ErrLost, c.config.LeaseDuration)
	}
	return nil
}

// take begins a tenure, if the replica owns the key.
func (c *core) take(key Key, now time.Time) bool {
	if !c.mine(key, now) || c.running[key.Name] != nil {
		return false
	}
	c.running[key.Name] = &tenure{key: key}
	return true
}

// give ends it.
func (c *core) give(key string) {
	if t := c.running[key]; t != nil {
		t.ended = c.keys.current()
		delete(c.running, key)
	}
}

func (c *core) mine(key Key, now time.Time) bool {
	return c.own.joined() && c.own.age(now) < c.config.LeaseDuration && c.keys.has(key)
}

// lose ends the membership.
func (c *core) lose(why error) {
	c.own.leave()
	c.keys = ownership{gains: c.keys.gains, lapses: c.keys.lapses} // a turn from before belongs to no later membership
	for _, t := range c.running {
		t.revoke(fmt.Errorf("%w: %w", ErrLost, why))
	}
	c.lost = why
}

func (t *tenure) revoke(why error) {
	if t.revoked == nil {
		t.revoked = why
		if t.cancel != nil {
			t.cancel(why)
		}
	}
}

// hindrance says why the replica is no member, or cannot stay one. trouble is the error of its
// last request.
func (c *core) hindrance(trouble error) error {
	switch {
	case trouble != nil || c.own.joined():
		return trouble
	case c.group.peers[c.self] != nil:
		return errFormer
	}
	return nil
}

// observe takes in all Leases of the group, as the watch shows them.
func (c *core) observe(all []peer, now time.Time) {
	var others []peer
	own := false
	for _, p := range all {
		if c.own.joined() && p.member == c.self && p.uid == c.own.uid {
			own = true
			c.echo(p)
		} else {
			others = append(others, p)
		}
	}
	c.group.observe(others, now)
	if c.own.presence == seen && !own {
		c.lose(errDeleted)
	}
	c.decide(now)
}

// echo takes in the replica's own Lease, as the watch shows it. Everything that was written
// before has been shown, too, unless the server may still store it.
func (c *core) echo(p peer) {
	c.own.presence = seen
	k := &c.keys
	if k.claim != nil && c.own.stored == certain && !c.own.flying && !coherence.Newer(k.claimedRV, p.version) {
		k.shown, k.written = true, claims{k.claim}
	}
}

// decide notes who the members are, what to claim, and which keys the replica owns by everything
// that it knows.
func (c *core) decide(now time.Time) {
	c.group.count(now)
	c.aim(now)
	if c.own.joined() && c.keys.shown {
		by := c.keys.written.with(c.goal.claim)
		c.keys.add(&grant{c.config.Group, c.self, by, c.group.others(by, c.keys.claim)})
	}
}
