package kates

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/loops/keyed"
)

// planController reads the struct type and the options of a controller, as far as
// that is possible without a request. A field of the special type is no query.
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
	p := &controlled{name: name, client: c.With(settings.watch...), typ: t, special: special, settings: settings}
	fields, err := p.fields(context.Background(), true)
	if err != nil {
		return nil, err
	}
	root, err := fields.Root()
	if err == nil {
		err = compile.CheckStruct(fields.Shape(), fields.Wanted)
	}
	if err == nil {
		_, err = p.client.compiler().All(fields.Wanted)
	}
	if err == nil {
		err = settings.divideRoots(c, slices.Concat(fields.Wanted, fields.Later))
	}
	if err != nil {
		return nil, err
	}
	config := settings.config(p.client, name, settings.logOf(c, "controller", name))
	return &keyed.Plan[Status]{Config: config, Special: fields.Reports[2].Index, Root: root.Index, Open: p.open,
		LeaseStatus: func() Status { return settings.ownStatus(config.Report) }}, nil
}

// controlled is a controller's type and options.
type controlled struct {
	name     string
	client   *Client
	typ      reflect.Type
	special  reflect.Type
	settings *runSettings
}

// fields reads the struct type; blind, without asking the server.
func (p *controlled) fields(ctx context.Context, blind bool) (compile.Struct, error) {
	return p.client.compiler().Fields(ctx, p.reading(blind), p.typ, wantedOf(p.settings.queries))
}

// reading says how the struct type is read.
func (p *controlled) reading(blind bool) compile.Struct {
	return compile.Struct{
		Reports: append(slices.Clone(reports), compile.Report{Type: p.special, What: "of type " + p.special.String()}),
		Mode:    compile.Mode{Roles: true, Blind: blind},
	}
}

func (p *controlled) open(ctx context.Context) (_ keyed.Roots[Status], err error) {
	release, err := take(p.settings.handles)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	c := p.client
	fields, err := p.fields(ctx, false)
	if err == nil {
		err = c.compiler().KeyRoles(ctx, &fields)
	}
	if err == nil {
		err = p.divisible(ctx, fields)
	}
	if err != nil {
		return nil, err
	}
	compiled, err := c.compiler().All(fields.Wanted)
	if err != nil {
		return nil, err
	}
	all, err := partition.Start(ctx, c.core.Streams, fields.Shape(), compiled, partition.Options{
		Options: c.options(c.watch.get(), watched{fmt.Sprintf("controller %q", p.name), p.name}), Backoff: p.settings.policy.Backoff, Lasting: true,
		Sharing: p.settings.division.sharing(),
	})
	if err != nil {
		return nil, err
	}
	r := &roots{
		partitionWatch: partitionWatch{newPartitioned(c, p.typ, all, fields)}, typ: p.typ, targets: fields.Wanted, later: fields.Later,
		of: p.reading(false), release: release,
	}
	bind(p.settings.handles, r)
	return r, nil
}

// roots are partitions by roots.
type roots struct {
	partitionWatch
	typ     reflect.Type // of the controller's struct
	targets []compile.Wanted
	later   []compile.Wanted // fields whose query may come at run time
	of      compile.Struct   // of the struct, with no targets
	release func()           // the handles
	// reselected: the root's query was replaced, so a root that left it may exist.
	reselected atomic.Bool
}

// Close ends the watch.
func (r *roots) Close() {
	r.release()
	r.partitionWatch.Close()
}

// Next implements [keyed.Source].
func (r *roots) Next(ctx context.Context) (*keyed.Root, error) {
	turn, err := r.all.Next(ctx)
	if err != nil {
		return nil, r.because(err)
	}
	into := reflect.New(r.typ).Elem()
	t := &rootTurn{keyTurn: r.turnOf(turn, into), targets: r.targets, into: into}
	root := &keyed.Root{RootTurn: t, Struct: into}
	shape := reflect.ValueOf(turn.Snapshot).Elem()
	for i, target := range r.targets {
		if target.Role != compile.Root {
			into.FieldByIndex(target.Index).Set(shape.Field(i))
			continue
		}
		if all := shape.Field(i); all.Len() > 0 {
			root.Value = all.Index(0)
			root.Object = turn.First(target.Name) // what a plain struct was made of
			if o, is := root.Value.Interface().(Object); is {
				root.Object = o
			}
			root.UID = root.Object.GetUID()
		}
		for _, invalid := range turn.Invalid {
			if invalid.Query == target.Name {
				root.UID = invalid.Object.GetUID()
				root.Unread = fmt.Errorf("the root cannot be read: %w", invalid.Err)
			}
		}
	}
	for i, target := range r.later {
		into.FieldByIndex(target.Index).Set(shape.Field(len(r.targets) + i))
	}
	if root.Object != nil {
		t.OwnedBy(root.Object.GetUID())
	}
	return root, nil
}

// Selective implements [keyed.Roots].
func (r *roots) Selective() bool {
	for _, t := range r.targets {
		if t.Role == compile.Root {
			return r.reselected.Load() || t.Narrows()
		}
	}
	return false
}

// rootTurn is the turn of a root's key.
type rootTurn struct {
	*keyTurn
	targets []compile.Wanted
	into    reflect.Value // the controller's struct
}

// OwnedBy implements [keyed.RootTurn]. The fields have what names the root as its controller: what
// remains has its UID, too.
func (t *rootTurn) OwnedBy(uid types.UID) {
	for _, target := range t.targets {
		if target.Role != compile.Owned {
			continue
		}
		if all := t.turn.Only(target.Name, func(o Object) bool { return compile.Controls(uid, o) }); all != nil {
			t.into.FieldByIndex(target.Index).Set(reflect.ValueOf(all))
		}
	}
}

// Yield implements [keyed.Turn].
func (t *rootTurn) Yield() { t.Again(0) }

// Add is that of a controller's [Handle].
func (r *roots) Add(ctx context.Context, queries ...Query) error {
	return r.change(ctx, "add", queries, r.all.Add)
}

// Replace is that of a controller's [Handle].
func (r *roots) Replace(ctx context.Context, queries ...Query) error {
	return r.change(ctx, "replace", queries, r.all.Replace)
}

// Remove is that of a controller's [Handle].
func (r *roots) Remove(ctx context.Context, names ...string) error {
	for _, t := range r.targets {
		if t.Role == compile.Root && slices.Contains(names, t.Name) {
			return fmt.Errorf("remove: query %q is the root of the controller", t.Name)
		}
	}
	return r.partitioned.Remove(ctx, names...)
}

// change compiles queries with the keys that their roles have, and changes them.
func (r *roots) change(ctx context.Context, what string, queries []Query, do func(context.Context, ...query.Query) error) error {
	targets, err := r.client.compiler().WantedAtRunTime(ctx, r.of, r.typ, wantedOf(queries))
	if err != nil {
		return plain.While(what, err)
	}
	f := compile.Struct{Wanted: slices.Clone(targets)}
	replaced := slices.ContainsFunc(targets, func(t compile.Wanted) bool { return t.Role == compile.Root })
	if !replaced { // those that are owned need the root's kind
		for _, t := range r.targets {
			if t.Role == compile.Root {
				f.Wanted = append(f.Wanted, t)
			}
		}
	}
	if err := r.client.compiler().KeyRoles(ctx, &f); err != nil {
		return plain.While(what, err)
	}
	compiled, err := r.client.compiler().All(f.Wanted[:len(targets)])
	if err != nil {
		return plain.While(what, err)
	}
	if replaced {
		r.reselected.Store(true)
	}
	return plain.While(what, do(ctx, compiled...))
}
