package turns

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/loops/keyed"
	objects "github.com/kates-go/kates/internal/object"
)

// Controller is the struct type of a controller, and what its options say.
type Controller struct {
	Compiler *compile.Compiler
	Type     reflect.Type
	Reports  []compile.Report // the fields that are no queries
	Queries  []compile.Wanted
	Division compile.Division
	Options  func() partition.Options // of one watch
}

// Check reads the struct type, without asking the server.
func (c *Controller) Check() (s compile.Struct, root []int, err error) {
	if s, err = c.read(context.Background(), true); err != nil {
		return s, nil, err
	}
	of, err := s.Root()
	if err == nil {
		err = compile.CheckStruct(s.Shape(), s.Wanted)
	}
	if err == nil {
		_, err = c.Compiler.All(s.Wanted)
	}
	if err != nil {
		return s, nil, err
	}
	return s, of.Index, nil
}

func (c *Controller) read(ctx context.Context, blind bool) (compile.Struct, error) {
	return c.Compiler.Fields(ctx, c.reading(blind), c.Type, c.Queries)
}

func (c *Controller) reading(blind bool) compile.Struct {
	return compile.Struct{Reports: c.Reports, Mode: compile.Mode{Roles: true, Blind: blind}}
}

// Open starts the watch of the roots, and of what belongs to them. with makes the turns of the
// partitions.
func (c *Controller) Open(ctx context.Context, with func(compile.Struct, *partition.Partitions) *Turns) (*Roots, error) {
	s, err := c.read(ctx, false)
	if err == nil {
		err = c.Compiler.KeyRoles(ctx, &s)
	}
	if err == nil {
		err = c.divisible(ctx, &s)
	}
	if err != nil {
		return nil, err
	}
	kind, err := c.rootKind(ctx, &s)
	if err != nil {
		return nil, err
	}
	compiled, err := c.Compiler.All(s.Wanted)
	if err != nil {
		return nil, err
	}
	all, err := partition.Start(ctx, c.Compiler.Streams, s.Shape(), compiled, c.Options())
	if err != nil {
		return nil, err
	}
	return &Roots{Turns: with(s, all), of: c, wanted: s.Wanted, later: s.Later, kind: kind}, nil
}

// divisible returns an error if the roots cannot be divided as is wanted.
func (c *Controller) divisible(ctx context.Context, s *compile.Struct) error {
	if c.Division.Field != shardrange.Namespace {
		return nil
	}
	root, err := s.Root()
	if err != nil {
		return err
	}
	kind, err := c.Compiler.Mapping(ctx, root)
	if err == nil && kind.Scope.Name() == meta.RESTScopeNameRoot {
		err = fmt.Errorf("sharding by namespace: %s have none", kind.Resource.GroupResource())
	}
	return err
}

// rootKind returns the kind of the root.
func (c *Controller) rootKind(ctx context.Context, s *compile.Struct) (kind schema.GroupKind, err error) {
	root, err := s.Root()
	if err != nil {
		return kind, err
	}
	mapping, err := c.Compiler.Mapping(ctx, root)
	if err != nil {
		return kind, fmt.Errorf("query %q: %w", root.Name, err)
	}
	return mapping.GroupVersionKind.GroupKind(), nil
}

// Roots are partitions by roots.
type Roots struct {
	*Turns
	of     *Controller
	wanted []compile.Wanted
	later  []compile.Wanted // fields whose query comes at run time
	kind   schema.GroupKind // of the roots, for good: what is owned is found by it
	// reselected: the root's query was replaced, so a root that left it may exist.
	reselected atomic.Bool
}

// Next implements [keyed.Source].
func (r *Roots) Next(ctx context.Context) (*keyed.Root, error) {
	turn, err := r.Partitions.Next(ctx)
	if err != nil {
		return nil, r.Because(err)
	}
	into := reflect.New(r.of.Type).Elem()
	t := &rootTurn{Turn: r.New(turn, into), fields: slices.Concat(r.wanted, r.later), into: into}
	root := &keyed.Root{RootTurn: t, Struct: into}
	shape := reflect.ValueOf(turn.Snapshot).Elem()
	for i, w := range r.wanted {
		if w.Role == compile.Root {
			setRoot(root, turn, w.Name, shape.Field(i))
		} else {
			into.FieldByIndex(w.Index).Set(shape.Field(i))
		}
	}
	for i, w := range r.later {
		into.FieldByIndex(w.Index).Set(shape.Field(len(r.wanted) + i))
	}
	if root.Object != nil {
		t.OwnedBy(root.Object.GetUID())
	}
	return root, nil
}

