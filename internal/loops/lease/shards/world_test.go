package shards

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/loops/lease"
)

// world is a server, and replicas that come, go, crash, freeze, and see everything late.
type world struct {
	t        failer
	now      time.Time
	version  int
	uids     int
	leases   map[string]peer // by member, as the server has them
	history  [][]peer        // the Leases at each version
	replicas []*simulated
	keys     []Key
	ways     way
	strays   []*flight // requests of replicas that have begun anew
	rounds   int
	moment   int             // counts events
	last     map[string]last // work for each key
}

// way says how the replicas of a group divide keys.
type way int

const (
	byName  way = iota
	byPlans     // by the hashes of a field
	mixed       // some of them are of a former version, which knows no plans
)

// failer is a test, drawn or staged.
type failer interface {
	Fatalf(format string, args ...any)
}

// last is the replica that worked for a key last, and when.
type last struct {
	by *simulated
	at int
}

// simulated is one replica.
type simulated struct {
	*core
	frozen bool
	deaf   bool // its watch shows nothing
	seen   int  // the version that its watch shows
	flight *flight
	dead   bool
	former bool // it is of a version that knows no plans

	catching *grant            // it catches up with this one
	fetching shardrange.Ranges // and brings this
	under    bool              // it catches up
	began    int               // since then
	caught   int               // the begin of its last complete catch-up
	brought  shardrange.Ranges // what its streams bring
}

// flight is a request from its sending until its answer is read.
type flight struct {
	write
	by      string
	load    []shardrange.Load
	sent    time.Time
	arrived bool // at the server
	lost    bool // nobody reads the answer
	got     peer
	err     error
}

const leaseDuration = 15 * time.Second

func newWorld(t failer, ways way) *world {
	w := &world{t: t, ways: ways, now: time.Unix(1000, 0), leases: map[string]peer{}, last: map[string]last{}}
	w.record()
	for i := range 12 {
		name := "key-" + strconv.Itoa(i)
		hash := shardrange.Hash(name) // these are neighbours: as long as no loads are known, one replica has all
		if i%2 == 0 {
			hash = weight(name)
		}
		w.keys = append(w.keys, Key{name, hash})
	}
	return w
}

// knowsPlans reports whether the i-th replica does.
func (w *world) knowsPlans(i int) bool { return w.ways == byPlans || w.ways == mixed && i%3 != 1 }

func (w *world) record() { w.history = append(w.history, slices.Collect(maps.Values(w.leases))) }

func (w *world) join() {
	config := Config{Group: "g", Settings: lease.Settings{
		Namespace: "ns", Identity: fmt.Sprint("replica-", len(w.replicas)), LeaseDuration: leaseDuration,
		OwnIdentity: len(w.replicas)%3 != 2, Written: &lease.Written{},
	}}
	if err := config.Complete(); err != nil {
		w.t.Fatalf("the config: %v", err)
	}
	former := !w.knowsPlans(len(w.replicas))
	if !former {
		config.By = string(shardrange.Namespace)
	}
	w.replicas = append(w.replicas, &simulated{core: newCore(config), seen: len(w.history) - 1, former: former})
}

// again ends what a replica does, and begins it anew under its identity, in the same process. Its
// Lease stays, and a request that is under way may arrive later.
func (w *world) again(r *simulated) {
	if r.flight != nil && !r.flight.arrived {
		w.strays = append(w.strays, r.flight)
	}
	clear(r.running)
	*r = simulated{core: newCore(r.config), seen: r.seen, former: r.former}
}

