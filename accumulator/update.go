package accumulator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/kates-go/kates/coherence"
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

// reader is what the one reader knows: the last snapshot, by query.
type reader struct {
	binding   *snapshot.Binding
	predicate Predicate
	present   []bool
	delivered bool
	invalid   []Invalid
	bindings  map[reflect.Type]*snapshot.Binding

	mu     sync.Mutex // lets others look at the tables; held while they change, never longer
	tables []*snapshot.Table
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
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	if err := a.Err(); err != nil {
		if why := a.Ready(); why != nil {
			return Result{}, fmt.Errorf("the watch has ended: %w (%w)", err, why)
		}
		return Result{}, fmt.Errorf("the watch has ended: %w", err)
	}
	binding, err := a.bind(v.Elem().Type())
	if err != nil {
		return Result{}, err
	}
	if !a.complete() {
		return Result{}, nil
	}
	taken, ok := a.takeAll()
	if !ok {
		return Result{}, nil
	}
	return a.refresh(v.Elem(), binding, j, taken), nil
}

// Check reports whether a struct type can take the snapshot.
func (a *Accumulator) Check(t reflect.Type) error {
	_, err := a.compile(t)
	return err
}

func (a *Accumulator) bind(t reflect.Type) (*snapshot.Binding, error) {
	r := &a.reader
	if b := r.bindings[t]; b != nil {
		return b, nil
	}
	b, err := a.compile(t)
	if err != nil {
		return nil, err
	}
	if r.bindings == nil {
		r.bindings = make(map[reflect.Type]*snapshot.Binding)
	}
	r.bindings[t] = b
	return b, nil
}

func (a *Accumulator) compile(t reflect.Type) (*snapshot.Binding, error) {
	queries := make([]snapshot.Query, len(a.fields))
	for i, f := range a.fields {
		queries[i] = snapshot.Query{Name: f.query.Name, SpansNamespaces: f.query.Namespace == ""}
	}
	return snapshot.Compile(t, queries)
}

// takeAll takes what is new of every field. It reports false where there can be no first
// snapshot yet: some stream has its list, but has given it up again.
func (a *Accumulator) takeAll() ([]taken, bool) {
	all := make([]taken, len(a.fields))
	for i, f := range a.fields {
		sub := a.attached(f)
		if sub == nil {
			continue
		}
		all[i] = sub.take()
		if all[i].ok || a.reader.delivered || (f.query.Optional && sub.refused()) {
			continue
		}
		for j, t := range all {
			if t.ok {
				a.attached(a.fields[j]).untake()
			}
		}
		return nil, false
	}
	return all, true
}

// refresh brings the tables up to date and fills the target.
func (a *Accumulator) refresh(target reflect.Value, binding *snapshot.Binding, j *Judgement, all []taken) Result {
	r := &a.reader
	result := Result{Complete: true, Changed: !r.delivered}
	rebind := r.binding != binding
	rejudge := j != nil && !sameFunc(j.Predicate, r.predicate)
	if j != nil {
		r.predicate = j.Predicate
	}
	old := r.tables
	if rebind {
		r.binding = binding
		tables := make([]*snapshot.Table, len(a.fields))
		for i := range tables {
			tables[i] = binding.NewTable(i)
		}
		if r.present == nil {
			r.present = make([]bool, len(a.fields))
		}
		r.mu.Lock()
		r.tables = tables
		r.mu.Unlock()
	}
	var invalid []Invalid // to be reported
	invalidChanged := false
	for i, f := range a.fields {
		if rebind && old != nil {
			a.carry(i, old[i])
		}
		if !all[i].ok {
			continue
		}
		if !r.present[i] {
			r.present[i], result.Changed = true, true
		}
		rows := a.rows(i, all[i].changes, rejudge, all[i].whole)
		diffs, faults := a.apply(i, rows)
		invalidChanged = invalidChanged || faults
		for _, c := range rows {
			if c.Row != nil && c.Row.Err != nil {
				invalid = append(invalid, Invalid{f.query.Name, c.Row.Source, c.Row.Err})
			}
		}
		result.Differences = appendDifferences(result.Differences, f.query.Name, diffs)
	}
	if invalidChanged {
		r.invalid = a.invalidNow()
	}
	result.Changed = result.Changed || invalidChanged || len(result.Differences) > 0
	result.Invalid = r.invalid
	r.delivered = true
	for i := range a.fields {
		if r.present[i] {
			binding.Set(target, i, r.tables[i])
		} else {
			binding.SetAbsent(target, i)
		}
	}
	a.report(invalid)
	return result
}

// apply places rows in a table.
func (a *Accumulator) apply(i int, rows []snapshot.Change) ([]snapshot.Diff, bool) {
	r := &a.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables[i].Apply(rows)
}

// carry converts what the last snapshot held for a target of another type. What is
// shown does not change by that.
func (a *Accumulator) carry(i int, old *snapshot.Table) {
	var rows []snapshot.Change
	for row := range old.All() {
		if !row.Excluded {
			row = a.convert(i, row.Source)
		}
		rows = append(rows, snapshot.Change{Key: snapshot.KeyOf(row.Source), Row: &row})
	}
	a.apply(i, rows)
}

