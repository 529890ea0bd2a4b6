package derive

import (
	"errors"
	"fmt"
)

// Reader reads collections and values of a graph. A function gets one for each run: what the
// function looks up through it is recorded, and the function runs again when an answer changes.
// [Graph.Update] returns one for the results.
//
// A Reader of a function ends with the run, and that of an Update with the next Update. It is for
// one goroutine. To use it after its end, to read a node of another graph, or to read in a
// function a node that was declared later, is a mistake in the program: the call panics. In a
// function the panic becomes the error of its entry.
type Reader struct {
	c      *core
	before int32 // nodes from this index on cannot be read
	record bool
	ended  bool
}

// permit panics if the reader may not read the node.
func (r *Reader) permit(h *header) {
	switch {
	case h == nil || h.c == nil:
		misuse("a collection or value that no graph has made is read")
	case r == nil:
		misuse("%q is read with a Reader that is nil", h.name)
	case r.c != h.c:
		misuse("%q is read with a Reader of the graph %q", h.name, r.c.name)
	case r.ended:
		misuse("%q is read with a Reader that has ended", h.name)
	case h.index >= r.before:
		misuse("%q reads %q, which is not declared before it", r.c.nodes[r.before].head().name, h.name)
	}
}

// recordQuestion records a question, in a function's run.
func (r *Reader) recordQuestion(a asked) {
	if r.record {
		r.c.rec.recordQuestion(a)
	}
}

// expected is what the run before has looked up next, as far as the runs agree. Nil: nothing.
func (r *Reader) expected() asked {
	if rec := &r.c.rec; r.record && len(rec.fresh) == 0 && rec.same < len(rec.of.asks) {
		return rec.of.asks[rec.same].of
	}
	return nil
}

// run calls a function with a Reader that ends with the call, and records what it looks up.
func (h *header) run(row int32, r *runner, f func(*Reader) error) error {
	c := h.c
	c.rec.beginRun(r)
	reader := takeElement(&c.readers, c.coming)
	*reader = Reader{c: c, before: h.index, record: true}
	defer func() { reader.ended = true }() // also if the function ends its goroutine
	err := h.called(func() error { return withText(f(reader)) })
	c.endRun(h.index, row)
	r.ran = c.updates
	return err
}

// withText returns an error whose text can be read. Else it panics, as the methods of the error
// do: those of a pointer that is nil, for example.
func withText(err error) error {
	if err != nil && !errors.Is(err, Skip) {
		_ = err.Error()
	}
	return err
}

// rerun calls a function without a record.
func (h *header) rerun(f func(*Reader) error) error {
	reader := &Reader{c: h.c, before: h.index}
	defer func() { reader.ended = true }()
	return h.called(func() error { return withText(f(reader)) })
}

var (
	// ErrNone is the error of a look-up: there is no entry with this key.
	ErrNone = errors.New("no entry with this key")
	// Skip is what a function returns that makes no entry of its input.
	Skip = errors.New("no entry for this input") //lint:ignore ST1012 it is no failure, as io.EOF is none
)

// EntryError is the error of a look-up: the entry is there, and it is invalid. It is invalid
// because its function has returned this error or has panicked, because its input is invalid, or
// because its key is there twice.
type EntryError struct {
	Node string // the name of the collection or value
	Key  string // empty for a value
	Err  error
}

// Error names the entry and says why it is invalid.
func (e *EntryError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s: %v", e.Node, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Node, e.Key, e.Err)
}

// Unwrap returns the reason.
func (e *EntryError) Unwrap() error { return e.Err }

// fault is the cell of an entry that is invalid.
type fault struct {
	key any
	err error // the reason
}

func (f *fault) anyKey() any   { return f.key }
func (f *fault) anyValue() any { return nil }

// faultOf returns why an entry is invalid; nil if it is valid or not there.
func faultOf(x cell) *fault {
	f, _ := x.(*fault)
	return f
}

// sameFault tells whether two reasons have the same text.
func sameFault(a, b *fault) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.err.Error() == b.err.Error()
}

// mistake is a panic of a function, or of a program, that uses a Reader or a node in a way that
// cannot be answered.
type mistake string

func (m mistake) Error() string { return "derive: " + string(m) }

func misuse(format string, args ...any) { panic(mistake(fmt.Sprintf(format, args...))) }
