package derive

// Value is one value, or the reason why it is invalid. [Input] and [Compute] make one.
type Value[T any] struct{ n *value }

// Get returns the value. The error is [ErrNone] if the function has returned [Skip], and an
// [*EntryError] if the value is invalid. A function that has called Get runs again when the value
// changes.
func (v Value[T]) Get(r *Reader) (value T, err error) {
	if v.n == nil {
		r.permit(nil)
	}
	r.permit(&v.n.header)
	r.recordQuestion(v.n.one)
	switch x := v.n.one.cell.(type) {
	case nil:
		return value, ErrNone
	case *cellOf[only, T]:
		return x.val, nil
	default:
		return value, v.n.errorOf(x)
	}
}

// only is the key of a value.
type only struct{}

// noInput stands for the input of a value, and has its key.
var noInput cell = &fault{key: only{}}

// value is the node behind a [Value]: a collection of at most one entry.
type value struct {
	collection
	one *one
	// f runs the function. It returns nil if the result is what the value was. Nil: an input.
	f    func(r *Reader, was cell) (cell, error)
	list []int32
}

// one is the entry of a value. It is asked also while it has no value.
type one struct{ made }

func (o *one) text(c *core) string { return c.nodes[o.node].head().name }

// Input is a value of the snapshot: an option, a number, whether an optional field is nil. Nothing
// runs while it is equal to the last one, by the rules of [Equal]. A time changes with each
// snapshot: round it.
func Input[S, T any](g *Graph[S], name string, field func(*S) T, o ...Option[T]) Value[T] {
	v, equal := &value{}, equalOf(o)
	v.equal = equalAny(equal)
	v.declare(g.c, "Input", name)
	if field == nil {
		g.c.wrong("%q has no function for its field", name)
	}
	g.feeds[int(v.index)] = func(s *S) error {
		if next := another(v.c, v.one.cell, only{}, field(s), equal); next != nil {
			v.put(&v.one.entry, next)
		}
		return nil
	}
	return Value[T]{v}
}

// Compute is a value that a function makes of what it looks up. It runs when an answer changes.
// All else is as with [Map].
func Compute[T any](g Any, name string, f func(*Reader) (T, error), o ...Option[T]) Value[T] {
	v, equal := &value{}, equalOf(o)
	v.equal, v.printed.on = equalAny(equal), true
	v.f = func(r *Reader, was cell) (cell, error) {
		out, err := f(r)
		if err != nil {
			return nil, err
		}
		return another(v.c, was, only{}, out, equal), nil
	}
	v.declare(g.graph(), "Compute", name)
	if f == nil {
		v.c.wrong("%q has no function", name)
	}
	return Value[T]{v}
}

func (v *value) declare(c *core, kind, name string) {
	c.declare(v, kind, name)
	v.table, v.owner = newTable(func(a, b only) int { return 0 }, func(int32) only { return only{} }), true
	v.reset()
}

func (v *value) reset() {
	v.collection.reset()
	v.one = &one{}
	v.place(tableOf[only](&v.collection).add(only{}), &v.one.entry)
	v.list = nil
	if v.f != nil {
		mark(v, 0, nil)
	}
}

func (v *value) runner(int32) *runner { return &v.one.runner }

func (v *value) rowKey(int32) string { return "" }

func (v *value) queue(row int32) { v.list = append(v.list, row) }

func (v *value) evaluate() {
	if len(v.list) == 0 {
		return
	}
	v.list, v.one.dirty = v.list[:0], false
	var next cell
	err := v.run(0, &v.one.runner, func(r *Reader) (err error) {
		next, err = v.f(r, v.one.cell)
		return err
	})
	another := v.result(&v.one.entry, noInput, next, err)
	if v.countRun(&v.one.runner, another); another {
		v.c.answered(v.one, v.one)
	}
}

func (v *value) checks() int {
	if v.f == nil {
		return 0
	}
	return 1
}

func (v *value) check(int) *finding {
	return v.checkEntry(&v.one.entry, only{}, func(r *Reader) (cell, error) { return v.f(r, nil) })
}
