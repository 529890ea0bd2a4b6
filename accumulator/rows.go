package accumulator

import (
	"fmt"
	"runtime/debug"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/snapshot"
)

// row says whose rows are meant: those of the field at a place of a binding.
type row struct {
	of layout
	at int
}

func (i row) field() *field { return i.of.fields[i.at] }

// carry converts what the last snapshot held for a target of another type. What is
// shown does not change by that.
func (a *Accumulator) carry(i row, old *snapshot.Table) {
	var rows []snapshot.Change
	for row := range old.All() {
		if !row.Excluded {
			row = a.convert(i, row.Source)
		}
		rows = append(rows, snapshot.Change{Key: snapshot.KeyOf(row.Source), Row: &row})
	}
	a.apply(i.field(), rows)
}

// rows judges and converts what changed. With rejudge it judges all the rest again; where all there is
// was taken, there is no rest: what is not among the changes is gone.
func (a *Accumulator) rows(i row, t taken, rejudge bool) []snapshot.Change {
	table := i.field().table
	out := make([]snapshot.Change, 0, len(t.changes))
	rest := (rejudge || t.whole) && table.Held() > 0
	var seen map[Key]bool
	if rest {
		seen = make(map[Key]bool, len(t.changes))
	}
	for _, c := range t.changes {
		if rest {
			seen[c.key] = true
		}
		old, had := table.Get(c.key)
		switch {
		case c.object == nil && had:
			out = append(out, snapshot.Change{Key: c.key})
		case c.object == nil:
		case had && (old.Source == c.object || !t.anew && !t.reshaped && a.same(old.Source, c.object)): // a list may bring again what is shown
			if !rejudge {
				continue
			}
			if row, ok := a.again(i, old); ok {
				out = append(out, snapshot.Change{Key: c.key, Row: &row})
			}
		default:
			row := a.rowOf(i, c.object)
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
		if t.whole {
			out = append(out, snapshot.Change{Key: key})
			continue
		}
		if row, ok := a.again(i, old); ok {
			out = append(out, snapshot.Change{Key: key, Row: &row})
		}
	}
	return out
}

// same reports whether two objects are one version of one object, in one version of the API: a query may
// have moved to another, and then all that is shown is of that.
func (a *Accumulator) same(shown, o Object) bool {
	if shown == o {
		return true
	}
	version := o.GetResourceVersion()
	return !a.streams.config.ByContent && coherence.Comparable(version) &&
		shown.GetResourceVersion() == version && uidOf(shown) == uidOf(o) &&
		shown.GetObjectKind().GroupVersionKind() == o.GetObjectKind().GroupVersionKind()
}

// again judges an unchanged object by a new predicate, and reports whether that
// changes anything. What stays shown stays the same value.
func (a *Accumulator) again(i row, old snapshot.Row) (snapshot.Row, bool) {
	pass, err := a.judge(old.Source)
	switch {
	case err == nil && pass && old.Shown():
		return old, false
	case err == nil && !pass && old.Excluded:
		return old, false
	}
	return a.rowOf(i, old.Source), true
}

// rowOf judges and converts one object. The user's functions run here, without locks.
func (a *Accumulator) rowOf(i row, o Object) snapshot.Row {
	pass, err := a.judge(o)
	switch {
	case err != nil:
		return snapshot.Row{Source: o, Err: err}
	case !pass:
		return snapshot.Row{Source: o, Excluded: true}
	}
	return a.convert(i, o)
}

func (a *Accumulator) convert(i row, o Object) snapshot.Row {
	if err := rejection(o); err != nil {
		return snapshot.Row{Source: o, Err: err}
	}
	value, err := i.of.Convert(i.at, o)
	if err != nil {
		return snapshot.Row{Source: o, Err: err}
	}
	if a.options.Shown != nil {
		a.options.Shown(i.field().name, o, value)
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

// invalidOf collects what is left out.
func invalidOf(fields []*field) (all []Invalid) {
	for _, f := range fields {
		for _, row := range f.table.Invalid() {
			all = append(all, Invalid{f.name, row.Source, row.Err})
		}
	}
	return all
}
