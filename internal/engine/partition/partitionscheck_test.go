package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// next takes a turn, if there is one and no gate holds Next up, and compares it with the server.
func (m *partModel) next(gate *sim.Gate) (bool, error) {
	c := m.call(gate)
	if c == nil {
		return false, nil
	}
	return m.returned(c)
}

// returned compares what Next has returned with the server.
func (m *partModel) returned(c *nextCall) (bool, error) {
	m.taken = m.indexed()
	m.unmade(c)
	if errors.Is(c.err, context.DeadlineExceeded) {
		return false, nil
	}
	if c.err != nil {
		return false, c.err
	}
	m.held = append(m.held, c.turn)
	return true, m.check(c)
}

// indexed returns the versions, by field and name, that the partitions have taken for each key.
func (m *partModel) indexed() map[string]map[string]string {
	all := map[string]map[string]string{}
	for key := range m.keys {
		all[key] = map[string]string{}
		for i, f := range m.p.indexes.fields {
			for name, o := range f.Shown.objects {
				if o.in(key) && o.source() != nil {
					all[key][modelFields[i]+name.Name] = versionOf(o.source().(*unstructured.Unstructured))
				}
			}
		}
	}
	return all
}

// unmade drops what is owed to keys that Next has not found: the own write that makes them returns
// after it. They come quietly, after the changes for all keys that Next has taken.
func (m *partModel) unmade(c *nextCall) {
	found := m.p.Keys()
	for key, k := range m.keys {
		if !m.script.Quiet || slices.Contains(found, key) || !c.held && !m.making(key) {
			continue
		}
		for id := range k.must {
			if _, shared := m.wanted()["shared"][id]; shared || id[:1] == modelFields[2] {
				delete(k.must, id)
			}
		}
	}
}

// making reports whether an own write under way makes an object of a key.
func (m *partModel) making(key string) bool {
	return slices.ContainsFunc(m.writes, func(w *ownWrite) bool {
		u := m.Now[w.resource][w.Key]
		if u == nil || w.over.Load() {
			return false
		}
		keys, _, _ := placeOf(w.resource, u)
		return slices.Contains(keys, key)
	})
}

func (m *partModel) check(c *nextCall) error {
	t, now := c.turn, m.wanted()
	k := m.truth(t.Key)
	switch {
	case k.held:
		return fmt.Errorf("%s is held by two", t.Key)
	case t.Attempt != k.fails+1:
		return fmt.Errorf("%s: attempt %d after %d failures", t.Key, t.Attempt, k.fails)
	case k.fails > 0 && time.Now().Before(k.rests):
		return fmt.Errorf("%s comes %s before its backoff is over", t.Key, time.Until(k.rests))
	}
	got, err := m.content(c, k)
	if err != nil {
		return err
	}
	if err := k.apply(t); err != nil {
		return fmt.Errorf("G7: %s: %w", t.Key, err)
	}
	if !maps.Equal(k.replay, got) {
		return fmt.Errorf("G7: %s: the differences give %v, the snapshot has %v", t.Key, k.replay, got)
	}
	want := now[t.Key]
	if want == nil && !t.Gone {
		want = now["shared"] // a broken object keeps its key
	}
	latest := maps.Equal(got, want)
	switch {
	case !latest && !m.script.Gates:
		return fmt.Errorf("%s has %v, the server %v", t.Key, got, want)
	case k.fails > 0 || t.Gone || m.script.Bugs:
	case maps.Equal(k.last, got):
		return fmt.Errorf("%s was handed out though nothing has changed: %v", t.Key, got)
	// own writes of one object that overlap may be worth a signal
	case m.script.Quiet && m.script.Slow && !m.script.Gates:
		return fmt.Errorf("%s was handed out, and all there is are quiet writes: %v", t.Key, got)
	case latest && !m.script.Quiet && !k.misses(got):
		return fmt.Errorf("%s was handed out for nothing: %v", t.Key, got)
	}
	for id, rev := range k.must {
		if k.since[id] >= rev || t.Gone && now[t.Key] == nil { // what is gone has not even what all have
			delete(k.must, id)
		}
	}
	for _, ids := range []map[string]string{got, now[t.Key]} {
		for id := range ids {
			if got[id] != now[t.Key][id] && !m.script.Quiet {
				k.must[id] = m.now() // it changed while Next was held up
			}
		}
	}
	k.last, k.held = got, true
	return nil
}