// setRoot sets the root of a turn, of which the query has all objects.
func setRoot(root *keyed.Root, turn *partition.Turn, name string, all reflect.Value) {
	if all.Len() > 0 {
		root.Value = all.Index(0)
		root.Object = turn.First(name) // what a plain struct was made of
		if o, is := root.Value.Interface().(objects.Object); is {
			root.Object = o
		}
		root.UID = root.Object.GetUID()
	}
	for _, invalid := range turn.Invalid {
		if invalid.Query == name {
			root.UID = invalid.Object.GetUID()
			root.Unread = fmt.Errorf("the root cannot be read: %w", invalid.Err)
		}
	}
}

// Selective implements [keyed.Roots].
func (r *Roots) Selective() bool {
	return r.reselected.Load() || slices.ContainsFunc(r.wanted, func(w compile.Wanted) bool { return w.Role == compile.Root && w.Narrows() })
}

// rootTurn is the turn of a root's key.
type rootTurn struct {
	*Turn
	fields []compile.Wanted // also those whose query comes at run time
	into   reflect.Value    // the controller's struct
}

// OwnedBy implements [keyed.RootTurn]. The fields have the objects whose controller has the root's
// name. OwnedBy keeps those alone whose controller also has this UID.
func (t *rootTurn) OwnedBy(uid types.UID) {
	for _, w := range t.fields {
		if w.Role != compile.Owned {
			continue
		}
		if all := t.Of.Only(w.Name, func(o objects.Object) bool { return compile.Controls(uid, o) }); all != nil {
			t.into.FieldByIndex(w.Index).Set(reflect.ValueOf(all))
		}
	}
}

// Yield implements [keyed.Turn].
func (t *rootTurn) Yield() { t.Again(0) }

// Remove ends the queries of these names. The root stays.
func (r *Roots) Remove(ctx context.Context, names ...string) error {
	for _, w := range r.wanted {
		if w.Role == compile.Root && slices.Contains(names, w.Name) {
			return fmt.Errorf("remove: query %q is the root of the controller", w.Name)
		}
	}
	return plain.While("remove", r.Partitions.Remove(ctx, names...))
}

// Add adds queries with the keys that their roles have.
func (r *Roots) Add(ctx context.Context, queries []compile.Wanted) error {
	return r.change(ctx, queries, r.Partitions.Add)
}

// Replace replaces queries by others, with the keys that their roles have.
func (r *Roots) Replace(ctx context.Context, queries []compile.Wanted) error {
	return r.change(ctx, queries, r.Partitions.Replace)
}

// MayHave returns an error if there is never a query of that name.
func (r *Roots) MayHave(name string) error {
	s := r.of.reading(false)
	return s.MayHave(name, r.of.Type)
}

func (r *Roots) change(ctx context.Context, queries []compile.Wanted, do func(context.Context, ...query.Query) error) error {
	wanted, err := r.of.Compiler.WantedAtRunTime(ctx, r.of.reading(false), r.of.Type, queries)
	if err != nil {
		return err
	}
	isRoot := func(w compile.Wanted) bool { return w.Role == compile.Root }
	s := compile.Struct{Wanted: slices.Clone(wanted)}
	replaced := slices.ContainsFunc(wanted, isRoot)
	if !replaced { // those that are owned need the root's kind
		s.Wanted = append(s.Wanted, r.wanted[slices.IndexFunc(r.wanted, isRoot)])
	} else if kind, err := r.of.rootKind(ctx, &s); err != nil {
		return err
	} else if kind != r.kind {
		return fmt.Errorf("the root's kind is %s, and stays so; %s is another", r.kind, kind)
	}
	if err := r.of.Compiler.KeyRoles(ctx, &s); err != nil {
		return err
	}
	compiled, err := r.of.Compiler.All(s.Wanted[:len(wanted)])
	if err != nil {
		return err
	}
	if replaced {
		r.reselected.Store(true)
	}
	return do(ctx, compiled...)
}
