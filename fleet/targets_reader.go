package fleet

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

// ErrNotKnown is the error of a [Reader] whose watch is not complete: nothing is known of the
// target yet, or any more. The error that wraps it says why.
var ErrNotKnown = errors.New("the target is not known yet")

// ErrTargetDropped is the error of a [Reader] whose owner does not need the target any more.
var ErrTargetDropped = errors.New("the owner has dropped the target")

// Reader reads the objects of one target, for one owner. Each answer is the newest that the watch,
// or a write of the cluster's client, has shown: own writes are in it, and nothing is taken back.
// It sends no request and does not wait for the network. If a target is dropped and wanted again,
// its readers work again. A Reader is safe for concurrent use.
//
// As long as the target is not known, every method says so: never that there is no object. A
// cluster that does not answer, or refuses, keeps what was known of it: see Stale and Err. If the
// cluster leaves the fleet, its targets are not known any more.
type Reader struct {
	targets *Targets
	owner   string
	target  Target
}

// Target that the reader is of.
func (r *Reader) Target() Target { return r.target }

// Get returns the object of a target with a name. It is shared and read-only. If there is no such
// object, the error is like the server's ([kates.IsNotFound]). Other errors are [ErrNotKnown],
// [ErrTargetDropped] and [kates.ErrClosed].
func (r *Reader) Get() (*kates.Unstructured, error) {
	if r.target.Name == "" {
		return nil, fmt.Errorf("get %s: the target has no name: list it", r.target)
	}
	known, err := r.read()
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", r.target, err)
	}
	o, err := known.objects.Get(r.target.Namespace, r.target.Name)
	if kates.IsNotFound(err) {
		absent := apierrors.NewNotFound(schema.GroupResource{Resource: r.target.Kind}, r.target.Name)
		absent.ErrStatus.Message = fmt.Sprintf("%s: not found", r.target)
		return nil, absent
	}
	return o, err
}

// List returns the objects of the target, by namespace and name: one or none for a target with a
// name. They are shared and read-only, and the slice is the caller's. The errors are those of Get,
// but none says that there is no such object.
func (r *Reader) List() ([]*kates.Unstructured, error) {
	known, err := r.read()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.target, err)
	}
	if r.target.Name == "" {
		return known.objects.List(r.target.Namespace, known.selector)
	}
	o, err := known.objects.Get(r.target.Namespace, r.target.Name)
	if kates.IsNotFound(err) {
		return nil, nil
	}
	return []*kates.Unstructured{o}, err
}

// Complete reports whether the target is known: Get and List have answers.
func (r *Reader) Complete() bool {
	_, err := r.read()
	return err == nil
}

// Stale reports whether what is known of the target may be old, and since when: the cluster does
// not answer the fleet, or the watch is not open.
func (r *Reader) Stale() (since time.Time, stale bool) {
	if w, err := r.targets.watchFor(r.owner, r.target); err == nil {
		return w.stale()
	}
	return time.Time{}, false
}

// Err says what is wrong now: the target is not known, is stale, or may not be read any more. It
// is nil while all is well.
func (r *Reader) Err() error {
	if _, err := r.read(); err != nil {
		return fmt.Errorf("%s: %w", r.target, err)
	}
	w, err := r.targets.watchFor(r.owner, r.target)
	if err == nil {
		err = w.trouble()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.target, err)
	}
	return nil
}

// read takes what is new, and returns what is known of the target.
func (r *Reader) read() (known, error) {
	w, err := r.targets.watchFor(r.owner, r.target)
	if err != nil {
		return known{}, err
	}
	w.take()
	k, _, err := w.read(r.target)
	return k, err
}

// progress returns nil once the target is known. The channel is closed when that, or what holds it
// up, may have changed. It is nil if waiting is of no use now.
func (r *Reader) progress() (news <-chan struct{}, err error) {
	w, err := r.targets.watchFor(r.owner, r.target)
	if err != nil {
		return nil, err
	}
	_, news, err = w.read(r.target)
	return news, err
}