// content returns what a turn shows. Each object is as it was at a version of the server: no
// earlier than Next must show, and than a turn of the key showed before.
func (m *partModel) content(c *nextCall, k *partTruth) (got map[string]string, err error) {
	t, own := c.turn, false
	got = map[string]string{}
	snap := t.Snapshot.(*three)
	for i, name := range modelFields {
		for _, u := range snap.field(i) {
			_, every, _ := placeOf(partResources[i], u)
			own = own || !every
			got[name+u.GetName()] = versionOf(u)
			if id := name + u.GetName() + versionOf(u); m.shown[id] == nil {
				m.shown[id] = u
			} else if m.shown[id] != object.Object(u) {
				return nil, fmt.Errorf("G10: %s: another pointer for %s", t.Key, id)
			}
		}
		if snap.field(i) == nil || len(snap.field(i)) != cap(snap.field(i)) {
			return nil, fmt.Errorf("G10: %s: a slice of length %d, capacity %d", t.Key, len(snap.field(i)), cap(snap.field(i)))
		}
	}
	if t.Gone && len(got) > 0 || !t.Gone && !own && !m.broken() && !(m.script.Bugs && m.script.Gates) {
		return nil, fmt.Errorf("%s: gone is %v, and it has %v", t.Key, t.Gone, got)
	}
	for i, resource := range partResources {
		for _, name := range partNames {
			id, object := modelFields[i]+name, storedKey{resource, object.Key{Namespace: "ns", Name: name}}
			least := max(c.least[object], k.since[id])
			moment, ok := m.Moment(resource, object.Key, least, func(u *unstructured.Unstructured) bool {
				return t.wants(resource, u) == got[id]
			})
			if !ok {
				return nil, fmt.Errorf("G2, G4, G5: %s has %q as %s, which is not true since version %d (shown before %d, written %d):\n%s",
					t.Key, got[id], id, least, k.since[id], m.written[object], m.Story(resource, object.Key))
			}
			k.since[id] = moment
		}
	}
	return got, nil
}

// wants returns the version of an object that a turn shows, if that is the object's state.
func (t *Turn) wants(resource string, u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	keys, every, broken := placeOf(resource, u)
	if broken || t.Gone && every || !every && !slices.Contains(keys, t.Key) {
		return ""
	}
	return versionOf(u)
}

// misses reports whether the last turn differed from now where it matters.
func (k *partTruth) misses(now map[string]string) bool {
	for id := range k.must {
		if now[id] != k.last[id] {
			return true
		}
	}
	return false
}

// apply applies the differences to the content of the last turn.
func (k *partTruth) apply(t *Turn) error {
	for _, d := range t.Differences {
		o := d.New
		if o == nil {
			o = d.Old
		}
		id := d.Query + o.GetName()
		if old := k.replay[id]; (d.Old == nil) != (old == "") || d.Old != nil && old != string(d.Old.GetUID())+"@"+d.Old.GetResourceVersion() {
			return fmt.Errorf("a difference of %s from %s to %s, which was %q", id, sim.Describe(d.Old), sim.Describe(d.New), old)
		}
		if delete(k.replay, id); d.New != nil {
			k.replay[id] = string(d.New.GetUID()) + "@" + d.New.GetResourceVersion()
		}
	}
	return nil
}

func (m *partModel) done(i int, failed bool) {
	t := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	m.over = append(m.over, t)
	k := m.truth(t.Key)
	k.held = false
	if failed {
		k.fails++
		k.rests = time.Now().Add(partBackoff.After(k.fails))
		m.ended(t, errors.New("oops"))
		return
	}
	k.fails = 0
	m.ended(t, nil)
}

// settle takes and ends all turns until there is none, and looks for lost turns and memory that
// is left.
func (m *partModel) settle() error {
	m.Mu.Lock()
	m.Oldest = 0
	m.Mu.Unlock()
	m.gates.Release()
	if c := m.goOn(); c != nil {
		if _, err := m.returned(c); err != nil {
			return fmt.Errorf("a Next that was held up until the end: %w", err)
		}
	}
	for more := true; more; {
		for len(m.held) > 0 {
			m.done(0, false)
		}
		sim.After(time.Minute)
		for {
			got, err := m.next(nil)
			if err != nil {
				return fmt.Errorf("at rest: %w", err)
			}
			if more = len(m.held) > 0; !got {
				break
			}
		}
	}
	wanted := m.wanted()
	for key, k := range m.keys {
		if key != "shared" && k.misses(wanted[key]) && !m.script.Bugs {
			return fmt.Errorf("%s was lost: its last turn had %v, the server has %v", key, k.last, wanted[key])
		}
		if wanted[key] == nil && len(k.last) > 0 && !m.broken() {
			return fmt.Errorf("%s was not handed out empty, but with %v", key, k.last)
		}
	}
	delete(wanted, "shared")
	if got := m.p.Keys(); len(got) != len(wanted) && !m.broken() {
		return fmt.Errorf("G6: partitions %v, and the server has %d", got, len(wanted))
	}
	if n := busyKeys(m.p); n > 0 || m.p.scheduler.agenda.Waiting() {
		return fmt.Errorf("G6: %d keys wait or are held", n)
	}
	return m.p.scheduler.residue()
}
