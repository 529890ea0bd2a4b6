package mutation

import (
	"fmt"
	"slices"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/object"
)

// Watch is the witness of one watch.
type Watch struct {
	of   *Detector
	what string

	// mu is never held while a value is read.
	mu        lockorder.Mutex[lockorder.Witnessed]
	snapshots int // or answers
	turns     int
	turnOf    map[string]int // the number of a key's turn, as long as it runs
	places    map[placeKey]*place
	order     []*place // those to be looked at next come first
	replaced  []*exhibit
	shared    map[string][]*container // by the key of the turn; "" for snapshots
}

var _ collect.Witness = (*Watch)(nil)

type placeKey struct {
	query string
	object.Key
}

// place is what a watch shows of one object.
type place struct {
	source *exhibit
	all    []*exhibit // the source, and what was made of it
	gone   bool       // the watch does not show the object any more
}

// Watching returns the witness of a watch. The text says what is watched.
func (d *Detector) Watching(what string) *Watch {
	w := &Watch{
		of: d, what: what, turnOf: make(map[string]int),
		places: make(map[placeKey]*place), shared: make(map[string][]*container),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches = append(d.watches, w)
	return w
}

// Shown implements [collect.Witness].
func (w *Watch) Shown(query string, o object.Object, value any) {
	source := w.of.exhibit(query, o, o)
	made := source
	if identityOf(value) != identityOf(o) {
		made = w.of.exhibit(query, o, value)
	}
	if source != nil && made != nil {
		w.put(placeKey{query, object.KeyOf(o)}, source, made)
	}
}

// put notes what the watch shows in a place from now on.
func (w *Watch) put(at placeKey, source, made *exhibit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.places[at]
	if p == nil {
		p = &place{}
		w.places[at], w.order = p, append(w.order, p)
	}
	if p.source != source {
		w.leave(p.all)
		p.source, p.all = source, nil
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for _, e := range []*exhibit{source, made} {
		if !slices.Contains(e.queries, at.query) {
			e.queries = append(e.queries, at.query)
		}
		if !slices.Contains(p.all, e) {
			p.all = append(p.all, e)
			e.places++
		}
	}
}

// Lent implements [collect.Witness].
func (w *Watch) Lent(to, query string, one, other object.Object) (returned func()) {
	var lent []*exhibit
	for _, o := range []object.Object{one, other} {
		if o == nil || object.Fault(o) != nil {
			continue
		}
		if e := w.of.exhibit(query, o, o); e != nil {
			lent = append(lent, e)
		}
	}
	all := func(now string) {
		for _, e := range lent {
			w.of.look(e, now, now)
		}
	}
	all(fmt.Sprintf("when %s of query %q was called", to, query))
	return func() { all(fmt.Sprintf("when %s of query %q returned", to, query)) }
}

// Gone implements [collect.Witness].
func (w *Watch) Gone(query string, o object.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := placeKey{query, object.KeyOf(o)}
	if p := w.places[at]; p != nil {
		delete(w.places, at)
		p.gone = true
		w.leave(p.all)
	}
}

// leave notes that the watch does not show some exhibits any more. Called with mu held.
func (w *Watch) leave(former []*exhibit) {
	w.replaced = append(w.replaced, former...)
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for _, e := range former {
		e.places--
		w.of.cease(e)
	}
}

// Delivered implements [collect.Witness].
func (w *Watch) Delivered(d collect.Delivery) {
	now, most := w.moment(d)
	w.fill(d, now)
	replaced, due := w.due(most)
	for _, e := range replaced {
		w.of.look(e, "after the object had changed, "+now, now)
	}
	for _, e := range due {
		w.of.look(e, now, now)
	}
}

// due returns what to look at: what the watch ceased to show, and what it shows and was not looked
// at for longest, as many bytes as allowed and one object at least.
func (w *Watch) due(most int) (replaced, all []*exhibit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := len(w.order); n > 0 && most > 0; n-- {
		p := w.order[0]
		if w.order = w.order[1:]; p.gone {
			continue
		}
		w.order = append(w.order, p)
		for _, e := range p.all {
			most -= e.size
		}
		all = append(all, p.all...)
	}
	replaced, w.replaced = w.replaced, nil
	return replaced, all
}

// moment describes the moment of a delivery, and says how many bytes of JSON to look at.
func (w *Watch) moment(d collect.Delivery) (now string, most int) {
	at := time.Now().Format("15:04:05.000")
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.of.limits.Look
	switch d.Moment {
	case collect.TurnBegins:
		w.turns++
		w.turnOf[d.Key] = w.turns
		return fmt.Sprintf("at the start of turn %d of %s, key %q (%s)", w.turns, w.what, d.Key, at), limit / 2
	case collect.TurnEnds:
		n := w.turnOf[d.Key]
		delete(w.turnOf, d.Key)
		return fmt.Sprintf("at the end of turn %d of %s, key %q (%s)", n, w.what, d.Key, at), limit / 2
	case collect.Answered:
		w.snapshots++
		return fmt.Sprintf("in answer %d of %s (%s)", w.snapshots, w.what, at), limit / 32
	case collect.NewSnapshot:
		w.snapshots++
		return fmt.Sprintf("in snapshot %d of %s (%s)", w.snapshots, w.what, at), limit
	}
	return fmt.Sprintf("in snapshot %d of %s (%s)", w.snapshots, w.what, at), limit / 32
}
