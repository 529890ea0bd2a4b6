package owned

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/client/write"
	objects "github.com/kates-go/kates/internal/object"
)

// What objects of sets have, beside a reference to their owner. Package kates says more.
const (
	Annotation = "kates.io/applied"   // the digest of what was applied
	Label      = "kates.io/owned-set" // the default label of sets
)

// Set is a set of objects that one owner wants. Package kates documents the fields.
type Set struct {
	Owner       any
	SetName     string
	Objects     []objects.Object
	Kinds       []string
	Existing    []objects.Object
	Plain       bool
	Remote      bool
	Adopt       bool
	InOrder     bool
	HoldPruning bool
	Label       string
}

// Result tells what was done with each object of a set.
type Result struct {
	Applied   []corev1.ObjectReference
	Unchanged []corev1.ObjectReference
	Pruned    []corev1.ObjectReference
	Released  []corev1.ObjectReference
}

// Apply applies the objects of a set, and removes those that are no longer wanted.
func Apply(ctx context.Context, c write.Writer, set Set, w write.Options) (Result, error) {
	a := newCall(c, set, w)
	moved, err := a.run(ctx)
	if moved {
		was := a.result
		a = newCall(c, set, w)
		_, err = a.run(ctx)
		a.result.Pruned, a.result.Released = append(was.Pruned, a.result.Pruned...), append(was.Released, a.result.Released...)
	}
	return a.result, err
}

func newCall(c write.Writer, set Set, w write.Options) *call {
	return &call{Writer: c, given: set, options: w, unapplied: make(map[string]bool), applied: make(map[types.UID]bool)}
}

// run applies the set, and prunes. It stops before it prunes if a kind is served in another way
// than it was: then the set has to be applied again, since its objects are at other places.
func (a *call) run(ctx context.Context) (moved bool, err error) {
	err = a.options.Wrong
	if err == nil {
		err = a.prepare(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("apply an owned set: %w", err)
	}
	if untried := a.applyAll(ctx); untried > 0 {
		a.fail(fmt.Errorf("apply an owned set: %w, with %d of %d objects not tried",
			ctx.Err(), untried, len(a.wanted)))
		return false, errors.Join(a.errs...)
	}
	if moved = a.moved(ctx); !moved && (len(a.unapplied) == 0 || !a.given.HoldPruning) {
		a.prune(ctx)
		moved = a.moved(ctx)
	}
	return moved, errors.Join(a.errs...)
}

// moved reports whether an error means that a kind of the set is served in another way by now.
func (a *call) moved(ctx context.Context) bool {
	doubtful := func(err error) bool { return core.Misplaced(err) || errors.Is(err, owners.ErrOwnerScope) }
	return slices.ContainsFunc(a.errs, doubtful) && slices.ContainsFunc(a.used, func(r objects.Resource) bool { return a.ServedOtherwise(ctx, r) })
}

// call is one call of [Apply].
type call struct {
	write.Writer
	given   Set
	set     applied.Set // its rules
	options write.Options
	owner   *core.Subject
	wanted  []*applied.Wanted
	keys    map[applied.Key]bool // of wanted, and of objects that must not be applied
	used    []objects.Resource   // how the kinds of the set are served
	result  Result
	errs    []error

	unapplied map[string]bool    // the names of objects that could not be applied
	applied   map[types.UID]bool // the objects that are as they are wanted
}

func (a *call) fail(err error) {
	if err != nil {
		a.errs = append(a.errs, plain.Error(err))
	}
}

// prepare checks the set before anything is sent.
func (a *call) prepare(ctx context.Context) error {
	if a.options.UID != nil || a.options.Version != nil {
		return errors.New("IfUID and IfResourceVersion are about one object")
	}
	a.options.FieldManager = write.ManagerOr(a.options.FieldManager)
	var err error
	if a.owner, err = a.ownerOf(ctx); err == nil {
		err = a.owner.CheckName()
	}
	if err != nil {
		return fmt.Errorf("the owner: %w", err)
	}
	if a.owner.GetUID() == "" && a.Fake == nil {
		return fmt.Errorf("the owner %s has no UID: it is to be as the server has it", a.owner)
	}
	if removes := a.given.Remote && len(a.given.Objects) == 0; a.owner.GetDeletionTimestamp() != nil && !removes {
		return fmt.Errorf("the owner %s: %w", a.owner, applied.ErrDeleting)
	}
	a.set = applied.Set{
		Owner: a.owner.Unstructured, Label: Label, Annotation: Annotation,
		Plain: a.given.Plain, Adopt: a.given.Adopt, Remote: a.given.Remote,
		Scheme: a.Scheme, BuiltIn: kinds.BuiltIn,
		Annotate: a.Fake == nil,
	}
	if err := a.set.Name(a.given.SetName, a.given.Label); err != nil {
		return err
	}
	a.keys = make(map[applied.Key]bool, len(a.given.Objects))
	var errs []error
	for i, wanted := range a.given.Objects {
		if err := a.want(ctx, wanted); err != nil {
			errs = append(errs, fmt.Errorf("object %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// ownerOf reads the owner. The kind of one in another cluster need not be known here.
func (a *call) ownerOf(ctx context.Context) (*core.Subject, error) {
	if !a.given.Remote {
		return a.SubjectOf(ctx, a.given.Owner)
	}
	if a.given.Plain {
		return nil, errors.New("a set that is Remote has no references, so they cannot be Plain")
	}
	u, err := a.Untyped(a.given.Owner)
	if err != nil {
		return nil, err
	}
	kind := u.GroupVersionKind()
	resource := objects.Resource{Kind: kind, GroupVersionResource: kind.GroupVersion().WithResource(kind.Kind)}
	o := &core.Subject{Unstructured: u, Resource: resource}
	if u.GetUID() == "" {
		return nil, fmt.Errorf("%s has no UID: it is to be as its server has it", o)
	}
	return o, nil
}

// reach is the namespace in which objects of the set can be; empty: all.
func (a *call) reach() string {
	if a.given.Remote {
		return ""
	}
	return a.owner.GetNamespace()
}
