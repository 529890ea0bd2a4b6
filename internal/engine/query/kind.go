package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// kind is how the kind of a query is served. The lock of its query guards it.
type kind struct {
	query    Query
	resource object.Resource // valid once the kind is known
	spacesOf object.Resource // that of namespaces, if the query selects any; valid as resource is
	state    kindState
	err      error // why the kind is not known
	since    time.Time
}

// kindState says what is known of a kind.
//
//	unknown ──▶ absent ──▶ known
//	   └─────────────────────▲
type kindState uint8

const (
	kindUnknown kindState = iota
	kindAbsent            // certainly nothing to watch; once certain, an outage does not end that
	kindKnown
)

// resolve finds a query's kind for the first time. A kind that is not found is an error unless the
// query is optional.
func resolve(ctx context.Context, q Query) (kind, error) {
	k := kind{query: q, since: time.Now()}
	r, err := q.Resolve(ctx)
	switch {
	case err == nil:
		k.resource = r
		k.spacesOf, err = q.findSpaces(ctx)
		return k, err
	case q.Optional && ctx.Err() == nil && !errors.Is(err, ErrUnfit):
		k.missed(err)
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

// serve notes how the kind of a query is served.
func (k *kind) serve(q Query, r object.Resource) {
	k.query, k.resource, k.state, k.err = q, r, kindKnown, nil
}

// missed notes why the kind is unknown.
func (k *kind) missed(err error) {
	if k.err = err; errors.Is(err, ErrNotServed) || k.unfit() {
		k.state = kindAbsent
	}
}

// suits notes whether the query still fits its kind, which may have come back with another scope.
func (k *kind) suits(err error) {
	if k.err = err; !k.unfit() {
		k.err = nil
	}
}

// unfit reports whether the kind is served now, but the query does not fit it.
func (k *kind) unfit() bool { return errors.Is(k.err, ErrUnfit) }

// known reports whether the kind is known.
func (k *kind) known() bool { return k.state == kindKnown }

// wide reports whether the kind has no namespaces, as far as it is known.
func (k *kind) wide() bool { return k.known() && !k.resource.Namespaced }

// phase returns the phase of a query whose kind is not known.
func (k *kind) phase() Phase {
	if k.state == kindAbsent {
		return Empty
	}
	return Incomplete
}

// status returns what is known without a stream.
func (k *kind) status() Status {
	st := Status{
		Name: k.query.Name, Kind: k.query.Kind, Namespace: k.query.Namespace, Namespaces: k.query.Namespaces,
		Optional: k.query.Optional, State: stream.Waiting, Since: k.since,
	}
	if k.state == kindAbsent && !k.unfit() {
		st.State, st.Absent = stream.Missing, true
	}
	if k.err != nil {
		st.Error = k.err.Error()
	}
	return st
}
