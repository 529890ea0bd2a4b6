package kates

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/loops/keyed"
	objects "github.com/kates-go/kates/internal/object"
)

// Snapshots hands out snapshots of type S: a struct with a field per kind. See [Watch], and
// [Accumulator] for the guarantees. Objects are read-only.
type Snapshots[S any] struct {
	watching
	deltas  []int // index of the field for deltas, if any
	invalid []int // index of the field for invalid objects, if any

	// shown is the last value of the invalid field. It stays the same while its content does.
	shown  []Invalid
	source []tables.Invalid

	looping atomic.Bool // a loop over All has not ended
}

// ErrSecondReader is the error of a second reader of one [Snapshots]: of another loop, or of an
// Update, while a loop over All runs. Each change goes to one of them, so the other might never
// see it. A second reader calls [Watch] again, which shares the watches of the first.
var ErrSecondReader = errors.New("another loop reads these snapshots: a second reader needs a Watch of its own")

// Watch starts watching the kinds that the exported fields of the struct S name, until ctx ends
// or Close:
//
//	type Snapshot struct {
//	    Services []*corev1.Service                                   // the Go type says the kind
//	    Slices   map[types.NamespacedName]*discoveryv1.EndpointSlice // maps as well
//	    Hosts    []map[string]any `kates:"hosts.getambassador.io"`   // or a tag does
//	    Routes   []MyRoute        `kates:"HTTPRoute,optional"`       // nil without such a kind
//	    Pods     []*kates.Pod     `kates:",later"`                   // nil until an Add
//	    Deltas   []*kates.Delta                                      // the latest changes
//	    Invalid  []kates.Invalid                                     // objects left out, and why
//	    Cached   string           `kates:"-"`                        // not a query
//	}
//
// For the forms of fields see [Client.Watch]. A Go type that the client's scheme knows fixes
// group, version and kind. A tag or a query that contradicts it is an error. So is a field
// without a kind, or an unknown option of a tag. A query refines the field of its name with what
// it sets: a namespace, selectors, a kind. A field that is not exported is not filled. If it looks
// like a query, that is logged once, unless its tag is `kates:"-"`.
//
// Nothing is watched, or asked, for a field whose tag says later: its query comes while the watch
// runs, from [Snapshots.Add], and the tag and the type apply to that one. Its query is an error
// here. There has to be a field whose query does not come later.
//
// After an error nothing is left running.
func Watch[S any](ctx context.Context, c *Client, queries ...Query) (*Snapshots[S], error) {
	t := reflect.TypeFor[S]()
	if c == nil {
		return nil, fmt.Errorf("watch %s: %w", objects.TypeName(t), errNoClient)
	}
	acc, fields, err := c.watchStruct(ctx, compile.Struct{Reports: reports}, t, queries)
	if err != nil {
		return nil, err
	}
	return &Snapshots[S]{watching: watching{c, acc, t}, deltas: fields.Reports[0].Index, invalid: fields.Reports[1].Index}, nil
}

// Update is [Accumulator.Update]. It fills the whole struct, including a field for deltas and one
// for invalid objects. While a loop over [Snapshots.All] runs it is an error: [ErrSecondReader].
func (s *Snapshots[S]) Update(ctx context.Context, into *S) (bool, error) {
	if s.looping.Load() {
		return false, ErrSecondReader
	}
	changed, _, err := s.update(ctx, into)
	return changed, err
}

func (s *Snapshots[S]) update(ctx context.Context, into *S) (changed, complete bool, err error) {
	r, err := s.acc.Update(ctx, into, nil)
	if err != nil || !r.Complete {
		return false, false, err
	}
	v := reflect.ValueOf(into).Elem()
	if s.deltas != nil {
		v.FieldByIndex(s.deltas).Set(reflect.ValueOf(deltasOf(r.Differences)))
	}
	if s.invalid != nil {
		v.FieldByIndex(s.invalid).Set(reflect.ValueOf(s.invalidNow(r.Invalid)))
	}
	return r.Changed, true, nil
}

func (s *Snapshots[S]) invalidNow(now []tables.Invalid) []Invalid {
	if len(now) == len(s.source) && (len(now) == 0 || &now[0] == &s.source[0]) {
		return s.shown
	}
	decoded := make(map[objects.Object]*Unstructured, len(s.source))
	for i, source := range s.source {
		decoded[source.Object] = s.shown[i].Object
	}
	s.source, s.shown = now, nil
	for _, i := range now {
		u := decoded[i.Object]
		if u == nil {
			u = asUntyped(i.Object)
		}
		s.shown = append(s.shown, Invalid{Query: i.Query, Object: u, Err: withPanic(i.Err)})
	}
	return s.shown
}

// All iterates over snapshots. It yields the current one as soon as it is complete. After that,
// whenever something has changed and the loop's body has returned, it yields the current one
// again.
//
//	for snap, err := range snapshots.All(ctx) {
//	    if err != nil {
//	        return err
//	    }
//	    rebuild(snap)
//	}
//
// Each snapshot is a fresh *S, and the caller's. If ctx, or the context of Watch, is cancelled,
// or after Close, the loop ends without an error. Any other end (a deadline) yields nil and an
// error, once, that names what was incomplete. A failure that can heal is no error: see Status. A
// break out of the loop stops nothing, and the next range starts with the current snapshot. All
// shares its cursor with Update. One loop runs at a time: a second one, and an Update meanwhile,
// get [ErrSecondReader] at once, and the first goes on.
func (s *Snapshots[S]) All(ctx context.Context) iter.Seq2[*S, error] {
	return func(yield func(*S, error) bool) {
		if !s.looping.CompareAndSwap(false, true) {
			yield(nil, ErrSecondReader)
			return
		}
		defer s.looping.Store(false)
		for first := true; ; {
			snap := new(S)
			changed, complete, err := s.update(ctx, snap)
			switch {
			case err != nil:
				s.last(err, yield)
				return
			case complete && (changed || first):
				first = false
				if !yield(snap, nil) {
					return
				}
			}
			select {
			case <-s.Changed():
			case <-ctx.Done():
			}
		}
	}
}

// last ends a loop: without an error if the program wanted the end.
func (s *Snapshots[S]) last(err error, yield func(*S, error) bool) {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrClosed) {
		return
	}
	yield(nil, s.because(err))
}

// Add adds queries for fields of S that have none: those with the tag `kates:",later"`, and those
// whose query [Snapshots.Remove] has removed. The field's type and tag apply, as for [Watch]. A
// field with the tag `kates:"-"` has no query, ever. See [Accumulator.Add].
func (s *Snapshots[S]) Add(ctx context.Context, queries ...Query) error {
	return addQueries(ctx, s.altered(), queries)
}

// Replace is [Accumulator.Replace]. As for [Watch], the field's type and tag apply too.
func (s *Snapshots[S]) Replace(ctx context.Context, queries ...Query) error {
	return replaceQueries(ctx, s.altered(), queries)
}

// because adds to the error of an end what was incomplete.
func (w *watching) because(err error) error {
	return plain.Error(keyed.EndedWithout(w.acc.Ready(), err))
}
