package write

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/loops/fence"
	objects "github.com/kates-go/kates/internal/object"
)

// Reply is the server's answer to a write, and what the answer tells about the object.
type Reply struct {
	Got *unstructured.Unstructured // for the target; nil if the answer has none
	intake.Outcome
	// wrote is what was sent for a whole status, or a part of it; nil: the answer does not tell
	// whether anything was dropped.
	wrote     *unstructured.Unstructured
	unrelated bool // the write did not change the object that it was addressed to
	Unsent    bool // nothing was sent, because nothing would change
	past      bool // another client has written it, at some time
}

// Request sends a write, which may take several requests.
type Request func(*core.Subject, Options) (Reply, error)

// write is send for Requests whose answer is the object that was written.
func (c Writer) write(ctx context.Context, op Operation, resource, target any, w Options,
	send func(*core.Subject, Options) (*unstructured.Unstructured, error),
) error {
	return c.send(ctx, op, resource, target, w, func(o *core.Subject, w Options) (Reply, error) {
		if err := c.FitsTarget(target, o.Resource.Kind); err != nil {
			return Reply{}, err // an error must not come after the write
		}
		got, err := send(o, w)
		if err != nil {
			return Reply{}, err
		}
		answer := c.Answered(op, got)
		if op == OpUpdateStatus {
			answer.wrote = o.Unstructured
		}
		return answer, nil
	})
}

// Answered reads an answer that is the object as it was written. For removed see written. A
// reactor of a fake may answer with nothing.
func (c Writer) Answered(op Operation, got *unstructured.Unstructured, removed ...string) Reply {
	if got == nil {
		return Reply{unrelated: true}
	}
	return Reply{Got: got, Outcome: intake.Outcome{Write: written(op, got, removed...)}}
}

