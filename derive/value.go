package derive

// Value is one value, or the reason why it is invalid. [Input] and [Compute] make one.
type Value[T any] struct{ n *value[T] }

// Get returns the value. The error is [ErrNone] if the function has returned [Skip], and an
// [*EntryError] if the value is invalid. A function that has called Get runs again when the value
// changes.
func (v Value[T]) Get(r *Reader) (T, error) {
	if v.n == nil {
		r.permit(nil)
	}
	r.permit(&v.n.header)
	r.recordQuestion(v.n.one)
	x := v.n.one.cell
	if x == nil {
		var none T
		return none, ErrNone
	}
	return x.val, v.n.errorOf(x)
}

// only is the key of a value.
type only struct{}

// value is the node behind a [Value]: a collection of at most one entry.
type value[T any] struct {
	collection[only, T]
	one  *one[T]
	f    func(*Reader) (T, error) // nil: an input
	list []int32
}

// one is the entry of a value. It is asked also while it has no value.
type one[T any] struct {
	entry[only, T]
	runner
}

func (o *one[T]) text(c *core) string { return c.nodes[o.node].head().name }

// Input is a value of the snapshot: an option, a number, whether an optional field is nil. Nothing
// runs while it is equal to the last one, by the rules of [Equal]. A time changes with each
// snapshot: round it.
func Input[S, T any](g *Graph[S], name string, field func(*S) T, o ...Option[T]) Value[T] {
	v := &value[T]{}
	v.equal = equalOf(o)
	v.declare(g.c, "Input", name)
	if field == nil {
		g.c.wrong("%q has no function for its field", name)
	}
	g.feeds[int(v.index)] = func(s *S) error {
		next := field(s)
		if !v.same(&v.one.entry, next) {
			v.put(&v.one.entry, &cell[only, T]{val: next})
		}
		return nil
	}
	return Value[T]{v}
}

// Compute is a value that a function makes of what it looks up. It runs when an answer changes.
// All else is as with [Map].
func Compute[T any](g Any, name string, f func(*Reader) (T, error), o ...Option[T]) Value[T] {
	v := &value[T]{f: f}
	v.equal, v.printed = equalOf(o), true
	v.declare(g.graph(), "Compute", name)
	if f == nil {
		v.c.wrong("%q has no function", name)
	}
	return Value[T]{v}
}

func (v *value[T]) declare(c *core, kind, name string) {
	c.declare(v, kind, name)
	v.own(c)
	v.reset()
}

func (v *value[T]) reset() {
	v.collection.reset()
	v.one = &one[T]{}
	v.place(v.table.add(only{}), &v.one.entry)
	v.list = nil
	if v.f != nil {
		mark(v, 0, nil)
	}
}

func (v *value[T]) runner(int32) *runner { return &v.one.runner }

func (v *value[T]) rowKey(int32) string { return "" }

func (v *value[T]) queue(row int32) { v.list = append(v.list, row) }

func (v *value[T]) evaluate() {
	if len(v.list) == 0 {
		return
	}
	v.list, v.one.dirty = v.list[:0], false
	var out T
	var same bool
	err := v.run(0, &v.one.runner, func(r *Reader) (err error) {
		if out, err = v.f(r); err == nil {
			same = v.same(&v.one.entry, out)
		}
		return err
	})
	another := v.result(&v.one.entry, only{}, out, err, same)
	if v.countRun(&v.one.runner, another); another {
		v.c.answered(v.one, v.one)
	}
}

func (v *value[T]) checks() int {
	if v.f == nil {
		return 0
	}
	return 1
}

func (v *value[T]) check(int) *finding {
	if f := v.changedAfter(&v.one.entry); f != nil {
		return f
	}
	return compared(v.name, "", func() (o outcome) {
		var out T
		o.err = v.rerun(func(r *Reader) (err error) {
			out, err = v.f(r)
			return err
		})
		o.val = out
		return o
	}, keptOf(v.one.cell), v.equal)
}
