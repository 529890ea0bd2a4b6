package mutation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// Limits bound a detector, in bytes of JSON. The package comment says how.
type Limits struct {
	Look int // of each new snapshot; a turn has half of it twice, anything else a fraction
	Held int // of all values
}

// Default limits: at 1 kB an object, each snapshot looks at 128 objects, in a millisecond or two,
// and 32,000 versions are held.
var Default = Limits{Look: 128 << 10, Held: 32 << 20}

// Detector has what was shown, as it was then. New makes one. It is safe for concurrent use.
type Detector struct {
	limits Limits

	// mu is never held while a value is read: its type may have a MarshalJSON of its own.
	mu       lockorder.Mutex[lockorder.Exhibits]
	known    map[identity]*exhibit
	shown    []*exhibit // by the time at which they were shown first
	former   []*exhibit // by the time at which no watch showed them any more; some are shown again
	held     int        // bytes
	count    int        // exhibits
	watches  []*Watch
	findings []finding
}

// New makes a detector.
func New(l Limits) *Detector { return &Detector{limits: l, known: make(map[identity]*exhibit)} }

// identity tells values apart that are pointers or maps. Others have none. An untyped object and
// its content are the same.
type identity struct {
	at any // a pointer, which keeps the address from being used again
	of reflect.Type
}

func identityOf(value any) identity {
	switch v := reflect.ValueOf(content(value)); v.Kind() {
	case reflect.Pointer, reflect.Map:
		if !v.IsNil() {
			return identity{v.UnsafePointer(), v.Type()}
		}
	}
	return identity{}
}

// exhibit is a value that was shown. The detector's lock guards the fields from value on.
type exhibit struct {
	id     identity
	object string
	size   int // of its JSON

	queries   []string
	value     any
	before    []byte // its JSON
	unchanged string // when that was known last
	places    int    // of watches that show it
	state     state
	former    bool // it is in the queue of former ones
	leaving   bool // it is not held any more, but for the last look
}

// state is what is known of an exhibit.
type state uint8

const (
	whole   state = iota // it has not changed, as far as is known
	changed              // there is a finding; nobody looks any more
	out                  // it was let go
)

// exhibit returns that of a value, nil if the value has no JSON. A value that is not known is
// read, so it must not be changed yet.
func (d *Detector) exhibit(query string, source object.Object, value any) *exhibit {
	id := identityOf(value)
	if e := d.find(id); e != nil {
		return e
	}
	before, err := encode(value)
	if err != nil {
		return nil
	}
	e := &exhibit{id: id, queries: []string{query}, object: describe(source), size: len(before), value: value, before: before}
	e.unchanged = "when it was handed out first"
	first, over := d.add(e)
	for _, o := range over {
		d.look(o, "when it was let go, since the test shows more than can be held", "")
		d.letGo(o)
	}
	return first
}

// add adds an exhibit, if its value has none. It returns that of the value, and those that are to
// be let go.
func (d *Detector) add(e *exhibit) (first *exhibit, over []*exhibit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if first := d.known[e.id]; first != nil {
		return first, nil // another goroutine was faster
	}
	if e.id.at != nil {
		d.known[e.id] = e
	}
	d.shown = append(d.shown, e)
	d.cease(e) // until a watch shows it
	d.held += e.size
	return e, d.over(e)
}

// cease puts an exhibit among those that no watch shows. Called with mu held.
func (d *Detector) cease(e *exhibit) {
	if e.places == 0 && !e.former {
		e.former = true
		d.former = append(d.former, e)
	}
}

// over takes out what is to be let go: what no watch shows, and then the oldest, but for the
// newest. Called with mu held.
func (d *Detector) over(newest *exhibit) (all []*exhibit) {
	leave := func(e *exhibit) {
		e.leaving = true
		delete(d.known, e.id)
		d.held -= e.size
		all = append(all, e)
	}
	full := func(queue []*exhibit) bool {
		return d.held > d.limits.Held && len(queue) > 0 && queue[0] != newest
	}
	for full(d.former) {
		e := d.former[0]
		d.former, e.former = d.former[1:], false
		if !e.leaving && e.places == 0 {
			leave(e)
		}
	}
	for full(d.shown) {
		e := d.shown[0]
		if d.shown = d.shown[1:]; !e.leaving {
			leave(e)
		}
	}
	if d.count += 1 - len(all); len(d.shown) > 2*d.count+1024 { // most were let go out of order
		d.shown = slices.DeleteFunc(d.shown, func(e *exhibit) bool { return e.leaving })
	}
	return all
}

// letGo lets go of the value of an exhibit that is leaving.
func (d *Detector) letGo(e *exhibit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.state, e.value, e.before = out, nil, nil
}

func (d *Detector) find(id identity) *exhibit {
	if id.at == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[id]
}

// describe names an object.
func describe(o object.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(o).Elem().Name()
	}
	key := object.KeyOf(o)
	return fmt.Sprintf("%s %s", kind, strings.TrimPrefix(key.String(), "/"))
}

// finding is a write.
type finding struct {
	what   string // which object
	fields string
	when   string
	value  any // an object that was written to, or nil
}

func (f finding) String() string {
	return fmt.Sprintf("somebody wrote to a shared %s: %s: %s", f.what, f.fields, f.when)
}

// when says when a write was first seen, and when there was none yet.
func when(now, unchanged string) string {
	return fmt.Sprintf("first seen %s; unchanged %s", now, unchanged)
}

// look compares a value with what it was. now says when that is if it has changed, and then if it
// has not.
func (d *Detector) look(e *exhibit, now, then string) {
	d.mu.Lock()
	state, value, before := e.state, e.value, e.before
	d.mu.Unlock()
	if state != whole {
		return
	}
	fields := compare(before, value)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case e.state != whole: // another goroutine was faster
	case fields == "":
		e.unchanged = then
	default:
		e.state = changed
		f := finding{fmt.Sprintf("object: %s of %s", e.object, e.shownBy()), fields, when(now, e.unchanged), value}
		if g := d.common(f); g != nil {
			f.when += fmt.Sprintf("; it shares memory with %s, where the same was seen: that may be one write",
				strings.TrimPrefix(g.what, "object: "))
		}
		d.found(f)
	}
}

// shownBy names the queries of an exhibit. Called with the detector's lock held.
func (e *exhibit) shownBy() string {
	if len(e.queries) == 1 {
		return fmt.Sprintf("query %q", e.queries[0])
	}
	slices.Sort(e.queries)
	return fmt.Sprintf("the queries %q", e.queries)
}

// found notes a finding. Two values may share memory: an object and what was made of it. Called
// with mu held.
func (d *Detector) found(f finding) {
	if !slices.ContainsFunc(d.findings, func(g finding) bool { return g.what == f.what && g.fields == f.fields }) {
		d.findings = append(d.findings, f)
	}
}

// End looks at everything that is held, and returns what was found, in the order in which it was.
func (d *Detector) End() (findings []string) {
	const now = "when the test ended"
	d.mu.Lock()
	all, watches := slices.Clone(d.shown), slices.Clone(d.watches)
	d.mu.Unlock()
	for _, e := range all {
		d.look(e, now, now)
	}
	for _, w := range watches {
		w.end(now)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.findings {
		findings = append(findings, f.String())
	}
	return findings
}
