package accumulator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// Difference is a change of one object between two snapshots: Old is nil for an add, New for a
// delete. Where an object was replaced by another of its name, there are two: the delete, then the add.
type Difference struct {
	Query    string
	Old, New Object
}

// Invalid is an object that is left out of a snapshot.
type Invalid struct {
	Query  string
	Object Object
	// Err says why: it does not decode, or a function of the user panicked over it.
	Err error
}

// Result is what an Update did.
type Result struct {
	// Complete: every query has its first list, and the target is filled.
	Complete bool
	// Changed: the snapshot is not the one that was delivered last.
	Changed bool
	// Differences since then, by query, then namespace and name.
	Differences []Difference
	// Invalid objects, by query, then namespace and name. Shared: not to be written to.
	Invalid []Invalid
}

// Judgement sets the predicate of an Update. It stays in force until it is replaced; another
// function judges every object again. A function is another one if it is another value:
// a closure that is made anew for each call is, so keep it in a variable.
type Judgement struct{ Predicate Predicate }

// reader is what the one reader knows, beside what it knows of each field.
type reader struct {
	fields     []*field // of the last snapshot
	generation int
	binding    *snapshot.Binding
	bindings   map[reflect.Type]*snapshot.Binding // of this generation
	retired    map[string]bool                    // fields that are nil: their query was removed
	predicate  Predicate
	delivered  bool
	invalid    []Invalid

	mu lockorder.Mutex[lockorder.Tables] // lets others look at the tables; held while they change, never longer
}

// Update fills the struct that target points to with the current snapshot: every
// query's field, so that a fresh struct is as good as the last one. Until all queries are
// complete it does nothing. On an error, too, the target is untouched and nothing is consumed.
// A nil judgement leaves the predicate as it is.
//
// It never waits for the network. It waits its turn if another Update of this
// accumulator runs, as long as ctx allows.
func (a *Accumulator) Update(ctx context.Context, target any, j *Judgement) (Result, error) {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return Result{}, fmt.Errorf("the target of an update is a non-nil pointer to a struct, not %T", target)
	}
	if err := a.enter(ctx); err != nil {
		return Result{}, err
	}
	defer a.leave()
	a.streams.Reach(stream.AtUpdate)
	fields, err := a.bind(v.Elem().Type())
	if err != nil {
		return Result{}, err
	}
	if !a.complete() {
		return Result{}, nil
	}
	if !a.takeAll(fields) {
		return Result{}, nil
	}
	return a.refresh(v.Elem(), fields, j), nil
}

// enter waits for the reader's turn, as long as ctx allows and the accumulator runs.
func (a *Accumulator) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := a.Err()
	if err == nil {
		return nil
	}
	a.leave()
	if why := a.Ready(); why != nil {
		return fmt.Errorf("the watch has ended: %w (%w)", err, why)
	}
	return fmt.Errorf("the watch has ended: %w", err)
}

func (a *Accumulator) leave() { <-a.turn }

// Check reports whether a struct type can take the snapshot.
func (a *Accumulator) Check(t reflect.Type, queries ...Query) error {
	_, err := compile(t, append(a.queriesOf(a.fieldsNow()), queries...))
	return err
}

// refresh brings the tables up to date and fills the target.
func (a *Accumulator) refresh(target reflect.Value, b layout, j *Judgement) Result {
	r := &a.reader
	result := Result{Complete: true, Changed: !r.delivered}
	rejudge := j != nil && !sameFunc(j.Predicate, r.predicate)
	if j != nil {
		r.predicate = j.Predicate
	}
	faults := a.depart(&result, b)
	carried := a.rebind(b)
	var invalid []Invalid // to be reported
	for i, f := range b.fields {
		c := carried[i] // zero for most
		faults = faults || c.faults
		for _, row := range c.invalid {
			invalid = append(invalid, Invalid{f.name, row.Source, row.Err})
		}
		t := f.got
		if f.got = (taken{}); !t.ok {
			result.Differences = appendDifferences(result.Differences, f.name, c.diffs)
			continue
		}
		if present := !a.vanished(f); present != f.present {
			f.present, result.Changed = present, true
		}
		rows := a.rows(row{b, i}, t, rejudge)
		diffs, changed := a.apply(f, rows)
		faults = faults || changed
		for _, c := range rows {
			if c.Row != nil && c.Row.Err != nil {
				invalid = append(invalid, Invalid{f.name, c.Row.Source, c.Row.Err})
			}
		}
		result.Differences = appendDifferences(result.Differences, f.name, followed(c.diffs, diffs))
	}
	if faults {
		r.invalid = invalidOf(b.fields)
	}
	result.Changed = result.Changed || faults || len(result.Differences) > 0
	result.Invalid = r.invalid
	r.delivered = true
	a.mu.Lock()
	a.read = b.generation
	a.mu.Unlock()
	b.fill(target, r.retired)
	a.prepare(b)
	a.report(invalid)
	return result
}