// send does what all writes have in common: it reads the caller's value, sends the request, makes
// the answer an own write, and fills the target.
func (c Writer) send(ctx context.Context, op Operation, resource, target any, w Options, r Request) error {
	if err := c.CheckTarget(target); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	o, err := c.SubjectOf(ctx, resource)
	if err == nil {
		o.Object, o.Plain = patch.WithoutStringData(o.Resource.Kind, o.Object)
		if op != OpCreate {
			err = o.CheckName()
		}
	}
	if err = cmp.Or(err, w.Wrong, fence.Check(ctx), ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	var wrote *unstructured.Unstructured
	got, err := c.Do(ctx, op, o, w, func(o *core.Subject, w Options) (Reply, error) {
		answer, err := r(o, w)
		wrote = answer.wrote
		return answer, c.missing(ctx, op, o, err)
	})
	if err != nil {
		return err
	}
	if err := dropped(op, nil, wrote, got); err != nil {
		return o.Failed(op, err)
	}
	return jsonform.Fill(target, got)
}

// missing says of an error that the kind has no such subresource, if that is the reason: the
// server answers "not found", as for an object that is gone.
func (c Writer) missing(ctx context.Context, op Operation, o *core.Subject, err error) error {
	if op.subresource == "" || op.verb == toCreate || !apierrors.IsNotFound(err) || !c.lacks(ctx, op, o, o.GetUID()) {
		return err
	}
	return fmt.Errorf("%w: %w", errNoSubresource(op), err)
}

// lacks reports whether a kind has no such subresource, after the server has answered "not found".
// It asks whether the object of that UID is there nonetheless; an empty UID stands for any. Where
// the client may not get the object, discovery tells.
func (c Writer) lacks(ctx context.Context, op Operation, o *core.Subject, uid types.UID) bool {
	now, err := c.Get(ctx, core.Bare(o.Resource, o.Key()))
	switch {
	case err == nil:
		return uid == "" || now.GetUID() == uid
	case apierrors.IsNotFound(err):
		return false
	}
	return c.Kinds.LacksSubresource(ctx, o.Resource.GroupVersionResource, op.subresource)
}

func errNoSubresource(op Operation) error {
	return fmt.Errorf("its kind has no %s subresource", op.subresource)
}

// Do sends a request, unless ctx or the lease is over, and makes its answer an own write. It holds
// no lock meanwhile.
func (c Writer) Do(ctx context.Context, op Operation, o *core.Subject, w Options, r Request) (*unstructured.Unstructured, error) {
	err := fence.Check(ctx)
	if err == nil {
		w, err = c.bind(ctx, op, o, w)
	}
	if err == nil {
		err = c.possible(op, o, w)
	}
	if err != nil {
		return nil, o.Failed(op, err)
	}
	begun, a, err := c.request(ctx, op, o, w, r)
	if c.Moved(ctx, o, err) {
		begun, a, err = c.request(ctx, op, o, w, r)
	}
	switch {
	case err != nil:
		return nil, o.Failed(op, err)
	case w.DryRun == nil && a.Unsent:
		begun.Abandon()
		if err := c.Await(ctx, op, o, a.Got); err != nil {
			return nil, err
		}
	case w.DryRun != nil || a.unrelated:
		begun.Abandon()
	default:
		if coherence.Comparable(a.Version) {
			fence.HorizonOf(ctx, c.Core).Wrote(o.Stored(), a.Version) // for later writes of the same work
		}
		c.commit(ctx, begun, o, a.Outcome)
	}
	return a.Got, nil
}

// Await waits until every stream shows an object as it was found, or newer. It is called where a
// write sends nothing, since the object is as it is wanted: an own write of another goroutine may
// have made it so, and may not have returned yet.
func (c Writer) Await(ctx context.Context, op Operation, o *core.Subject, found objects.Object) error {
	if err := c.Streams.Await(ctx, o.Resource, o.Key(), found.GetResourceVersion()); err != nil {
		return o.Failed(op, err)
	}
	return nil
}

// request sends the request of a write, which is under way until it is committed or abandoned. On
// an error it is abandoned.
func (c Writer) request(
	ctx context.Context, op Operation, o *core.Subject, w Options, r Request,
) (begun *streamset.Write, a Reply, err error) {
	begun, answered := c.Streams.Begin(o.Resource, o.Key()), c.beginVersion(o)
	defer answered(nil) // also if r panics, as a reactor of a fake may do
	failed := true
	defer func() {
		if failed {
			begun.Abandon()
		}
	}()
	a, err = r(o, w)
	if !a.Unsent {
		c.logWrite(ctx, op, o, w, a, err) // as the server has answered
	}
	if err == nil && w.DryRun == nil {
		answered(&a)
	}
	failed = err != nil
	return begun, a, err
}

// commit makes a write that has succeeded an own write.
func (c Writer) commit(ctx context.Context, begun *streamset.Write, o *core.Subject, out intake.Outcome) {
	if out.Key.Name == "" {
		out.Key = o.Key()
	}
	if err := begun.Commit(ctx, out); err != nil {
		// The write has succeeded: this is no error of the write.
		c.Log.Info("own write not settled, the watch will bring it", "object", o.String(), "err", err)
	}
}

// Observe makes a write of another client an own write. Written is what the server answered.
func (c Writer) Observe(ctx context.Context, written any) error {
	o, err := c.SubjectOf(ctx, written)
	if err == nil {
		err = o.CheckName()
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return fmt.Errorf("%s: %w", OpObserve, err)
	}
	if err := c.checkVersion(o.Unstructured); err != nil {
		return o.Failed(OpObserve, err)
	}
	begun, answered := c.Streams.Begin(o.Resource, o.Key()), c.beginVersion(o)
	a := c.Answered(OpObserve, o.Unstructured)
	a.past = true
	answered(&a)
	c.commit(ctx, begun, o, a.Outcome)
	return nil
}

// checkVersion is an error if an object's resource version cannot be compared.
func (c Writer) checkVersion(o *unstructured.Unstructured) error {
	if version := o.GetResourceVersion(); c.Fake == nil && !coherence.Comparable(version) {
		return fmt.Errorf("no usable resource version: %q", version)
	}
	return nil
}

// beginVersion gives a write to the bare fake its version. It is called before the write is sent.
// The function that it returns takes in the answer, or, with nil, that the write has failed; a
// second call has no effect. The bare fake knows no finalizers: what its answer says is what it
// has. The streams get what the fake has stored, and the user what it has answered: a reactor can
// make these differ.
func (c Writer) beginVersion(o *core.Subject) func(*Reply) {
	if c.Fake == nil {
		return func(*Reply) {}
	}
	write := c.Fake.Begin(o.Resource)
	return func(a *Reply) {
		if a == nil || a.Unsent || a.unrelated || a.Unknown {
			write.End()
			return
		}
		var answer, stored objects.Object
		if a.Got != nil {
			answer = a.Got
		}
		a.Key = cmp.Or(a.Key, o.Key())
		saw := write.Saw
		if a.past {
			saw = write.Observed
		}
		a.UID, a.Version, stored = saw(a.Key, answer)
		if a.Object = nil; stored != nil {
			a.Object = stored
		}
	}
}

// written reads the server's answer to a write: is the object present, terminating, or gone? The
// answers of all writes are read here, and only here.
//
//   - gone: a DELETE answered by a Status, or by the object without a
//     deletionTimestamp; or any write answered by an object with a deletionTimestamp
//     that nothing keeps any more (no finalizers but those that the write removed, no grace).
//   - terminating: it has a deletionTimestamp and something keeps it. It is there.
//   - present: everything else.
//
// A DELETE that ends a terminating object answers with the deletion's version. A
// write that removes the last finalizer answers with the object's old version, so
// that version says nothing, and the deletion's is unknown.
func written(op Operation, answer *unstructured.Unstructured, removed ...string) coherence.Write {
	w := coherence.Write{
		Key: objects.Key{Namespace: answer.GetNamespace(), Name: answer.GetName()},
		UID: answer.GetUID(),
	}
	deleted := answer.GetDeletionTimestamp() != nil
	switch {
	case op == OpDelete && !deleted:
	case deleted && !kept(answer, removed...):
		if op == OpDelete {
			w.Version = answer.GetResourceVersion()
		}
	default:
		w.Version, w.Object = answer.GetResourceVersion(), answer
	}
	return w
}

// kept reports whether something keeps a terminating object: a finalizer that was not removed, a
// namespace's own finalizer, or a grace period.
func kept(u *unstructured.Unstructured, removed ...string) bool {
	for _, f := range u.GetFinalizers() {
		if !slices.Contains(removed, f) {
			return true
		}
	}
	if grace := u.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		return true
	}
	if u.GetKind() == "Namespace" && u.GetAPIVersion() == "v1" {
		own, _, _ := unstructured.NestedSlice(u.Object, "spec", "finalizers")
		return len(own) > 0
	}
	return false
}

// removedBy are the finalizers that a deletion takes off the object. If none is left after that,
// the server deletes it, and answers with the object as it was before: with them.
func removedBy(o metav1.DeleteOptions) []string {
	if p := o.PropagationPolicy; p != nil && *p == metav1.DeletePropagationBackground {
		return []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	}
	return nil
}
