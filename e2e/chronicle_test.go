package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/kates"
)

// era is what etcd had between two restores from a backup.
type era struct {
	*history
	startRV uint64    // the newest version of the backup, or from where on nobody is judged yet
	knownRV uint64    // the states before this version are forgotten
	began   time.Time // when the restore began
	// known is the number of own writes that had returned before, for each client.
	known map[*world]int
}

// chronicle is the history of the objects of a run in which etcd is restored from backups. It
// comes from etcd itself.
type chronicle struct {
	world *world
	eras  []*era
	// doubts are the times in which a kind may count as not served: its definition was removed.
	doubts []doubt

	mu    sync.Mutex
	ready int64 // the revision up to which the last era is known
}

// doubt begins when the definition of a kind is being removed. It ends when all servers have
// served the kind again.
type doubt struct {
	resource    string
	began, over time.Time
}

const (
	// lateDiscovery is how long after the end of a doubt a client may use what discovery had told
	// it before.
	lateDiscovery = 5 * time.Second
	// lateReturn is how long after that it may say that the kind is not served.
	lateReturn = time.Minute
)

func newChronicle(w *world) *chronicle {
	return &chronicle{world: w, eras: []*era{{history: w.newHistory(), known: map[*world]int{}}}}
}

func (c *chronicle) now() *era { return c.eras[len(c.eras)-1] }

// record enters what etcd says, from a revision on, until ctx ends. etcd may be killed and started
// meanwhile.
func (c *chronicle) record(ctx context.Context, etcd *cluster.Cluster, sinceRevision int64) error {
	next := sinceRevision
	for ctx.Err() == nil {
		err := etcd.History(ctx, next, func(change cluster.Change) {
			next = change.Revision + 1
			c.take(change)
		})
		if err != nil && strings.Contains(err.Error(), "compacted") {
			return err
		}
		pause(ctx, 20*time.Millisecond)
	}
	return nil
}

