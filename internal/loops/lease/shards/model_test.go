package shards

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
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

// check is the guarantee: no two replicas that may write work for one key.
func (w *world) check() {
	w.moment++
	for _, key := range w.keys {
		var holders []string
		for i, r := range w.replicas {
			if !r.dead && r.mine(key, w.now) && !r.brought.Has(key.Hash) {
				w.t.Fatalf("%s is that of %d, whose streams do not bring it", key.Name, i)
			}
			if t := r.running[key.Name]; t != nil && !r.dead && r.held(t, w.now) == nil {
				holders = append(holders, strconv.Itoa(i))
				w.last[key.Name] = last{r, w.moment}
			}
		}
		if len(holders) > 1 {
			w.t.Fatalf("%s is worked at by %v", key.Name, holders)
		}
	}
}

// pass lets time pass. The replicas that are awake do what is due, at different speeds: the first
// misses every second round, the next one every third, and so on. So no replica misses two rounds
// in a row, however many there are.
func (w *world) pass(steps int, by time.Duration) {
	for range steps {
		w.rounds++
		for i, r := range w.replicas {
			if !awake(r) || w.rounds%(i+2) == 0 {
				continue
			}
			if r.flight != nil && !r.flight.arrived {
				w.arrive(r.flight)
			}
			if r.flight != nil {
				w.answer(r)
			}
			if !r.deaf {
				w.watch(r, len(w.history))
			}
			w.step(r)
			w.catchUp(r)
			w.check()
		}
		w.now = w.now.Add(by)
	}
}

// restTime is longer than the group needs to come to rest. It needs at most five lease durations:
// one until a replica knows that its Lease is lost, one until an old Lease has expired, one more
// if its deletion fails (once, because an earlier deletion was under way), and two for work that
// has not ended. The sixth shows that the result stays.
const restTime = 6 * leaseDuration

// rest lets time pass without trouble, until each key has an owner.
func (w *world) rest() {
	for _, r := range w.replicas {
		r.frozen, r.deaf = false, false
		clear(r.running)
	}
	const step = leaseDuration / 75
	w.pass(int(restTime/step), step)
}

// end checks the result: the members are the replicas that live, each of them claims exactly
// these, and each key has one owner. A plan may still be made anew, for a better balance: that
// comes to an end.
func (w *world) end() {
	wrong := w.wrong()
	for i := 0; i < 40 && wrong != "" && w.ways != byName; i++ {
		w.pass(int(leaseDuration/time.Second), time.Second)
		wrong = w.wrong()
	}
	if wrong != "" {
		w.t.Fatalf("%s", wrong)
	}
}

// claimed are the members that a claim is about.
func claimed(c claim) []string {
	if p, is := c.(*plan); is {
		return p.members
	}
	members, _ := c.(set)
	return members
}

// wrong says what is not as it has to be in the end.
func (w *world) wrong() string {
	var alive []string
	plans := true
	for _, r := range w.replicas {
		if !r.dead {
			alive = append(alive, r.self)
			plans = plans && !r.former
		}
	}
	slices.Sort(alive)
	if members := slices.Sorted(maps.Keys(w.leases)); !slices.Equal(members, alive) {
		return fmt.Sprintf("the members are %v in the end, and %v live", members, alive)
	}
	for i, r := range w.replicas {
		if r.dead {
			continue
		}
		_, is := r.keys.claim.(*plan)
		if !r.own.joined() || !slices.Equal(claimed(r.keys.claim), alive) || is != plans {
			return fmt.Sprintf("replica %d claims %v in the end, and %v live", i, r.keys.claim, alive)
		}
	}
	for _, key := range w.keys {
		var owners []int
		for i, r := range w.replicas {
			if !r.dead && r.mine(key, w.now) {
				owners = append(owners, i)
			}
		}
		if len(owners) != 1 {
			return fmt.Sprintf("%s is that of %v in the end", key.Name, owners)
		}
	}
	return ""
}

// someone returns an action for a drawn replica for which holds is true, if there is one.
func (w *world) someone(holds func(*simulated) bool, act func(*rapid.T, *simulated)) func(*rapid.T) {
	return func(t *rapid.T) {
		if r := w.pick(t, "who", holds); r != nil {
			act(t, r)
		}
	}
}

