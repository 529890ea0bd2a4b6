package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/client/reach"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
)

// ErrClosed is the error of a watch that ended by Close.
var ErrClosed = stream.ErrClosed

// An Accumulator watches the objects of several queries and hands out snapshots of them:
//
//	for range acc.Changed() {
//	    if changed, err := acc.Update(ctx, &snap); err != nil || !changed {
//	        continue
//	    }
//	    reconcile(snap) // may take as long as it likes
//	}
//
// Snapshots are complete, the latest, and in order, and they show what this client has written.
// The package's documentation has the guarantees. Objects in a snapshot are shared with later
// snapshots, other accumulators and other goroutines. Nobody may write to them: DeepCopy an object
// to change it.
//
// One goroutine reads an accumulator at a time. For a second reader call Watch again: equal
// watches are shared. All other methods are safe for concurrent use.
type Accumulator struct{ watching }

// watching is a watch of a client, whatever the form of its snapshots.
type watching struct {
	client *Client
	acc    *accumulator.Accumulator
	typ    reflect.Type // of the struct that says the queries' kinds, nil without one
}

// Invalid is an object that a snapshot leaves out.
type Invalid struct {
	// Query to which the object would belong.
	Query string
	// Object is the object as the server has it, with its status and its generation, whatever the
	// field's type holds of it. No request is sent for it. Read-only. There are four exceptions:
	//   - What the predicate of a JudgedUpdate rejects is as the query holds it.
	//   - Of a query for metadata alone, the object is its metadata, as the server sends no more.
	//     What comes in protobuf, and an object of an API type whose Key fails, is what that type
	//     has of it. The managedFields may be left out.
	//   - All such objects of a client have at most [Tuning].MaxObjectBytes together, as they came
	//     over the wire. Of one for which there is no room left, the object is the metadata, until
	//     it comes again.
	//   - If not even its bytes make sense, or if several objects share its name, the object is its
	//     metadata where that is known, or else kind, namespace, name and version.
	Object *Unstructured
	// Err says why: the object does not decode into the field's type, a Where or a predicate says
	// so, or a function of the query panicked or failed.
	Err error
}

// Watch starts watching the objects of some queries, until ctx ends or Close. The Name of a query
// is that of a field of the structs given to Update. The field gets the query's objects. It is a
// slice ([]*Service, []Service, []*Unstructured, []map[string]any, []any, []json.RawMessage, or of
// any type that decodes from an object's JSON), a map of such, or a list: a struct, or a pointer
// to one, with such a slice in its Items. The keys of a map are of type types.NamespacedName,
// types.UID, or string: the name, or namespace/name if the query spans the namespaces of a
// namespaced kind.
//
// It is an error if a kind is unknown (unless the query is optional) or cannot be watched, if a
// selector does not parse or the server does not support it, or if a name is empty or occurs
// twice. The error names the query. After an error nothing is left running.
//
// See the function [Watch] for snapshots with a struct type of their own.
func (c *Client) Watch(ctx context.Context, queries ...Query) (*Accumulator, error) {
	acc, err := c.accumulate(ctx, nil, wantedOf(queries))
	if err != nil {
		return nil, reach.First(fmt.Errorf("watch: %w", err))
	}
	return &Accumulator{watching{c, acc, nil}}, nil
}

// WatchStruct is [Client.Watch] for a struct type whose fields say what to watch, as the function
// [Watch] reads them: for a type that is known only at run time (reflect.StructOf). The targets of
// Update are pointers to such a struct. Its fields of Go types get typed streams. The struct has
// no field for deltas or invalid objects: [Accumulator.UpdateWithDeltas] and
// [Accumulator.JudgedUpdate] return these. To Add, Replace and Change, the field's type and tag
// apply too.
func (c *Client) WatchStruct(
	ctx context.Context, t reflect.Type, queries ...Query,
) (*Accumulator, error) {
	if t == nil {
		return nil, errors.New("watch a struct: its type is nil")
	}
	acc, _, err := c.watchStruct(ctx, compile.Struct{Reports: reports, Mode: compile.Mode{Unreported: true}}, t, queries)
	if err != nil {
		return nil, err
	}
	return &Accumulator{watching{c, acc, t}}, nil
}

// watchStruct watches what the fields of a struct type say, and returns these.
func (c *Client) watchStruct(
	ctx context.Context, f compile.Struct, t reflect.Type, queries []Query,
) (*accumulator.Accumulator, compile.Struct, error) {
	f, err := c.compiler().Fields(ctx, f, t, wantedOf(queries))
	if err == nil {
		err = compile.CheckStruct(t, f.Wanted)
	}
	var acc *accumulator.Accumulator
	if err == nil {
		acc, err = c.accumulate(ctx, t, f.Wanted)
	}
	if err != nil {
		return nil, f, reach.First(fmt.Errorf("watch %s: %w", objects.TypeName(t), err))
	}
	return acc, f, nil
}