// pick draws a replica for which holds is true, nil if there is none.
func (w *world) pick(t *rapid.T, what string, holds func(*simulated) bool) *simulated {
	var all []*simulated
	for _, r := range w.replicas {
		if holds(r) {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return rapid.SampledFrom(all).Draw(t, what)
}

func awake(r *simulated) bool { return !r.frozen && !r.dead }

// watch shows a replica some of what it has not seen.
func (w *world) watch(r *simulated, by int) {
	r.seen = min(r.seen+by, len(w.history)-1)
	r.observe(w.shown(r), w.now)
}

// shown is the Leases as a replica's watch shows them. One of a former version reads the members
// in a Lease, and nothing else.
func (w *world) shown(r *simulated) []peer {
	all := w.history[r.seen]
	if !r.former {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		p := &all[i]
		if _, is := p.claim.(*plan); is {
			p.claim = set{p.member}
		}
		p.by, p.next, p.loads = "", nil, nil
	}
	return all
}

// step makes the request of a replica that is due, if there is one.
func (w *world) step(r *simulated) {
	if r.flight != nil {
		return
	}
	r.load = nil
	for _, key := range w.keys {
		if r.brought.Has(key.Hash) {
			r.load = append(r.load, shardrange.Load{Hash: key.Hash, Objects: 1})
		}
	}
	r.load = shardrange.Merge(r.load)
	r.observe(w.shown(r), w.now)
	if todo, _ := r.todo(w.now); todo.verb != none {
		r.flight = &flight{write: todo, by: r.config.By, load: r.load, sent: w.now}
		r.sends(todo, w.now)
	}
}

// arrive has the server answer a request.
func (w *world) arrive(f *flight) {
	f.arrived = true
	there, exists := w.leases[f.member]
	gr := lease.Resource.GroupResource()
	switch {
	case f.verb == create && exists:
		f.err = apierrors.NewAlreadyExists(gr, f.member)
	case f.verb == create:
		w.uids++
		f.got = w.store(peer{member: f.member, uid: strconv.Itoa(w.uids), duration: leaseDuration, renewed: f.sent, by: f.by})
	case !exists:
		f.err = apierrors.NewNotFound(gr, f.member)
	case f.verb == read:
		f.got = there
	case there.uid != f.uid || there.version != f.version:
		f.err = apierrors.NewConflict(gr, f.member, nil)
	case f.verb == update:
		there.claim, there.next, there.loads, there.renewed = f.claim, f.next, f.load, f.sent
		f.got = w.store(there)
	default:
		w.version++
		delete(w.leases, f.member)
		w.record()
	}
}

func (w *world) store(p peer) peer {
	w.version++
	p.version = strconv.Itoa(w.version)
	w.leases[p.member] = p
	w.record()
	return p
}

// answer gives a replica the answer, or an error if there is none.
func (w *world) answer(r *simulated) {
	f := r.flight
	r.flight = nil
	if !f.arrived || f.lost {
		f.got, f.err = peer{}, fmt.Errorf("nobody knows")
	}
	r.answered(f.write, f.got, f.sent, w.now, f.err)
}

// take begins a replica's work for a key, if it may. The replica must have seen what others did.
func (w *world) take(r *simulated) {
	for _, key := range w.keys {
		l := w.last[key.Name]
		if !r.take(key, w.now) {
			continue
		}
		if l.by != nil && l.by != r && r.caught <= l.at {
			w.t.Fatalf("%s is taken by one who has not seen what was done at %d, but at %d", key.Name, l.at, r.caught)
		}
	}
	w.check()
}

// catchUp begins a catch-up of a replica's watches, or ends it.
func (w *world) catchUp(r *simulated) {
	if !r.under {
		need, known := r.need()
		r.under, r.catching, r.fetching, r.began = known, r.keys.current(), need, w.moment
		return
	}
	r.brought = r.fetching
	if r.keys.caughtUp(r.catching); len(r.keys.grants) > 0 && r.keys.grants[0] == r.catching {
		r.caught = r.began
	}
	r.under = false
}

// restTime is longer than the group needs to come to rest. It needs at most five lease durations:
// one until a replica knows that its Lease is lost, one until an old Lease has expired, one more
// if its deletion fails (once, because an earlier deletion was under way), and two for work that
// has not ended. The sixth shows that the result stays.
const restTime = 6 * leaseDuration
