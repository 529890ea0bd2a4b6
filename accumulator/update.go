package accumulator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// Rejudge has the next Update judge every object again, and signals it.
func (a *Accumulator) Rejudge() {
	a.rejudge.Store(true)
	a.collector.Ensure()
}

// Update fills the struct that target points to with the current snapshot. It sets every query's
// field, so a fresh struct is as good as the last one. Until all queries are complete it does
// nothing. On an error, too, the target stays as it was, and no change is lost. A nil judgement
// leaves the predicate as it is.
//
// Update never waits for the network. If another Update of this accumulator runs, it waits until
// that ends, or ctx.
func (a *Accumulator) Update(ctx context.Context, target any, j *Judgement) (Result, error) {
	atRest := false
	defer func() {
		if !atRest {
			a.collector.Note() // there is more to come, or an error, or a panic
		}
	}()
	v := reflect.ValueOf(target)
	if err := checkTarget(v); err != nil {
		return Result{}, err
	}
	if err := a.collector.Enter(ctx); err != nil {
		return Result{}, err
	}
	defer a.collector.Leave()
	began := time.Now()
	a.streams.Reach(stream.AtUpdate)
	t := v.Elem().Type()
	if err := a.collector.Advance(func(queries []query.Query) error { return fits(t, queries) }); err != nil {
		return Result{}, err
	}
	fields, err := a.bind(t)
	if err != nil {
		return Result{}, err
	}
	if !a.collector.Complete() || !a.collector.Take(fields.fields) {
		return Result{}, nil
	}
	result := a.refresh(v.Elem(), fields, j)
	a.collector.Updated("", began, result.Changed, result.Differences)
	a.prepare(fields) // last: the copy is for the time in which the caller works with the snapshot
	atRest = a.collector.AtRest()
	return result, nil
}

// checkTarget returns an error unless an update can fill the struct that target points to.
func checkTarget(target reflect.Value) error {
	switch {
	case !target.IsValid():
		return errors.New("the target of an update is nil: want a pointer to a struct")
	case target.Kind() != reflect.Pointer || target.Type().Elem().Kind() != reflect.Struct:
		return fmt.Errorf("the target of an update is a pointer to a struct, not %s", object.TypeName(target.Type()))
	case target.IsNil():
		return fmt.Errorf("the target of an update is a nil %s: want a pointer to a struct", object.TypeName(target.Type()))
	}
	return nil
}

// refresh updates the tables and fills the target.
func (a *Accumulator) refresh(target reflect.Value, b layout, j *Judgement) Result {
	result := Result{Complete: true, Changed: !a.collector.Delivered()}
	if a.rejudge.Swap(false) || j != nil && j.place != a.judgement.place {
		a.judgements.all++
	}
	if j != nil {
		if j.function != a.judgement.function {
			a.judgements.panicked++
		}
		a.judgement = *j
	}
	faults := a.depart(&result, b)
	carried := a.rebind(b)
	var invalid []tables.Invalid // to be reported
	for i, f := range b.fields {
		c := carried[i] // the zero value for most fields
		faults = faults || c.faults
		for _, row := range c.invalid {
			invalid = append(invalid, tables.Invalid{Query: f.Name, Object: row.Source, Err: row.Err})
		}
		t := f.Taken
		if f.Taken = (query.Batch{}); !t.OK() {
			result.Differences = tables.AppendDifferences(result.Differences, f.Name, c.diffs)
			continue
		}
		if t.Absent == f.Present {
			f.Present, result.Changed = !t.Absent, true
		}
		rows := a.rows(row{b, i}, t, f.Shown.judged)
		f.Shown.judged = a.judgements      // a field without a batch is judged with its next one
		diffs, changed := a.apply(f, rows) // also of what is left out
		faults = faults || changed
		for _, c := range rows {
			if c.Row != nil && c.Row.Err != nil {
				invalid = append(invalid, tables.Invalid{Query: f.Name, Object: c.Row.Source, Err: c.Row.Err})
			}
		}
		result.Differences = tables.AppendDifferences(result.Differences, f.Name, followed(c.diffs, diffs))
	}
	if faults {
		a.invalid = invalidOf(b.fields)
	}
	result.Changed = result.Changed || faults || len(result.Differences) > 0
	result.Invalid = a.invalid
	a.collector.Deliver(b.generation)
	b.fill(target, a.retired)
	a.collector.Report(invalid)
	a.handed(b, result)
	return result
}

// depart removes the objects of removed queries. It reports whether some of them were invalid.
func (a *Accumulator) depart(result *Result, b layout) (faults bool) {
	if slices.Equal(a.fields, b.fields) {
		return false
	}
	for _, f := range a.fields {
		if slices.Contains(b.fields, f) || a.succeeded(f, b) {
			continue
		}
		if a.retired == nil {
			a.retired = make(map[string]bool)
		}
		a.retired[f.Name] = true
		result.Changed = result.Changed || f.Present
		if f.Shown.table == nil {
			continue
		}
		faults = faults || len(f.Shown.table.Invalid()) > 0
		for old := range f.Shown.table.All() {
			if old.Shown() {
				result.Differences = append(result.Differences, tables.Difference{Query: f.Name, Old: old.Source})
			}
		}
	}
	for _, f := range b.fields {
		delete(a.retired, f.Name)
	}
	a.fields = b.fields
	return faults
}

// succeeded hands the shown objects to a complete query of the same name that was added since.
// Objects of both queries are neither deleted nor added.
func (a *Accumulator) succeeded(f *field, b layout) bool {
	i := slices.IndexFunc(b.fields, func(next *field) bool { return next.Name == f.Name })
	if i < 0 || !b.fields[i].Taken.OK() || f.Shown.table == nil {
		return false
	}
	next := b.fields[i]
	a.tables.Lock()
	*next.Shown, next.Present = *f.Shown, f.Present
	a.tables.Unlock()
	next.Taken.ComesAfter(f.Query, next.Query)
	return true
}

// rebind gives every field a table for the target's type. It returns the resulting changes by
// field.
func (a *Accumulator) rebind(b layout) (changed map[int]carried) {
	same := a.binding != nil && a.binding.Type() == b.Type()
	a.binding = b.Binding
	for i, f := range b.fields {
		old, spans := f.Shown.table, f.Query.Query().Namespace == ""
		if old != nil && same && f.Shown.spans == spans {
			continue
		}
		a.tables.Lock()
		f.Shown.table, f.Shown.spans = b.NewTable(i), spans
		a.tables.Unlock()
		if old != nil {
			if changed == nil {
				changed = make(map[int]carried)
			}
			changed[i] = a.carry(row{b, i}, old)
		}
	}
	return changed
}