// accumulate watches queries, for a struct type if it is known already.
func (c *Client) accumulate(ctx context.Context, t reflect.Type, wanted []compile.Wanted) (*accumulator.Accumulator, error) {
	w := c.watch.get()
	queries, err := c.compiler().All(wanted)
	if err != nil {
		return nil, err
	}
	return accumulator.New(ctx, c.core.Streams, queries, c.options(w, watchOf(t, wanted)))
}

// reports are the fields of a struct that are no queries.
var reports = []compile.Report{
	{Type: reflect.TypeFor[[]*Delta](), What: "for deltas"},
	{Type: reflect.TypeFor[[]Invalid](), What: "for invalid objects"},
}

// watched says what is watched: in messages, and as a name.
type watched struct{ text, name string }

// watchOf is a struct type, or queries.
func watchOf(t reflect.Type, wanted []compile.Wanted) watched {
	if t != nil && t.Name() != "" {
		return watched{t.String(), t.String()}
	}
	names, quoted := make([]string, len(wanted)), make([]string, len(wanted))
	for i, q := range wanted {
		names[i], quoted[i] = q.Name, strconv.Quote(q.Name)
	}
	return watched{"the queries " + strings.Join(quoted, ", "), strings.Join(names, ",")}
}

// options returns the settings of a watch in the accumulator's form.
func (c *Client) options(w watchSettings, of watched) collect.Options {
	name := cmp.Or(w.name, of.name)
	o := collect.Options{
		Pace: w.pace, QuietOwnWrites: w.quietOwn, Noted: w.noted, Overdue: w.overdue,
		Name: name, Observer: c.observers.ofWatch(name),
	}
	if w.invalid != nil {
		o.Invalid = func(i tables.Invalid) { w.invalid(invalidOf(i)) }
	}
	if w.witness != nil {
		o.Witness = w.witness(of.text)
	}
	return o
}

// Changed signals that there is something new for Update. The first signal comes when the first
// snapshot is complete, even if it is empty. The channel holds one signal at most. A signal may
// turn out to be for nothing, but none is ever missing. The channel is closed when the watch
// ends.
func (w *watching) Changed() <-chan struct{} { return w.acc.Changed() }

// Update fills the struct that target points to with the current snapshot: every query's field of
// it. It reports whether that differs from the last snapshot that this accumulator delivered.
// Until the first snapshot is complete it returns false and touches nothing. After an error, too,
// the target is untouched and nothing is consumed. When the watch has ended, the error is the
// cause of its end. Update does not wait for the network.
func (a *Accumulator) Update(ctx context.Context, target any) (bool, error) {
	r, err := a.acc.Update(ctx, target, nil)
	return r.Changed, err
}

// UpdateWithDeltas is Update that also says what has changed: it overwrites *deltas with one
// [Delta] per object, ordered by query, namespace and name. Deltas may be nil.
func (a *Accumulator) UpdateWithDeltas(ctx context.Context, target any, deltas *[]*Delta) (bool, error) {
	return a.update(ctx, target, deltas, nil)
}

// JudgedUpdate is UpdateWithDeltas with a predicate that may give reasons. Objects that it does
// not pass are not in the snapshot. One for which it returns an error, or panics, is [Invalid] for
// that reason. [Query].Where does the same in every form of watch, and what it leaves out is not
// held.
//
// The predicate is called once per change of an object, and gets the object as the query holds it:
// whole and as the server has it, but without what a [Query.Transform] has dropped, and with its
// metadata alone if [Query.MetadataOnly] is set. It is not converted to the field's type yet. The
// predicate must not write to it, and runs without locks.
//
// JudgedUpdate returns true if the snapshot has changed, if another object is invalid, or if one
// is invalid for another reason. A change of an object that the predicate leaves out without an
// error is not reported. *invalid is overwritten with one Invalid for each object with an error,
// and for those that are left out for other reasons, by query, namespace and name. invalid may be
// nil.
//
// A predicate stays in force, for Update and UpdateWithDeltas as well, until another one is given,
// which then judges all objects again. A nil predicate lets all objects pass.
//
// Predicates are the same if they are the same code: a closure that is made anew for each call is
// not another one, and judges only what has changed, and the objects for which the one before has
// panicked. If what it has captured is not what it was (another namespace, another list of names),
// call [Accumulator.Rejudge].
func (a *Accumulator) JudgedUpdate(ctx context.Context, target any, deltas *[]*Delta, invalid *[]Invalid, predicate func(*Unstructured) (pass bool, why error)) (bool, error) {
	r, err := a.acc.Update(ctx, target, accumulator.Judge(predicate))
	if err == nil && r.Complete {
		if deltas != nil {
			*deltas = deltasOf(r.Differences)
		}
		if invalid != nil {
			*invalid = invalidsOf(r.Invalid)
		}
	}
	return r.Changed, err
}

