package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/lease"
	"github.com/kates-go/kates/internal/seam"
)

func init() {
	seam.New = func(client any, name string, t, special reflect.Type, options any) (*seam.Plan, error) {
		c, _ := client.(*Client)
		if c == nil {
			return nil, errors.New("the client is nil")
		}
		return c.planController(name, t, special, options.([]RunOption))
	}
	seam.Option = func(name string, value any) any {
		return runOption(func(s *runSettings) { s.own = append(s.own, ownOption{name, value}) })
	}
}

// controlled is a controller's type and options.
type controlled struct {
	client   *Client
	name     string
	typ      reflect.Type
	special  reflect.Type
	settings *runSettings
}

func (c *Client) planController(name string, t, special reflect.Type, options []RunOption) (*seam.Plan, error) {
	// A change is due at once, unless the options say otherwise: what comes while a key is held coalesces anyway.
	settings, err := newRunSettings(c, false, append([]RunOption{WithInterval(0)}, options...))
	if err != nil {
		return nil, err
	}
	p := &controlled{client: c.With(settings.watch...), name: name, typ: t, special: special, settings: settings}
	fields, err := p.fields(context.Background(), true)
	if err != nil {
		return nil, err
	}
	root, err := fields.root()
	if err == nil {
		err = checkStruct(fields.shape(), fields.targets)
	}
	if err == nil {
		_, err = p.client.compile(fields.targets)
	}
	if err != nil {
		return nil, err
	}
	plan := &seam.Plan{
		Workers: settings.workers, Elected: settings.election != nil, Log: c.core.log.WithValues("controller", name),
		Special: fields.place, Root: root.index, Open: p.open, Listen: settings.listen,
	}
	if settings.sharding != nil {
		plan.Shards = p.client.shard(settings.sharding)
	}
	for _, o := range settings.own {
		plan.Own = append(plan.Own, o.value)
	}
	plan.Ended = func(missing, result error) error { return lacking(plan.Log, missing, result) }
	plan.Tries = func(key string) seam.Tries {
		return &keyTries{key: key, tries: tries{settings: settings, log: plan.Log.WithValues("key", key)}}
	}
	return plan, nil
}

// fields reads the struct type; blind, without asking the server.
func (p *controlled) fields(ctx context.Context, blind bool) (structFields, error) {
	return p.client.readFieldsOf(ctx, structFields{roles: true, special: p.special, blind: blind}, p.typ, p.settings.queries)
}

func (p *controlled) open(ctx context.Context) (seam.Watch, error) {
	c := p.client
	fields, err := p.fields(ctx, false)
	if err == nil {
		err = c.keyRoles(ctx, &fields)
	}
	if err != nil {
		return nil, err
	}
	compiled, err := c.compile(fields.targets)
	if err != nil {
		return nil, err
	}
	parts, err := c.core.streams.Partition(ctx, fields.shape(), compiled, accumulator.PartitionOptions{
		Options: c.watch.get().options(), Backoff: p.settings.backoff, Lasting: true,
	})
	if err != nil {
		return nil, err
	}
	return &roots{keyed: newKeyed(c, parts, fields), of: p, targets: fields.targets}, nil
}

// roots are partitions by roots.
type roots struct {
	*keyed
	of      *controlled
	targets []target
}

// Next implements [seam.Watch].
func (r *roots) Next(ctx context.Context) (*seam.Turn, error) {
	turn, err := r.parts.Next(ctx)
	if err != nil {
		return nil, r.because(err)
	}
	t := &seam.Turn{Key: turn.Key, Context: r.begin, Struct: reflect.New(r.of.typ).Elem()}
	shape := reflect.ValueOf(turn.Snapshot).Elem()
	for i, target := range r.targets {
		if target.role != rootRole {
			t.Struct.FieldByIndex(target.index).Set(shape.Field(i))
			continue
		}
		if all := shape.Field(i); all.Len() > 0 {
			t.Root = all.Index(0).Interface().(accumulator.Object)
			t.UID = t.Root.GetUID()
		}
		for _, invalid := range turn.Invalid {
			if invalid.Query == target.Name {
				t.UID, t.Unread = invalid.Object.GetUID(), fmt.Errorf("the root cannot be read: %w", invalid.Err)
			}
		}
	}
	t.OwnedBy = func(uid types.UID) { r.narrow(turn, t.Struct, uid) }
	if t.Root != nil {
		t.OwnedBy(t.Root.GetUID())
	}
	changes := r.report(turn, t.Struct)
	t.Done = func(err error) {
		r.done(t.Key, changes, err != nil)
		turn.Done(err)
	}
	t.Drop = func() {
		r.done(t.Key, changes, !turn.Gone)
		turn.Done(nil)
	}
	t.Again = func(after time.Duration) {
		r.done(t.Key, changes, true)
		turn.Again(after)
	}
	t.Keep = func() {
		r.done(t.Key, changes, false)
		turn.Keep()
	}
	return t, nil
}

// narrow leaves of what has the root's name as its controller what has its UID as well.
func (r *roots) narrow(turn *accumulator.Turn, into reflect.Value, uid types.UID) {
	for _, target := range r.targets {
		if target.role != ownedRole {
			continue
		}
		if all := turn.Only(target.Name, func(o accumulator.Object) bool { return controls(uid, o) }); all != nil {
			into.FieldByIndex(target.index).Set(reflect.ValueOf(all))
		}
	}
}

// Status implements [seam.Watch].
func (r *roots) Status() any { return r.keyed.Status() }

// Sync implements [seam.Watch].
func (r *roots) Sync(ctx context.Context) error { return r.parts.Sync(ctx) }

// Selective implements [seam.Watch].
func (r *roots) Selective() bool {
	for _, t := range r.targets {
		if t.role == rootRole {
			return t.LabelSelector != "" || t.FieldSelector != "" || t.AnyOf != nil || t.NamespaceSelector != "" || t.Refs != nil
		}
	}
	return false
}

// Complete implements [seam.Watch].
func (r *roots) Complete(ctx context.Context) error { return r.leader(nil).Prepare(ctx) }

// Lead implements [seam.Watch].
func (r *roots) Lead(ctx context.Context, loop func(ctx, lease context.Context) error) error {
	if r.of.settings.election == nil {
		return loop(ctx, context.WithoutCancel(ctx))
	}
	return lease.Lead(ctx, r.of.settings.election.config(r.of.client), r.leader(loop))
}

func (r *roots) leader(loop func(ctx, lease context.Context) error) leader {
	log := r.of.client.core.log.WithValues("controller", r.of.name)
	return leader{watching: r.parts, refresh: r.refresh, lead: loop, tries: &tries{settings: r.of.settings, log: log}}
}

// keyTries are the tries of one key. Errors that are told name it.
type keyTries struct {
	tries
	key string
	err error
}

// Call implements [seam.Tries].
func (t *keyTries) Call(ctx context.Context, f func() error) (time.Duration, error) {
	return t.call(ctx, func() error {
		if t.err = withoutPanic(f); t.err == nil {
			return nil
		}
		return &KeyError{Key: t.key, Err: t.err}
	})
}

// Failed implements [seam.Tries].
func (t *keyTries) Failed() (int, error) { return t.failures, t.err }
