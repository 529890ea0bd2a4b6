package kates

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A WriteOption changes one write. Options that do not apply to the method are ignored.
type WriteOption func(*writeOptions)

type writeOptions struct {
	dryRun       []string
	fieldManager string
	force        bool
	uid          *types.UID
	version      *string
	propagation  *metav1.DeletionPropagation
	grace        *int64
	unfenced     bool
}

// DryRun lets the server do everything but store the result. Snapshots do not show the write
// either.
func DryRun() WriteOption {
	return func(o *writeOptions) { o.dryRun = []string{metav1.DryRunAll} }
}

// FieldOwner sets the field manager of this write.
func FieldOwner(name string) WriteOption {
	return func(o *writeOptions) { o.fieldManager = name }
}

// ForceOwnership lets an Apply take over fields that other managers own. Without it they are a
// conflict.
func ForceOwnership() WriteOption { return func(o *writeOptions) { o.force = true } }

// IfUID makes a Delete, Update, Patch or Apply fail with a conflict unless the object has this
// UID, so that it does not touch another object of the same name. No object has an empty one.
func IfUID(uid types.UID) WriteOption { return func(o *writeOptions) { o.uid = &uid } }

// IfResourceVersion makes a Delete, Update, Patch or Apply fail with a conflict unless the object
// is at this resource version, so that nobody has changed it since. No object is at "" or "0".
func IfResourceVersion(version string) WriteOption {
	return func(o *writeOptions) { o.version = &version }
}

// Propagation sets how the objects that a deleted object owns are deleted: Background or
// Foreground, or not at all: Orphan.
func Propagation(p metav1.DeletionPropagation) WriteOption {
	return func(o *writeOptions) { o.propagation = &p }
}

// GracePeriod sets how long a deleted object may take to end, rounded up to seconds; 0 is at
// once.
func GracePeriod(d time.Duration) WriteOption {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++ // half a second, rounded down, would be at once
	}
	return func(o *writeOptions) { o.grace = &seconds }
}

func (c *Client) writeOptions(opts []WriteOption) writeOptions {
	o := writeOptions{fieldManager: c.core.fieldManager}
	for _, f := range opts {
		f(&o)
	}
	return o
}

func (w writeOptions) create() metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: w.dryRun, FieldManager: w.fieldManager}
}

func (w writeOptions) update() metav1.UpdateOptions {
	return metav1.UpdateOptions{DryRun: w.dryRun, FieldManager: w.fieldManager}
}

func (w writeOptions) patch(pt PatchType) metav1.PatchOptions {
	o := metav1.PatchOptions{DryRun: w.dryRun, FieldManager: w.fieldManager}
	if pt == types.ApplyPatchType {
		if o.FieldManager == "" {
			o.FieldManager = defaultFieldManager
		}
		o.Force = &w.force
	}
	return o
}

func (w writeOptions) delete() metav1.DeleteOptions {
	o := metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		DryRun:   w.dryRun, PropagationPolicy: w.propagation, GracePeriodSeconds: w.grace,
	}
	if w.uid != nil || w.version != nil {
		o.Preconditions = &metav1.Preconditions{UID: w.uid, ResourceVersion: w.version}
	}
	return o
}

// Unfenced sends a write without the preconditions that it has under a lease (see
// [LeaderElection], Fencing). It is for writes that may overwrite any version. The write is still
// not sent if the lease is over.
func Unfenced() WriteOption { return func(o *writeOptions) { o.unfenced = true } }