// For Emissary's code: FilteredUpdate is JudgedUpdate with a predicate that gives no reasons. New
// code uses [Accumulator.JudgedUpdate], or [Query].Where.
//
// FilteredUpdate returns true, too, if an object changes that the predicate leaves out: a program
// may report why it does. The object has come, has another version, passes, or is gone. There is
// no delta for that.
func (a *Accumulator) FilteredUpdate(ctx context.Context, target any, deltas *[]*Delta, predicate func(*Unstructured) bool) (bool, error) {
	return a.update(ctx, target, deltas, accumulator.Pass(predicate))
}

// Rejudge has the next update ask the predicate about every object again, and signals it: the
// predicate depends on something that has changed. It may be called at any time, by any goroutine.
func (a *Accumulator) Rejudge() { a.acc.Rejudge() }

func (a *Accumulator) update(ctx context.Context, target any, deltas *[]*Delta, j *accumulator.Judgement) (bool, error) {
	r, err := a.acc.Update(ctx, target, j)
	if err == nil && r.Complete && deltas != nil {
		*deltas = deltasOf(r.Differences)
	}
	return r.Changed, err
}

// Add adds queries while the watch runs. Snapshots and signals of the others go on. The fields of
// the new queries are nil until each of them has its first list: then all are in one snapshot. The
// structs given to Update must have fields for them. A query that takes the name of one that was
// removed shows nothing older than that one has shown.
//
// Errors are those of [Client.Watch]; on an error none of the queries is added. The context
// bounds only the call.
func (a *Accumulator) Add(ctx context.Context, queries ...Query) error {
	return addQueries(ctx, a.altered(), queries)
}

// Remove ends the queries of these names while the watch runs. Their objects are deletions among
// the deltas of the next snapshot, and their fields are nil from then on. A name that no query
// has is an error, and then none is removed.
func (w *watching) Remove(ctx context.Context, names ...string) error {
	return plain.While("remove", w.acc.Remove(ctx, names...))
}

// Replace replaces the queries of these names while the watch runs: by other namespaces, other
// selectors, or other kinds. All of them change in one snapshot: none has objects of some new
// queries and lacks those of others, or has what only the old ones had. It comes when each new
// query has its first list. Until then snapshots go on with the old queries, and [Status] says of
// the new ones what they wait for. Objects of both stay as they are, without a delta.
//
// A query that is replaced again meanwhile is left out, and the others wait for the newest one.
// Before the first snapshot is complete, the new queries take the places of the old at once. A
// query with Refs cannot be replaced. On an error none of the queries is replaced. The context
// bounds only the call.
func (a *Accumulator) Replace(ctx context.Context, queries ...Query) error {
	return replaceQueries(ctx, a.altered(), queries)
}

// Change replaces the query of a name by what a function makes of it, while the watch runs:
//
//	err := acc.Change(ctx, "Services", func(q *kates.Query) { q.Namespaces = namespaces })
//
// The function gets a copy of the query as the program has given it last, to Watch, Add, Replace
// or Change. So what it does not change stays: the selectors, Where, Signal, Key. If the field of a
// struct has said all, and no query was given, the copy has its Name alone. After that, Change is
// [Accumulator.Replace] for this query. To change several queries in one snapshot, use Replace.
//
// Change may be called while other changes are made. If the query is replaced while the function
// runs, the function is called again, with the new query. So of several changes at a time none is
// lost, and the function decides by its argument. It runs without any lock held. It must not
// itself change the query by another call: it would be called again and again.
//
// The errors are those of Replace. If the function changes the name, or panics (a [*PanicError]),
// that is an error, too. After an error the query is, and is remembered, as it was.
func (w *watching) Change(ctx context.Context, name string, change func(*Query)) error {
	return changeQuery(ctx, w.altered(), name, change)
}

// altered is the watch as its queries change.
func (w *watching) altered() alterable { return altered{w.client.compiler(), w.typ, w.acc} }

// Ready returns nil once the first snapshot is complete, and from then on always: an outage of
// the API must not end a program that works with the last snapshot. Until then it says what is
// missing, and why.
func (w *watching) Ready() error { return w.acc.Ready() }

// Status returns the present state of each query.
func (w *watching) Status() Status { return statusOf(w.acc.Status()) }

// Close ends the watch, closes Changed, and waits until none of its goroutines runs any more.
func (w *watching) Close() { w.acc.Close() }

// invalidsOf is invalidOf for several objects; nil for none.
func invalidsOf(all []tables.Invalid) (invalid []Invalid) {
	for _, i := range all {
		invalid = append(invalid, invalidOf(i))
	}
	return invalid
}

func invalidOf(i tables.Invalid) Invalid {
	return Invalid{Query: i.Query, Object: asUntyped(i.Object), Err: withPanic(i.Err)}
}

// asUntyped returns an object that is left out, as far as it is known.
func asUntyped(o objects.Object) *Unstructured {
	if u, is := o.(*unstructured.Unstructured); is {
		return u
	}
	return objects.LeftOut(o)
}
