package kates

import (
	"cmp"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/client/write"
)

// A WriteOption changes one write. Options that do not apply to the method are ignored. One that
// makes no sense (nil, a name that no field manager has) is an error of the write, and nothing is
// sent.
type WriteOption func(*write.Options)

// DryRun lets the server do everything but store the result. Snapshots do not show the write
// either.
func DryRun() WriteOption {
	return func(o *write.Options) { o.DryRun, o.Asks = []string{metav1.DryRunAll}, true }
}

// FieldManager sets the field manager of this write, see [WithFieldManager].
func FieldManager(name string) WriteOption {
	return func(o *write.Options) {
		o.FieldManager = name
		o.Wrong = cmp.Or(o.Wrong, managerName(name))
	}
}

// ForceOwnership lets an Apply take over fields that other managers own. Without it they are a
// conflict. An owner reference is one field: so is that of an object that [Client.ApplyOwned]
// adopts, if another manager has set it otherwise.
func ForceOwnership() WriteOption { return func(o *write.Options) { o.Force = true } }

// IfUID makes a Delete, Update, Patch or Apply fail with a conflict unless the object has this
// UID, so that it does not touch another object of the same name. No object has an empty one.
func IfUID(uid types.UID) WriteOption {
	return func(o *write.Options) { o.UID, o.Asks = &uid, true }
}

// IfResourceVersion makes a Delete, Update, Patch or Apply fail with a conflict unless the object
// is at this resource version, so that nobody has changed it since. No object is at "" or "0".
func IfResourceVersion(version string) WriteOption {
	return func(o *write.Options) { o.Version, o.Asks = &version, true }
}

// Propagation sets how the objects that a deleted object owns are deleted: Background or
// Foreground, or not at all: Orphan.
func Propagation(p metav1.DeletionPropagation) WriteOption {
	return func(o *write.Options) { o.Propagation = &p }
}

// GracePeriod sets how long a deleted object may take to end, rounded up to seconds; 0 is at
// once.
func GracePeriod(d time.Duration) WriteOption {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++ // half a second, rounded down, would be at once
	}
	return func(o *write.Options) { o.Grace = &seconds }
}

func (c *Client) writeOptions(opts []WriteOption) write.Options {
	o := write.Options{FieldManager: c.core.FieldManager}
	for _, f := range opts {
		if f == nil {
			o.Wrong = cmp.Or(o.Wrong, errors.New("a write option is nil"))
			continue
		}
		f(&o)
	}
	return o
}

// Unfenced sends a write without the preconditions that it has under a lease (see
// [LeaderElection], Fencing). It is for writes that may overwrite any version. The write is still
// not sent if the lease is over.
func Unfenced() WriteOption { return func(o *write.Options) { o.Unfenced = true } }
