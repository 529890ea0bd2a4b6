package shards

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

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