// rows judges and converts what changed. With rejudge it judges all the rest again; with whole,
// there is no rest: what is not among the changes is gone.
func (a *Accumulator) rows(i int, changes []change, rejudge, whole bool) []snapshot.Change {
	table := a.reader.tables[i]
	out := make([]snapshot.Change, 0, len(changes))
	rest := (rejudge || whole) && table.Held() > 0
	var seen map[Key]bool
	if rest {
		seen = make(map[Key]bool, len(changes))
	}
	for _, c := range changes {
		if rest {
			seen[c.key] = true
		}
		old, had := table.Get(c.key)
		switch {
		case c.object == nil && had:
			out = append(out, snapshot.Change{Key: c.key})
		case c.object == nil:
		case had && a.same(old.Source, c.object): // a list may bring again what is shown
			if !rejudge {
				continue
			}
			if row, ok := a.again(i, old); ok {
				out = append(out, snapshot.Change{Key: c.key, Row: &row})
			}
		default:
			row := a.row(i, c.object)
			out = append(out, snapshot.Change{Key: c.key, Row: &row})
		}
	}
	if !rest {
		return out
	}
	for old := range table.All() {
		key := snapshot.KeyOf(old.Source)
		if seen[key] {
			continue
		}
		if whole {
			out = append(out, snapshot.Change{Key: key})
			continue
		}
		if row, ok := a.again(i, old); ok {
			out = append(out, snapshot.Change{Key: key, Row: &row})
		}
	}
	return out
}

// same reports whether two objects are one version of one object.
func (a *Accumulator) same(shown, o Object) bool {
	if shown == o {
		return true
	}
	version := o.GetResourceVersion()
	return !a.streams.config.ByContent && coherence.Comparable(version) &&
		shown.GetResourceVersion() == version && uidOf(shown) == uidOf(o)
}

// again judges an unchanged object by a new predicate, and reports whether that
// changes anything. What stays shown stays the same value.
func (a *Accumulator) again(i int, old snapshot.Row) (snapshot.Row, bool) {
	pass, err := a.judge(old.Source)
	switch {
	case err == nil && pass && old.Shown():
		return old, false
	case err == nil && !pass && old.Excluded:
		return old, false
	}
	return a.row(i, old.Source), true
}

// row judges and converts one object. The user's functions run here, without locks.
func (a *Accumulator) row(i int, o Object) snapshot.Row {
	pass, err := a.judge(o)
	switch {
	case err != nil:
		return snapshot.Row{Source: o, Err: err}
	case !pass:
		return snapshot.Row{Source: o, Excluded: true}
	}
	return a.convert(i, o)
}

func (a *Accumulator) convert(i int, o Object) snapshot.Row {
	if err := rejection(o); err != nil {
		return snapshot.Row{Source: o, Err: err}
	}
	value, err := a.reader.binding.Convert(i, o)
	if err != nil {
		return snapshot.Row{Source: o, Err: err}
	}
	if a.options.Shown != nil {
		a.options.Shown(a.fields[i].query.Name, o, value)
	}
	return snapshot.Row{Source: o, Value: value}
}

// judge asks the predicate. A panic in it is an error of that object.
func (a *Accumulator) judge(o Object) (pass bool, err error) {
	if a.reader.predicate == nil || rejection(o) != nil {
		return true, nil
	}
	u, err := untyped(o)
	if err != nil {
		return false, err
	}
	defer func() {
		if p := recover(); p != nil {
			pass, err = false, fmt.Errorf("the predicate panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return a.reader.predicate(u), nil
}

// invalidNow collects what is left out.
func (a *Accumulator) invalidNow() (all []Invalid) {
	for i, t := range a.reader.tables {
		for _, row := range t.Invalid() {
			all = append(all, Invalid{a.fields[i].query.Name, row.Source, row.Err})
		}
	}
	return all
}

// report tells the user's callback. A panic in it harms nobody else.
func (a *Accumulator) report(invalid []Invalid) {
	for _, i := range invalid {
		a.streams.config.Logger.V(1).Info("object left out", "query", i.Query, "object", snapshot.KeyOf(i.Object).String(), "error", i.Err.Error())
		if a.options.Invalid == nil {
			continue
		}
		func() {
			defer func() {
				if p := recover(); p != nil {
					a.streams.config.Logger.Error(errors.New(fmt.Sprint(p)), "the callback for invalid objects panicked")
				}
			}()
			a.options.Invalid(i)
		}()
	}
}

// appendDifferences turns the diffs of a table into differences: a replaced object
// is a delete and an add (G7).
func appendDifferences(to []Difference, query string, diffs []snapshot.Diff) []Difference {
	for _, d := range diffs {
		if d.Old != nil && d.New != nil && uidOf(d.Old) != uidOf(d.New) {
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