// take enters one change, if it is of an object of the world.
func (c *chronicle) take(change cluster.Change) {
	if k, ok := c.world.stored(change.Key); ok {
		c.now().stored(k, change)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = max(c.ready, change.Revision)
}

// revision is how far the last era is known.
func (c *chronicle) revision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// behind is an error unless the last era is known up to a revision.
func (c *chronicle) behind(revision int64) error {
	if ready := c.revision(); ready < revision {
		return fmt.Errorf("the chronicle has come to %d, and etcd to %d", ready, revision)
	}
	return nil
}

func (c *chronicle) doubt(d doubt) { c.doubts = append(c.doubts, d) }

// stored returns which object of the world a key of etcd is.
func (w *world) stored(key string) (id, bool) {
	parts := strings.Split(strings.TrimPrefix(key, "/registry/"), "/")
	if parts[0] == hosts.Group {
		parts = parts[1:]
	}
	if len(parts) != 3 || !slices.Contains(w.namespaces, parts[1]) {
		return id{}, false
	}
	k := id{parts[0], parts[1], parts[2]}
	return k, slices.ContainsFunc(worldKinds, func(gvr schema.GroupVersionResource) bool { return gvr.Resource == k.resource })
}

// stored adds a state as etcd has it.
func (h *history) stored(k id, change cluster.Change) {
	if change.Value == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		s := state{objectRV: uint64(change.Revision), gone: true, note: "deleted"}
		if before := h.states[k]; len(before) > 0 {
			s.uid = before[len(before)-1].uid
			h.byUID[s.uid] = s.objectRV
		}
		h.states[k] = append(h.states[k], s)
		return
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(change.Value); err != nil {
		panic(err)
	}
	u.SetResourceVersion(fmt.Sprint(change.Revision))
	h.add(k.resource, u, watch.Modified)
}

// restored begins the era after a restore that began at a time. The own writes that have returned
// by now belong to the era before. It is an error to go back to what is forgotten: the judge would
// take all that is shown then for what never was.
func (c *chronicle) restored(began time.Time, revision int64, worlds []*world) error {
	last := c.now()
	if uint64(revision) < last.knownRV {
		return fmt.Errorf("etcd was restored to %d, and the chronicle has forgotten what was before %d", revision, last.knownRV)
	}
	last.mu.Lock()
	next := &era{history: c.world.newHistory(), startRV: uint64(revision), knownRV: last.knownRV, began: began, known: map[*world]int{}}
	for k, states := range last.states {
		i := slices.IndexFunc(states, func(s state) bool { return s.objectRV > next.startRV })
		if i < 0 {
			i = len(states)
		}
		if i > 0 {
			next.states[k] = slices.Clone(states[:i])
		}
	}
	maps.Copy(next.byUID, last.byUID)
	maps.DeleteFunc(next.byUID, func(_ types.UID, goneRV uint64) bool { return goneRV > next.startRV })
	last.mu.Unlock()
	for _, w := range worlds {
		w.mu.Lock()
		next.known[w], w.newestRV = len(w.record), next.startRV
		w.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = revision
	c.eras = append(c.eras, next)
	return nil
}

// forget drops what nobody needs who has been judged up to the newest revision of the last era:
// the eras before, and what each object was before a revision to which etcd may yet be restored.
// Nobody writes meanwhile.
func (c *chronicle) forget(all []*trial, mayReturn int64) {
	last := c.now()
	c.eras = []*era{last}
	last.mu.Lock()
	defer last.mu.Unlock()
	ready := c.revision()
	last.startRV, last.knownRV = uint64(ready), uint64(min(ready, mayReturn))
	for _, j := range all {
		clear(j.at)
		clear(j.bounds)
	}
	for k, states := range last.states {
		i := slices.IndexFunc(states, func(s state) bool { return s.objectRV > last.knownRV })
		if i < 0 {
			i = len(states)
		}
		if i > 0 && !states[i-1].gone {
			i-- // what it was then
		}
		if i == len(states) { // its name may be free for ever: the server chose it
			delete(last.states, k)
			continue
		}
		last.states[k] = slices.Clone(states[i:])
	}
	maps.DeleteFunc(last.byUID, func(_ types.UID, goneRV uint64) bool { return goneRV <= last.knownRV })
}

// doubted reports whether the kind may count as not served in a look, and so as empty. By rule
// G8 a field is emptied when complete discovery serves the resource in no version; each server
// has its own.
func (c *chronicle) doubted(resource string, l look) bool {
	return slices.ContainsFunc(c.doubts, func(d doubt) bool {
		if d.resource != resource || l.at.Before(d.began) {
			return false
		}
		return d.over.IsZero() || l.at.Before(d.over.Add(lateDiscovery)) ||
			l.unserved[resource] && l.at.Before(d.over.Add(lateDiscovery+lateReturn))
	})
}

// trial is a witness before its judge: for each object the earliest place in the history that
// explains all looks so far.
type trial struct {
	*witness
	at     map[id]spot
	seen   map[id]seen
	bounds map[id]spot
	dirty  map[id]bool
	done   int
	judged int
}

// spot is a place in the history.
type spot struct {
	era int
	rv  uint64
}

func (s spot) before(o spot) bool { return s.era < o.era || s.era == o.era && s.rv < o.rv }

func newTrial(j *witness, known int) *trial {
	return &trial{witness: j, done: known, at: map[id]spot{}, seen: map[id]seen{}, bounds: map[id]spot{}, dirty: map[id]bool{}}
}

// judge checks all looks of the witness that are new, as [history.judge] does, and drops them. The
// times in the history never go back. They cross a restore once, and not before it has begun. No
// look is earlier than the own writes of its era that had returned before.
func (j *trial) judge(c *chronicle) error {
	for _, e := range c.eras {
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	for n, l := range j.looks {
		if err := j.wrote(c, l.known); err != nil {
			return err
		}
		for k, s := range l.now {
			j.seen[k], j.dirty[k] = s, true
		}
		for k := range j.dirty {
			if err := j.object(c, k, l); err != nil {
				return fmt.Errorf("%s, look %d of %d at %s, %v, last at %+v, written at %+v: %w\n%s", j.name, n, len(j.looks),
					l.at.Format(time.StampMicro), k, j.at[k], j.bounds[k], err, j.about(c, k))
			}
		}
	}
	if n := len(j.looks); n > 0 {
		j.looks = []look{{known: j.looks[n-1].known, absent: j.looks[n-1].absent, at: j.looks[n-1].at}}
	}
	return nil
}

// wrote enters the own writes up to a number.
func (j *trial) wrote(c *chronicle, known int) error {
	for ; j.done < known; j.done++ {
		e, in := j.w.record[j.done], 0
		for i := range c.eras {
			if j.done >= c.eras[i].known[j.w] {
				in = i
			}
		}
		rv, err := c.eras[in].bound(e, true)
		if err != nil {
			return fmt.Errorf("G4: %s: %w", j.name, err)
		}
		if s := (spot{in, rv}); j.bounds[e.id].before(s) {
			j.bounds[e.id] = s
		}
		j.dirty[e.id] = true
	}
	return nil
}

// object finds the place of an object as a look has it.
func (j *trial) object(c *chronicle, k id, l look) error {
	q, ok := j.queryOf(k)
	s := j.seen[k]
	if ok && s.uid == "" && (l.absent[k.resource] || c.doubted(k.resource, l)) {
		return nil // it is looked at again
	}
	delete(j.dirty, k)
	if !ok {
		return nil
	}
	j.judged++
	var errs []error
	for _, from := range c.places(j.at[k], l) {
		rv, err := c.eras[from.era].place(k, q, s, from.rv)
		kind := "G5"
		if err == nil && (spot{from.era, rv}).before(j.bounds[k]) {
			kind = "G4"
			if from.era < j.bounds[k].era {
				err = errors.New("is from before the restore, and was written since")
			} else {
				rv, err = c.eras[from.era].place(k, q, s, j.bounds[k].rv)
			}
		}
		if err == nil {
			j.at[k] = spot{from.era, rv}
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", kind, err))
	}
	return errors.Join(errs...)
}

// places returns where to look: from a place on, and from the beginning of each era that had begun
// by then.
func (c *chronicle) places(from spot, l look) []spot {
	all := []spot{{from.era, max(from.rv, c.eras[from.era].startRV)}}
	for i := from.era + 1; i < len(c.eras) && !l.at.Before(c.eras[i].began); i++ {
		all = append(all, spot{i, c.eras[i].startRV})
	}
	return all
}

// present checks that the witness shows what etcd has now (G6).
func (j *trial) present(c *chronicle) error {
	last := c.now()
	last.mu.Lock()
	defer last.mu.Unlock()
	var errs []error
	for k := range last.states {
		q, ok := j.queryOf(k)
		s := last.states[k][len(last.states[k])-1]
		shown := j.shown[k]
		switch there := ok && q.has(s); {
		case there && shown.uid == "":
			errs = append(errs, fmt.Errorf("%v is in etcd at %d, and not shown", k, s.objectRV))
		case !there && shown.uid != "":
			errs = append(errs, fmt.Errorf("%v is shown at %d, and not in etcd since %d", k, shown.objectRV, s.objectRV))
		case there && (shown.uid != s.uid || shown.objectRV != s.objectRV):
			errs = append(errs, fmt.Errorf("%v is shown at %d, and in etcd at %d", k, shown.objectRV, s.objectRV))
		}
	}
	for k, s := range j.shown {
		if last.states[k] == nil {
			errs = append(errs, fmt.Errorf("%v is shown at %d, and not in etcd", k, s.objectRV))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("G6: %s: %w", j.name, err)
	}
	return nil
}

// calm checks that no query of the witness holds anything back, and that all are in the present.
func (j *trial) calm(c *chronicle) error {
	revision := c.revision()
	for _, q := range j.status().Queries {
		if !calm(q, revision) {
			return fmt.Errorf("G6: %s: etcd is at %d: %s", j.name, revision, j.status())
		}
	}
	return nil
}

// calm reports whether nothing is held for writes, and all watches are open, in etcd's present
// history. After a restore a watch may pause for 30 s before it asks again. If it shows by chance
// what the new history has, nothing else tells that it is still in the old one. Until it asks,
// writes are not shown, and the new history may pass its version (rule 8 of package coherence).
func calm(q kates.QueryStatus, revision int64) bool {
	held := q.Pending+q.Unsettled > 0
	return !held && q.State == kates.StateSynced && (q.Version == "" || number(q.Version) <= uint64(revision))
}

// about describes an object: its states, the own writes to it, and the looks at it.
func (j *trial) about(c *chronicle, k id) string {
	var text strings.Builder
	for i, e := range c.eras {
		fmt.Fprintf(&text, "era %d, since %d, %s\n", i, e.startRV, e.began.Format(time.StampMicro))
		for _, s := range e.states[k] {
			fmt.Fprintf(&text, "  %d %s %v %v: gone %t, %s\n", s.objectRV, s.uid, s.labels, s.fields, s.gone, s.note)
		}
	}
	for i, e := range j.w.record {
		if e.id == k {
			fmt.Fprintf(&text, "own write %d: %+v\n", i, e)
		}
	}
	for n, l := range j.looks {
		if s, ok := l.now[k]; ok {
			fmt.Fprintf(&text, "look %d, after %d own writes, %s: %+v\n", n, l.known, l.at.Format(time.StampMicro), s)
		}
	}
	for _, d := range c.doubts {
		fmt.Fprintf(&text, "%s in doubt from %s to %s\n", d.resource, d.began.Format(time.StampMicro), d.over.Format(time.StampMicro))
	}
	return text.String()
}
