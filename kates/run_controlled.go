package kates

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/internal/loops/turns"
)

// planController reads the struct type and the options of a controller, as far as that is possible
// without a request. A field of the special type is no query.
func planController(c *Client, name string, t, special reflect.Type, options []RunOption) (*keyed.Plan[Status], error) {
	if c == nil {
		return nil, errNoClient
	}
	// A change is due at once, unless the options say otherwise: while a key has a turn, changes
	// coalesce anyway.
	settings, err := newRunSettings(c, false, append([]RunOption{WithInterval(0), WithShutdownTimeout(keyed.ControllerTimeout)}, options...))
	if err != nil {
		return nil, err
	}
	at := c.With(settings.watch...)
	of := &turns.Controller{
		Compiler: at.keyed(), Type: t, Queries: wantedOf(settings.queries),
		Reports: append(slices.Clone(reports), compile.Report{Type: special, What: "of type " + special.String()}),
	}
	fields, root, err := of.Check()
	if err != nil {
		return nil, err
	}
	if settings.sharding != nil {
		settings.division = of.Compiler.DivideRoots(compile.By(settings.sharding.By), &fields)
	}
	of.Division = settings.division
	of.Options = func() partition.Options {
		return partition.Options{
			Options: at.options(at.watch.get(), watched{fmt.Sprintf("controller %q", name), name}), Backoff: settings.policy.Backoff, Lasting: true,
			Sharing: sharingOf(settings.division),
		}
	}
	config := settings.config(at, name, settings.logOf(c, "controller", name))
	return &keyed.Plan[Status]{
		Config: config, Special: fields.Reports[2].Index, Root: root,
		Open: func(ctx context.Context) (keyed.Roots[Status], error) {
			return openRoots(ctx, at, of, settings.handles)
		},
		LeaseStatus: func() Status { return settings.ownStatus(config.Report) },
	}, nil
}

// openRoots starts the watch of a controller, which handles control.
func openRoots(ctx context.Context, c *Client, of *turns.Controller, handles []*Handle) (keyed.Roots[Status], error) {
	release, err := take(handles)
	if err != nil {
		return nil, err
	}
	all, err := of.Open(ctx, func(s compile.Struct, all *partition.Partitions) *turns.Turns {
		return newPartitioned(c, of.Type, all, s).turns
	})
	if err != nil {
		release()
		return nil, err
	}
	r := &roots{all, release}
	bind(handles, r)
	return r, nil
}

// roots are the roots of a controller, as its [Handle] controls them.
type roots struct {
	*turns.Roots
	release func() // the handles
}

// Close ends the watch.
func (r *roots) Close() {
	r.release()
	r.Roots.Close()
}

// Status implements [keyed.Roots].
func (r *roots) Status() Status { return statusOf(r.Roots.Status()) }

// Add is that of a controller's [Handle].
func (r *roots) Add(ctx context.Context, queries ...Query) error {
	return addQueries(ctx, r.Roots, queries)
}

// Replace is that of a controller's [Handle].
func (r *roots) Replace(ctx context.Context, queries ...Query) error {
	return replaceQueries(ctx, r.Roots, queries)
}

// Change is that of a controller's [Handle].
func (r *roots) Change(ctx context.Context, name string, change func(*Query)) error {
	return changeQuery(ctx, r.Roots, name, change)
}