// actions are events that happen to replicas, and the time in between.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"come": func(*rapid.T) {
			if len(w.replicas) < 6 {
				w.join()
			}
		},
		"crash":  w.someone(awake, func(_ *rapid.T, r *simulated) { r.dead = len(w.replicas) > 3 }),
		"again":  w.someone(func(r *simulated) bool { return awake(r) && r.config.OwnIdentity }, func(_ *rapid.T, r *simulated) { w.again(r) }),
		"deaf":   w.someone(awake, func(_ *rapid.T, r *simulated) { r.deaf = !r.deaf }),
		"freeze": w.someone(awake, func(_ *rapid.T, r *simulated) { r.frozen = true }),
		"wake":   w.someone(func(r *simulated) bool { return r.frozen }, func(_ *rapid.T, r *simulated) { r.frozen = false }),
		"pass":   func(t *rapid.T) { w.pass(rapid.IntRange(1, 10).Draw(t, "steps"), time.Second) },
		"time": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
		},
		"": func(*rapid.T) { w.check() },
	}
}

// deeds are the smallest steps that replicas take by themselves.
func (w *world) deeds() map[string]func(*rapid.T) {
	// even if the sender is frozen
	flying := func(r *simulated) bool { return r.flight != nil && !r.flight.arrived }
	answered := func(r *simulated) bool { return awake(r) && r.flight != nil && r.flight.arrived }
	return map[string]func(*rapid.T){
		"watch":  w.someone(awake, func(t *rapid.T, r *simulated) { w.watch(r, rapid.IntRange(1, 4).Draw(t, "by")) }),
		"send":   w.someone(awake, func(_ *rapid.T, r *simulated) { w.step(r) }),
		"arrive": w.someone(flying, func(_ *rapid.T, r *simulated) { w.arrive(r.flight) }),
		"arrive late": func(t *rapid.T) {
			if len(w.strays) > 0 {
				i := rapid.IntRange(0, len(w.strays)-1).Draw(t, "which")
				w.arrive(w.strays[i])
				w.strays = slices.Delete(w.strays, i, i+1)
			}
		},
		"answer": w.someone(answered, func(t *rapid.T, r *simulated) {
			r.flight.lost = rapid.IntRange(0, 9).Draw(t, "lost") == 0
			w.answer(r)
		}),
		"catch up": w.someone(awake, func(_ *rapid.T, r *simulated) { w.catchUp(r) }),
		"take":     w.someone(awake, func(_ *rapid.T, r *simulated) { w.take(r) }),
		"take all": func(*rapid.T) {
			for _, r := range w.replicas {
				if awake(r) {
					w.take(r)
				}
			}
		},
		"give":     w.someone(awake, func(t *rapid.T, r *simulated) { r.give(rapid.SampledFrom(w.keys).Draw(t, "key").Name) }),
		"give all": w.someone(awake, func(_ *rapid.T, r *simulated) { clear(r.running) }),
	}
}

// TestNoKeyHasTwoOwnersAndEachHasOneInTheEnd, however replicas come, go, crash or freeze, and
// however late the others see it.
func TestNoKeyHasTwoOwnersAndEachHasOneInTheEnd(t *testing.T) { testOwners(t, byName) }

// TestNoKeyHasTwoOwnersWherePlansDivideThem, and no replica owns a key that its streams do not
// bring.
func TestNoKeyHasTwoOwnersWherePlansDivideThem(t *testing.T) { testOwners(t, byPlans) }

// TestNoKeyHasTwoOwnersDuringARollingUpgrade: some replicas know no plans.
func TestNoKeyHasTwoOwnersDuringARollingUpgrade(t *testing.T) { testOwners(t, mixed) }

func testOwners(t *testing.T, ways way) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, ways)
		w.join()
		w.join()
		w.rest() // otherwise no replica has a key most of the time
		w.check()
		all := w.actions()
		maps.Copy(all, w.deeds())
		t.Repeat(all)
		if !slices.ContainsFunc(w.replicas, func(r *simulated) bool { return !r.dead }) {
			w.join()
		}
		w.rest()
		w.end()
	})
}
