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

// Difference is a change of one object between two snapshots. Old is nil for an add, New for a
// delete. If another object of the same name has replaced an object, there are two: the delete,
// then the add.
type Difference struct {
	Query    string
	Old, New Object
}

// Invalid is an object that is left out of a snapshot.
type Invalid struct {
	Query  string
	Object Object
	// Err says why: the object does not decode, or a user's function panicked.
	Err error
}

// Result is the result of an Update.
type Result struct {
	// Complete: every query has its first list, and the target is filled.
	Complete bool
	// Changed: the snapshot differs from the last one.
	Changed bool
	// Differences from the last snapshot, by query, then namespace and name.
	Differences []Difference
	// Invalid objects, by query, then namespace and name. They are shared: do not write to them.
	Invalid []Invalid
}

// Judgement sets the predicate of an Update. It stays in force until it is replaced. Another
// function judges every object again. A closure that is made again for each call is another
// function, so keep it in a variable.
type Judgement struct{ Predicate Predicate }

// reader is the state of the one reader, besides what each field has.
type reader struct {
	fields     []*field // of the last snapshot
	generation int
	binding    *snapshot.Binding
	bindings   map[reflect.Type]*snapshot.Binding // of this generation
	// fields to be set to nil: their query was removed
	retired   map[string]bool
	predicate Predicate
	delivered bool
	invalid   []Invalid

	// held while the tables change, so that others can read them
	mu lockorder.Mutex[lockorder.Tables]
}

// Update fills the struct that target points to with the current snapshot. It sets every query's
// field, so a fresh struct is as good as the last one. Until all queries are complete it does
// nothing. On an error, too, the target stays as it was, and no change is lost. A nil judgement
// leaves the predicate as it is.
//
// Update never waits for the network. If another Update of this accumulator runs, it waits until
// that ends, or ctx.
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

// enter waits for the reader's turn, until ctx or the accumulator ends.
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

// Check reports whether the snapshot fits a struct type.
func (a *Accumulator) Check(t reflect.Type, queries ...Query) error {
	_, err := compile(t, append(a.queriesOf(a.fieldsNow()), queries...))
	return err
}

// refresh updates the tables and fills the target.
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
		c := carried[i] // the zero value for most fields
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

// depart removes the objects of removed queries. It reports whether some of them were invalid.
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

// succeeded hands the shown objects to a complete query of the same name that was added since.
// Objects of both queries are neither deleted nor added.
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

// rebind gives every field a table for the target's type. It returns the resulting changes by
// field.
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

// vanished reports whether the field is optional, and its kind is gone again.
func (a *Accumulator) vanished(f *field) bool {
	if f.refs != nil {
		return a.isAbsent(f) // a named object that is not found says nothing about the kind
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

// report calls the user's callback. A panic in it affects nothing else.
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