// depart lets the objects of queries go that have been removed. It reports whether invalid ones
// were among them.
func (a *Accumulator) depart(result *Result, b layout) (faults bool) {
	r := &a.reader
	if slices.Equal(r.fields, b.fields) {
		return false
	}
	for _, f := range r.fields {
		if slices.Contains(b.fields, f) || a.succeeded(f, b) {
			continue
		}
		if r.retired == nil {
			r.retired = make(map[string]bool)
		}
		r.retired[f.name] = true
		result.Changed = result.Changed || f.present
		if f.table == nil {
			continue
		}
		faults = faults || len(f.table.Invalid()) > 0
		for old := range f.table.All() {
			if old.Shown() {
				result.Differences = append(result.Differences, Difference{Query: f.name, Old: old.Source})
			}
		}
	}
	for _, f := range b.fields {
		delete(r.retired, f.name)
	}
	r.fields = b.fields
	return faults
}

// succeeded lets a query of the same name that was added since, and is whole, go on with what was shown: what both have
// is neither deleted nor added.
func (a *Accumulator) succeeded(f *field, b layout) bool {
	i := slices.IndexFunc(b.fields, func(next *field) bool { return next.name == f.name })
	if i < 0 || !b.fields[i].got.ok || f.table == nil {
		return false
	}
	next := b.fields[i]
	a.reader.mu.Lock()
	next.table, next.spans, next.present = f.table, f.spans, f.present
	a.reader.mu.Unlock()
	next.got.whole = true
	next.got.reshaped = next.got.reshaped || reshapes(a.queryOf(f), a.queryOf(next))
	return true
}

// reshapes reports whether one version of an object may look different in two queries.
func reshapes(old, q Query) bool {
	return old.Form != q.Form || stream.FuncPointer(old.Transform) != stream.FuncPointer(q.Transform)
}

// rebind gives every field a table that suits the target. It returns what that changes, by field.
func (a *Accumulator) rebind(b layout) (changed map[int]carried) {
	r := &a.reader
	same := r.binding != nil && r.binding.Type() == b.Type()
	r.binding = b.Binding
	for i, f := range b.fields {
		old, spans := f.table, a.queryOf(f).Namespace == ""
		if old != nil && same && f.spans == spans {
			continue
		}
		r.mu.Lock()
		f.table, f.spans = b.NewTable(i), spans
		r.mu.Unlock()
		if old != nil {
			if changed == nil {
				changed = make(map[int]carried)
			}
			changed[i] = a.carry(row{b, i}, old)
		}
	}
	return changed
}

// vanished reports whether a field is absent again: it is optional, and its kind is gone.
func (a *Accumulator) vanished(f *field) bool {
	if f.refs != nil {
		return a.isAbsent(f) // what is not found of what is named says nothing of the kind
	}
	parts, _, _ := a.of(f)
	optional := a.queryOf(f).Optional
	for _, p := range parts {
		if !optional || !p.sub.State().Gone {
			return false
		}
	}
	return len(parts) > 0
}

// apply places rows in a table.
func (a *Accumulator) apply(f *field, rows []snapshot.Change) ([]snapshot.Diff, bool) {
	a.reader.mu.Lock()
	defer a.reader.mu.Unlock()
	return f.table.Apply(rows)
}

// report tells the user's callback. A panic in it harms nobody else.
func (a *Accumulator) report(invalid []Invalid) {
	for _, i := range invalid {
		a.streams.Logger().V(1).Info("object left out", "query", i.Query, "object", object.KeyOf(i.Object).String(), "error", i.Err.Error())
		if a.options.Invalid == nil {
			continue
		}
		lockorder.CallOut("Options.Invalid")
		func() {
			defer func() {
				if p := recover(); p != nil {
					a.streams.Logger().Error(errors.New(fmt.Sprint(p)), "the callback for invalid objects panicked")
				}
			}()
			a.options.Invalid(i)
		}()
	}
}

// appendDifferences turns the diffs of a table into differences: a replaced object
// is a delete and an add (G7).
func appendDifferences(to []Difference, query string, diffs []snapshot.Diff) []Difference {
	to = slices.Grow(to, len(diffs))
	for _, d := range diffs {
		if d.Old != nil && d.New != nil && object.UIDOf(d.Old) != object.UIDOf(d.New) {
			to = append(to, Difference{Query: query, Old: d.Old}, Difference{Query: query, New: d.New})
			continue
		}
		to = append(to, Difference{Query: query, Old: d.Old, New: d.New})
	}
	return to
}

// sameFunc reports whether two functions are one value: the same code and, for a
// closure, the same variables.
func sameFunc(a, b Predicate) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a)) == *(*unsafe.Pointer)(unsafe.Pointer(&b))
}
