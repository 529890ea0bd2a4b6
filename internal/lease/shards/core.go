package shards

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/fence"
)

// ErrLost is the error of work for a key that the replica has lost.
var ErrLost = errors.New("key lost to another replica")

// core is the protocol of one replica: it takes in what happens, and says what to do. It has no
// lock.
type core struct {
	config Config
	self   string

	// Its own Lease.
	joined  bool
	sent    time.Time // the request that renewed it last
	uid     string
	version string
	flying  bool   // a request is running
	asked   bool   // the result of a request is unknown: the Lease must be read
	failing bool   // the last request has failed
	claim   claim  // the one written last, as far as is known
	claimed string // the Lease's version since when
	written claims // the claim that the watch showed last, and those written after it
	shown   bool   // the watch has shown a claim
	seen    bool   // the watch has shown this Lease
	next    time.Time

	peers   map[string]*observed // the others, and an older Lease of this replica's name
	target  claim                // all members that are seen
	since   time.Time            // when target became other than claim
	grants  []*grant             // one per state since the last catch-up; the last is current
	caught  bool                 // the watches are as new as the first grant
	gone    map[string]bool      // UIDs that were deleted, though the watch shows them
	running map[string]*tenure
	lost    error // why the membership ended last
}

// observed is a peer, and since when it has not changed.
type observed struct {
	peer
	since time.Time
}

// tenure is one replica's work for one key, until it has ended.
type tenure struct {
	revoked error
	cancel  func(error)
}

// verb is a kind of request.
type verb int

const (
	none verb = iota
	create
	update
	read
	remove
)

// write is a request that is due.
type write struct {
	verb         verb
	member       string
	uid, version string
	claim        claim
}

func newCore(config Config) *core {
	return &core{config: config, self: member(config.Identity), peers: map[string]*observed{}, gone: map[string]bool{}, running: map[string]*tenure{}}
}

// held returns nil as long as the replica's Lease protects the work of the tenure.
func (c *core) held(t *tenure, now time.Time) error {
	switch {
	case t.revoked != nil:
		return t.revoked
	case fence.Between(c.sent, now) >= c.config.LeaseDuration:
		return fmt.Errorf("%w: its lease has not been renewed for %s", ErrLost, c.config.LeaseDuration)
	}
	return nil
}

// take begins a tenure, if the replica owns the key.
func (c *core) take(key string, now time.Time) bool {
	if !c.mine(key, now) || c.running[key] != nil {
		return false
	}
	c.running[key] = &tenure{}
	return true
}

// give ends it.
func (c *core) give(key string) { delete(c.running, key) }

func (c *core) mine(key string, now time.Time) bool {
	if !c.joined || !c.caught || fence.Between(c.sent, now) >= c.config.LeaseDuration {
		return false
	}
	for _, g := range c.grants {
		if !g.has(key) {
			return false
		}
	}
	return true
}

// current is the latest grant, nil if there is none.
func (c *core) current() *grant {
	if len(c.grants) == 0 {
		return nil
	}
	return c.grants[len(c.grants)-1]
}

// standing decides which keys the replica owns.
type standing struct {
	first, last *grant // those between change with them
	caught      bool
}

func (c *core) standing() standing {
	if len(c.grants) == 0 {
		return standing{}
	}
	return standing{c.grants[0], c.current(), c.caught}
}

// caughtUp notes that all watches are as new as the server was when the grant was current.
func (c *core) caughtUp(with *grant) {
	if i := slices.Index(c.grants, with); i >= 0 {
		c.grants, c.caught = c.grants[i:], true
	}
}

