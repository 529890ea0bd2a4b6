package accumulator

import (
	"errors"
	"slices"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// row identifies the rows of one field in a layout.
type row struct {
	of layout
	at int
}

func (i row) field() *field { return i.of.fields[i.at] }

// carried is the difference that a target of another type makes: an object may decode into one
// type, and not into the other.
type carried struct {
	diffs   []tables.Diff // objects newly shown or left out, in key order
	invalid []tables.Row  // newly in error
	faults  bool          // the invalid objects have changed
}

// carry converts the rows of the last snapshot for a target of another type. It judges invalid
// objects again. For the rest it keeps the predicate's decision.
func (a *Accumulator) carry(i row, old *tables.Table) (c carried) {
	out := tables.NewChanges(old.Held())
	for was := range old.All() {
		now := was
		switch {
		case was.Err != nil:
			now = a.rowOf(i, was.Source)
		case !was.Excluded:
			now = a.convert(i, was.Source)
		}
		key := object.KeyOf(was.Source)
		out.Put(key, now)
		if was.Shown() && !now.Shown() {
			c.diffs = append(c.diffs, tables.Diff{Key: key, Old: was.Source})
		} else if now.Shown() && !was.Shown() {
			c.diffs = append(c.diffs, tables.Diff{Key: key, New: now.Source})
		}
		if now.Err != nil && was.Err == nil {
			c.invalid = append(c.invalid, now)
		}
		c.faults = c.faults || faultOf(was) != faultOf(now)
	}
	a.apply(i.field(), out.All)
	return c
}

// faultOf returns the error of a row in words; "" if there is none.
func faultOf(r tables.Row) string {
	if r.Err == nil {
		return ""
	}
	return "invalid: " + r.Err.Error()
}

// followed combines diffs with later ones, one for each key. Both are in key order.
func followed(diffs, then []tables.Diff) []tables.Diff {
	if len(diffs) == 0 {
		return then
	}
	all := make([]tables.Diff, 0, len(diffs)+len(then))
	for len(diffs) > 0 && len(then) > 0 {
		switch order := object.Compare(diffs[0].Key, then[0].Key); {
		case order < 0:
			all, diffs = append(all, diffs[0]), diffs[1:]
		case order > 0:
			all, then = append(all, then[0]), then[1:]
		default:
			if both := (tables.Diff{Key: then[0].Key, Old: diffs[0].Old, New: then[0].New}); both.Old != both.New {
				all = append(all, both)
			}
			diffs, then = diffs[1:], then[1:]
		}
	}
	return append(append(all, diffs...), then...)
}

// rows judges and converts the changes. What has been judged less often than it should be is
// judged again. If the batch has all objects, the others are gone. The result is in key order.
func (a *Accumulator) rows(i row, t query.Batch, judged judgements) []tables.Change {
	rejudge := judged.all != a.judgements.all
	slices.SortFunc(t.Changes, func(x, y audience.Change) int { return object.Compare(x.Key, y.Key) })
	table, out, changes := i.field().Shown.table, tables.NewChanges(len(t.Changes)), t.Changes
	differ := t.Breaks.Has(query.NewHistory | query.Reshaped) // one version may look different
	if rejudge || t.Renews() {
		for old := range table.All() {
			key := object.KeyOf(old.Source)
			for len(changes) > 0 && object.Compare(changes[0].Key, key) < 0 {
				a.changed(&out, i, changes[0])
				changes = changes[1:]
			}
			if len(changes) > 0 && changes[0].Key == key {
				a.changedFrom(&out, i, old, changes[0], differ, rejudge)
				changes = changes[1:]
			} else if t.Gone(key) {
				out.Delete(key)
			} else if rejudge {
				if row, ok := a.again(i, old); ok {
					out.Put(key, row)
				}
			}
		}
	}
	for cursor := table.Cursor(); len(changes) > 0; changes = changes[1:] {
		if source, had := cursor.Source(changes[0].Key); had {
			a.changedFrom(&out, i, tables.Row{Source: source}, changes[0], differ, false)
		} else {
			a.changed(&out, i, changes[0])
		}
	}
	if !rejudge && judged.panicked != a.judgements.panicked {
		a.panicked(&out, i)
	}
	return out.All
}

// panicked judges the objects again for which the predicate before has panicked, but for those
// that are in out already. Few have: they are looked for among what is left out.
func (a *Accumulator) panicked(out *tables.Changes, i row) {
	byKey := func(c tables.Change, k object.Key) int { return object.Compare(c.Key, k) }
	changed := out.All
	for _, old := range i.field().Shown.table.Invalid() {
		p, key := (*guard.Panic)(nil), object.KeyOf(old.Source)
		if !errors.As(old.Err, &p) || p.What != predicatePanicked {
			continue
		}
		if _, done := slices.BinarySearchFunc(changed, key, byKey); done {
			continue
		}
		if now, ok := a.again(i, old); ok {
			out.Put(key, now)
		}
	}
	slices.SortFunc(out.All, func(x, y tables.Change) int { return object.Compare(x.Key, y.Key) })
}

// changed adds a change of a key that the table does not have.
func (a *Accumulator) changed(out *tables.Changes, i row, c audience.Change) {
	if c.Object != nil {
		out.Put(c.Key, a.rowOf(i, c.Object))
	}
}

// changedFrom adds a change of a key that the table has. old is its row, complete if it is to be
// judged again.
func (a *Accumulator) changedFrom(out *tables.Changes, i row, old tables.Row, c audience.Change, differ, rejudge bool) {
	switch {
	case c.Object == nil:
		out.Delete(c.Key)
	case old.Source != c.Object && (differ || !a.collector.Same(old.Source, c.Object)):
		a.changed(out, i, c)
	case rejudge: // a list may repeat a shown object
		if row, ok := a.again(i, old); ok {
			out.Put(c.Key, row)
		}
	}
}

// again judges an unchanged object by a new predicate, and reports whether the row changes. An
// object that stays shown keeps its value. One that stays invalid for the same reason is not
// reported again.
func (a *Accumulator) again(i row, old tables.Row) (tables.Row, bool) {
	pass, err := a.judge(i, old.Source)
	switch {
	case err == nil && pass && old.Shown():
		return old, false
	case err == nil && !pass && old.Excluded && old.Counts == a.judgement.counts:
		return old, false
	}
	now := a.rowAs(i, old.Source, pass, err)
	return now, now.Err == nil || faultOf(now) != faultOf(old)
}

// rowOf judges and converts one object. The user's functions run here, without locks.
func (a *Accumulator) rowOf(i row, o object.Object) tables.Row {
	pass, err := a.judge(i, o)
	return a.rowAs(i, o, pass, err)
}

// rowAs converts an object that was judged.
func (a *Accumulator) rowAs(i row, o object.Object, pass bool, err error) tables.Row {
	switch {
	case err != nil:
		return tables.Row{Source: o, Err: err}
	case !pass:
		return tables.Row{Source: o, Excluded: true, Counts: a.judgement.counts}
	}
	return a.convert(i, o)
}

func (a *Accumulator) convert(i row, o object.Object) tables.Row {
	return a.collector.Convert(i.of.Binding, i.at, i.field().Name, o)
}

const predicatePanicked = "the predicate panicked"

var thePredicate = "the predicate"

// judge calls the predicate. A panic in it is an error of that object.
func (a *Accumulator) judge(i row, o object.Object) (pass bool, err error) {
	if a.judgement.predicate == nil || object.Fault(o) != nil {
		return true, nil
	}
	u, err := untyped(o)
	if err != nil {
		return false, err
	}
	defer a.collector.Lend("the predicate", i.field().Name, o, nil)()
	a.collector.Doing(&thePredicate)
	err = guard.Named(predicatePanicked, func() error {
		pass, err = a.judgement.predicate(u)
		if err != nil {
			_ = err.Error() // the user's, which may panic
		}
		return err
	})
	a.collector.Doing(nil)
	return pass && err == nil, err
}

// invalidOf collects the objects that are left out.
func invalidOf(fields []*field) (all []tables.Invalid) {
	for _, f := range fields {
		for _, row := range f.Shown.table.Invalid() {
			all = append(all, tables.Invalid{Query: f.Name, Object: row.Source, Err: row.Err})
		}
	}
	return all
}

// apply places rows in a table.
func (a *Accumulator) apply(f *field, rows []tables.Change) ([]tables.Diff, bool) {
	a.tables.Lock()
	defer a.tables.Unlock()
	return f.Shown.table.Apply(rows)
}
