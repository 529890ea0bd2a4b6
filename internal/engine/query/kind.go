package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// Kind is a query, and how its kind is served. The lock of the query guards it. A copy is a value.
type Kind struct {
	query    Query // set once
	life     life
	resource object.Resource // valid once the kind is known
	spacesOf object.Resource // that of namespaces, if the query selects any; valid as resource is
	err      error           // why the kind is not known
	since    time.Time
}

// FindKind finds a query's kind for the first time. It may ask the server. A kind that is not found
// is an error unless the query is optional.
func FindKind(ctx context.Context, q Query) (Kind, error) {
	k := Kind{query: q, since: time.Now()}
	r, err := q.Resolve(ctx)
	switch {
	case err == nil:
		k.resource = r
		k.spacesOf, err = q.findSpaces(ctx)
		return k, err
	case q.Optional && ctx.Err() == nil && !errors.Is(err, ErrUnfit):
		k.Missed(err)
	default:
		return k, q.Error(err)
	}
	return k, nil
}

// findSpaces finds the resource of namespaces, if the query selects any.
func (q Query) findSpaces(ctx context.Context) (r object.Resource, err error) {
	if q.Spaces == nil {
		return r, nil
	}
	if r, err = q.Spaces.Resolve(ctx); err != nil {
		err = q.Error(fmt.Errorf("find namespaces: %w", err))
	}
	return r, err
}

// Query returns the query.
func (k *Kind) Query() Query { return k.query }

// Resource returns how the kind is served. It is valid once the kind is known.
func (k *Kind) Resource() object.Resource { return k.resource }

// Err returns why the kind is not known, or why the query does not fit it; nil otherwise.
func (k *Kind) Err() error { return k.err }

// Serve sets how the kind is served, and the kind of namespaces. The streams are joined.
func (k *Kind) Serve(r, namespaces object.Resource) {
	k.resource, k.spacesOf, k.err = r, namespaces, nil
	k.life = k.life.after(served)
}

// End ends the query.
func (k *Kind) End() { k.life = k.life.after(closing) }

// Over reports whether the query has ended.
func (k *Kind) Over() bool { return k.life.over() }

// Missing reports whether there is certainly nothing to watch.
func (k *Kind) Missing() bool { return k.life.missing() }

// Missed sets why the kind is unknown.
func (k *Kind) Missed(err error) {
	if k.err = err; errors.Is(err, ErrNotServed) || k.unfit() {
		k.life = k.life.after(missing)
	}
}

// suits notes whether the query still fits its kind, which may have come back with another scope.
func (k *Kind) suits(err error) {
	if k.err = err; !k.unfit() {
		k.err = nil
	}
}

// unfit reports whether the kind is served now, but the query does not fit it.
func (k *Kind) unfit() bool { return errors.Is(k.err, ErrUnfit) }

// Known reports whether the kind is known.
func (k *Kind) Known() bool { return k.life.known() }

// Wide reports whether the kind has no namespaces, as far as it is known.
func (k *Kind) Wide() bool { return k.Known() && !k.resource.Namespaced }

// Phase returns the phase of a query whose kind is not known.
func (k *Kind) Phase() Phase {
	if k.life.missing() {
		return Empty
	}
	return Incomplete
}

// Status returns what is known without a stream.
func (k *Kind) Status() Status {
	st := Status{
		Name: k.query.Name, Kind: k.query.Kind, Namespace: k.query.Namespace, Namespaces: k.query.Namespaces,
		Optional: k.query.Optional, State: stream.Waiting, Since: k.since,
	}
	if k.life.missing() && !k.unfit() {
		st.State, st.Absent = stream.Missing, true
	}
	if k.err != nil {
		st.Error = k.err.Error()
	}
	return st
}

// life is how far a query is. What a reader can take of it depends on its streams, too: see Phase.
//
//	seeking ──missing──▶ absent         seeking: its kind is not known
//	   │                   │            absent:  there is certainly nothing to watch
//	   └──────served───────┤            filling: it has streams, and no reader has taken a batch
//	                       ▼            shown:   a reader has taken one
//	          shown ◀─taken─ filling
//	            └──untaken──▶
//
// A query that has closed has left its streams. It goes no further, and keeps what it knew: closed
// is added to the state that it had.
type life uint8

const (
	seeking life = iota
	absent
	filling
	shown
	closed life = 1 << 7
)

// event is what moves a query on.
type event uint8

const (
	missing event = iota // certainly there is no such kind, or the query does not fit it
	served               // the kind is known, and the streams are joined
	taken                // a reader has taken a batch
	untaken              // the batches were taken back
	closing
)

// after returns the life after an event. What the drawing lacks changes nothing: a kind that is
// certainly absent stays so in an outage.
func (l life) after(e event) life {
	switch {
	case l.over():
	case e == closing:
		return l | closed
	case e == missing && l == seeking:
		return absent
	case e == served && l < filling:
		return filling
	case e == taken && l == filling:
		return shown
	case e == untaken && l == shown:
		return filling
	}
	return l
}

// over reports whether the query has closed.
func (l life) over() bool { return l&closed != 0 }

// known reports whether the kind is known.
func (l life) known() bool { return l&^closed >= filling }

// missing reports whether there is certainly nothing to watch.
func (l life) missing() bool { return l&^closed == absent }
