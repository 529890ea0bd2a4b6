package kates

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/reach"
	"github.com/kates-go/kates/snapshot"
)

// ErrClosed is the error of a watch that ended by Close.
var ErrClosed = accumulator.ErrClosed

// An Accumulator watches the objects of several queries and hands out snapshots of them:
//
//	for range acc.Changed() {
//	    if changed, err := acc.Update(ctx, &snap); err != nil || !changed {
//	        continue
//	    }
//	    reconcile(snap) // may take as long as it likes
//	}
//
// A snapshot is complete: there is none before every query has its whole first list. It
// is the latest: changes are coalesced while the reader is busy, never queued. It shows what this
// client has written. It is in order, and what did not change since the last one is the very same
// pointer, slice or map.
//
// Objects in a snapshot are shared: with later snapshots, other accumulators, other
// goroutines. Nobody may write to them. DeepCopy what is to be changed.
//
// One goroutine reads an accumulator at a time; for a second reader call Watch
// again (the watches beneath are shared). All other methods may be called from anywhere.
type Accumulator struct {
	client *Client
	acc    *accumulator.Accumulator
}

// Invalid is an object that is left out of a snapshot.
type Invalid struct {
	// Query that it would belong to.
	Query string
	// Object as the watch holds it; where a transform failed, or it does not decode straight from the wire (see
	// [WithUntypedStreams]), what is known of it: kind, namespace, name, UID and resource version. Read-only.
	Object *Unstructured
	// Err says why: it does not decode into the field's type, or a function that was to
	// judge it panicked.
	Err error
}

// Watch starts watching the objects of some queries, until ctx ends or Close. Each
// query's Name is the name of the field, of the structs given to Update, that receives its objects:
// a slice ([]*Service, []Service, []*Unstructured, []map[string]any, or of any struct that has the
// right JSON) or a map of such (by types.NamespacedName, types.UID, or string: the name, or
// namespace/name if the query spans the namespaces of a namespaced kind).
//
// It is an error, naming the query, if a kind is unknown or cannot be watched (unless
// the query is optional), a selector does not parse or the server does not support it, or a name is
// empty or there twice. On an error nothing is left running.
//
// See the function [Watch] for snapshots whose type says what they consist of.
func (c *Client) Watch(ctx context.Context, queries ...Query) (*Accumulator, error) {
	targets := make([]target, len(queries))
	for i, q := range queries {
		targets[i] = target{Query: q}
	}
	acc, err := c.accumulate(ctx, targets)
	if err != nil {
		return nil, reach.First(fmt.Errorf("watch: %w", err))
	}
	return &Accumulator{c, acc}, nil
}

func (c *Client) accumulate(ctx context.Context, targets []target) (*accumulator.Accumulator, error) {
	w := c.watch.get()
	queries, err := c.compile(targets)
	if err != nil {
		return nil, err
	}
	return accumulator.New(ctx, c.core.streams, queries, w.options())
}

// options are the settings as the accumulator has them.
func (w watchSettings) options() accumulator.Options {
	o := accumulator.Options{Pace: w.pace, QuietOwnWrites: w.quietOwn, Overdue: w.overdue}
	if w.invalid != nil {
		o.Invalid = func(i accumulator.Invalid) { w.invalid(invalidOf(i)) }
	}
	if w.shown != nil {
		o.Shown = func(query string, source accumulator.Object, value any) { w.shown(query, source, value) }
	}
	return o
}

// Changed gives a signal when there is something new for Update. The first comes when the first
// snapshot is complete, also if it is empty. It holds one signal at most; a signal may turn out to be
// for nothing, but none is ever missing. It is closed when the watch ends.
func (a *Accumulator) Changed() <-chan struct{} { return a.acc.Changed() }

// Update fills the struct that target points to with the current snapshot, every
// query's field of it, and reports whether that differs from the last one that this accumulator
// delivered. Until the first snapshot is complete it returns false and touches nothing. On an error,
// too, the target is untouched and nothing is consumed; after the end of the watch the error is its
// cause. Update does not wait for the network.
func (a *Accumulator) Update(ctx context.Context, target any) (bool, error) {
	r, err := a.acc.Update(ctx, target, nil)
	return r.Changed, err
}

// UpdateWithDeltas is Update that also says what has changed: *deltas is overwritten with one [Delta] per
// object, ordered by query, namespace and name. A nil deltas is allowed.
func (a *Accumulator) UpdateWithDeltas(ctx context.Context, target any, deltas *[]*Delta) (bool, error) {
	return a.update(ctx, target, deltas, nil)
}

// FilteredUpdate is UpdateWithDeltas with a predicate: objects that it returns false for are not in the
// snapshot. It is asked once per change of an object, sees the object as the server has it, must not
// write to it, and runs without locks. An object for which it panics is left out as [Invalid].
//
// A predicate stays in force, for Update and UpdateWithDeltas as well, until FilteredUpdate is called with another
// one, which then judges all objects again; nil lets all of them pass. Function values are compared
// by identity, and a closure that is made anew for each call is another one each time:
// keep it in a variable.
func (a *Accumulator) FilteredUpdate(ctx context.Context, target any, deltas *[]*Delta, predicate func(*Unstructured) bool) (bool, error) {
	return a.update(ctx, target, deltas, &accumulator.Judgement{Predicate: predicate})
}

func (a *Accumulator) update(ctx context.Context, target any, deltas *[]*Delta, j *accumulator.Judgement) (bool, error) {
	r, err := a.acc.Update(ctx, target, j)
	if err == nil && r.Complete && deltas != nil {
		*deltas = deltasOf(r.Differences)
	}
	return r.Changed, err
}

// Ready is nil once the first snapshot is complete, and never turns back: an outage of the
// API must not take down what runs on the last snapshot. Until then it says what is missing, and why.
func (a *Accumulator) Ready() error { return a.acc.Ready() }

// Status says how each query stands now.
func (a *Accumulator) Status() Status { return statusOf(a.acc.Status()) }

// Close ends the watch, closes Changed, and waits until nothing of it runs any more.
func (a *Accumulator) Close() { a.acc.Close() }

// checkStruct reports whether a struct type has a fitting field for each query.
func checkStruct(t reflect.Type, targets []target) error {
	queries := make([]snapshot.Query, len(targets))
	for i, q := range targets {
		queries[i] = snapshot.Query{Name: q.Name, SpansNamespaces: q.Namespace == ""}
	}
	_, err := snapshot.Compile(t, queries)
	return err
}

func invalidOf(i accumulator.Invalid) Invalid {
	u, ok := i.Object.(*unstructured.Unstructured)
	if !ok && stream.Fault(i.Object) == nil {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(i.Object)
		u, ok = &Unstructured{Object: content}, err == nil
	}
	if !ok {
		u = &Unstructured{}
		u.SetGroupVersionKind(i.Object.GetObjectKind().GroupVersionKind())
		u.SetNamespace(i.Object.GetNamespace())
		u.SetName(i.Object.GetName())
		u.SetUID(i.Object.GetUID())
		u.SetResourceVersion(i.Object.GetResourceVersion())
	}
	return Invalid{Query: i.Query, Object: u, Err: i.Err}
}