// lose ends the membership.
func (c *core) lose(why error) {
	c.joined, c.asked, c.uid, c.version, c.seen, c.shown = false, false, "", "", false, false
	c.claim, c.claimed, c.written, c.grants, c.caught = nil, "", nil, nil, false
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

// observe takes in all Leases of the group, as the watch shows them.
func (c *core) observe(all []peer, now time.Time) {
	there := make(map[string]bool, len(all))
	own, gone := false, make(map[string]bool)
	for _, p := range all {
		switch {
		case c.joined && p.member == c.self && p.uid == c.uid:
			own = true
			c.echo(p)
			continue
		case c.gone[p.uid]:
			gone[p.uid] = true
			continue
		}
		there[p.member] = true
		if o := c.peers[p.member]; o == nil || o.uid != p.uid || o.version != p.version || !o.renewed.Equal(p.renewed) {
			c.peers[p.member] = &observed{p, now}
		}
	}
	c.gone = gone
	maps.DeleteFunc(c.peers, func(name string, _ *observed) bool { return !there[name] })
	if c.joined && c.seen && !own {
		c.lose(errDeleted)
	}
	c.aim(now)
}

// echo takes in the replica's own Lease, as the watch shows it. Everything that was written
// before has been shown, too.
func (c *core) echo(p peer) {
	c.seen = true
	if c.claim != nil && !c.asked && !c.flying && !coherence.Newer(c.claimed, p.version) {
		c.shown, c.written = true, claims{c.claim}
	}
}

// aim notes the members, and which keys the replica owns by everything that it knows.
func (c *core) aim(now time.Time) {
	target := claim{c.self}
	for name := range c.peers {
		if name != c.self {
			target = append(target, name)
		}
	}
	slices.Sort(target)
	if !target.equal(c.target) {
		c.target, c.since = target, now
	}
	if !c.joined || !c.shown {
		return
	}
	g := &grant{group: c.config.Group, self: c.self, by: c.written.with(c.target), others: map[string]claim{}}
	for name, o := range c.peers {
		if name != c.self && o.claim != nil && !(len(g.by) == 1 && o.claim.equal(c.claim)) {
			g.others[name] = o.claim
		}
	}
	if !g.same(c.current()) {
		c.grants = append(c.grants, g)
	}
}

// drained reports whether no work is left for keys that other members own by now. If some is
// left, it also returns when to look again. Work that takes too long is cancelled. Later nobody
// waits for it.
func (c *core) drained(now time.Time) (bool, time.Time) {
	patience, waited := c.config.LeaseDuration, now.Sub(c.since)
	if waited >= 2*patience {
		return true, time.Time{}
	}
	drained, again := true, c.since.Add(patience)
	for key, t := range c.running {
		if owner(c.config.Group, key, c.target) == c.self {
			continue
		}
		if drained = false; waited >= patience {
			t.revoke(fmt.Errorf("%w: it has not ended %s after the key was another's", ErrLost, patience))
			again = c.since.Add(2 * patience)
		}
	}
	return drained, again
}

// todo returns the request to make now, and when to call todo again if nothing happens. The
// request must be answered before that.
func (c *core) todo(now time.Time) (write, time.Time) {
	w, wake := c.plan(now)
	c.flying = w.verb != none
	if w.claim != nil {
		c.written = c.written.with(w.claim)
	}
	return w, wake
}

func (c *core) plan(now time.Time) (write, time.Time) {
	wake := c.next
	sooner := func(t time.Time) {
		if wake.IsZero() || t.Before(wake) {
			wake = t
		}
	}
	if c.joined && fence.Between(c.sent, now) >= c.config.RenewDeadline {
		c.lose(fmt.Errorf("its lease could not be renewed within %s", c.config.RenewDeadline))
	}
	due := !now.Before(c.next)
	if !c.joined {
		if o := c.peers[c.self]; o != nil {
			if until := o.since.Add(o.duration); now.Before(until) {
				return write{}, until
			}
			return write{verb: remove, member: c.self, uid: o.uid, version: o.version}, now
		}
		if due {
			return write{verb: create, member: c.self}, now
		}
		return write{}, wake
	}
	sooner(c.sent.Add(c.config.RenewDeadline))
	if c.asked {
		if due {
			return write{verb: read, member: c.self}, now
		}
		return write{}, wake
	}
	w := write{verb: update, member: c.self, uid: c.uid, version: c.version, claim: c.claim}
	if !c.target.equal(c.claim) {
		drained, again := c.drained(now)
		if drained {
			w.claim = c.target
			due = due || !c.failing
		} else {
			sooner(again)
		}
	}
	if due {
		return w, now
	}
	for name, o := range c.peers {
		until := o.since.Add(o.duration)
		if !now.Before(until) {
			return write{verb: remove, member: name, uid: o.uid, version: o.version}, now
		}
		sooner(until)
	}
	return write{}, wake
}
