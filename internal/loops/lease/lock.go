package lease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/base/lockorder"
)

// lock is the Lease on the server, as a candidate reads and writes it. What it does not know of
// the object it keeps. The candidate's goroutine alone uses it, and release after that has ended.
type lock struct {
	leases    dynamic.ResourceInterface
	config    Config
	timeout   time.Duration // of a request: short enough to try again before the renew deadline
	candidate *Candidate

	lease  *unstructured.Unstructured // as it was read or written last
	leader string                     // that was logged
	tried  bool                       // to write it

	mu     lockorder.Mutex[lockorder.LeaseLock]
	failed map[bool]error // of the last read and write, if it is not another candidate's doing
	last   error          // since the last write that succeeded
	now    error          // why the candidate cannot do what it is about to do
}

// verb is a kind of request.
type verb string

const (
	toRead   verb = "read"
	toCreate verb = "create"
	toUpdate verb = "update"
)

// rivals reports whether an error is the consequence of what another candidate does. A creation
// that finds nothing is not: then the namespace does not exist, or does not exist any more.
func (v verb) rivals(err error) bool {
	switch v {
	case toRead:
		return false
	case toCreate:
		return apierrors.IsAlreadyExists(err)
	default:
		return apierrors.IsConflict(err)
	}
}

func newLock(config Config, candidate *Candidate) *lock {
	return &lock{
		leases: config.Client.Resource(Resource).Namespace(config.Namespace), config: config,
		timeout: max(time.Second, config.RenewDeadline/2), candidate: candidate, failed: map[bool]error{},
	}
}

// get reads the Lease. A leader that reads another holder has lost, and also one that reads what
// another has written under the same identity. raw is the spec in full: the Lease has changed when
// raw has.
func (l *lock) get(ctx context.Context) (found record, raw []byte, err error) {
	spec, err := l.read(ctx)
	if err != nil {
		return record{}, nil, err
	}
	found = recordOf(spec)
	if l.candidate.leads() && !l.wrote(found) {
		err := fmt.Errorf("%s holds it", l.nameOf(found))
		l.candidate.lose(err)
		l.candidate.sees(found)
		return record{}, nil, err // a released Lease is not taken back either
	}
	l.candidate.sees(found)
	l.follow(found)
	raw, err = json.Marshal(spec)
	return found, raw, err
}

func (l *lock) read(ctx context.Context) (*coordinationv1.LeaseSpec, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	u, err := l.leases.Get(ctx, l.config.Name, metav1.GetOptions{})
	if l.note(ctx, toRead, err); err != nil {
		return nil, err
	}
	var lease coordinationv1.Lease
	if err := asjson.Decode(u.Object, &lease); err != nil {
		l.note(ctx, toRead, err)
		return nil, err
	}
	l.lease = u
	return &lease.Spec, nil
}

func (l *lock) create(ctx context.Context, r record) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(Resource.GroupVersion().WithKind("Lease"))
	u.SetNamespace(l.config.Namespace)
	u.SetName(l.config.Name)
	return l.write(ctx, toCreate, u, r, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return l.leases.Create(ctx, u, metav1.CreateOptions{FieldManager: l.config.FieldManager})
	})
}

// update writes the Lease, if it still has the version that was read or written last.
func (l *lock) update(ctx context.Context, r record) error {
	u := l.lease.DeepCopy()
	return l.write(ctx, toUpdate, u, r, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return l.leases.Update(ctx, u, metav1.UpdateOptions{FieldManager: l.config.FieldManager})
	})
}

func (l *lock) write(ctx context.Context, v verb, u *unstructured.Unstructured, r record,
	send func(context.Context) (*unstructured.Unstructured, error)) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	fields, err := r.fields()
	if err != nil {
		return err
	}
	for name, value := range fields {
		if err := unstructured.SetNestedField(u.Object, value, "spec", name); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	sent := time.Now()
	l.tried = true
	l.config.Written.Sends(r.stamp())
	written, err := send(ctx)
	if l.note(ctx, v, err); err != nil {
		return err
	}
	l.config.Written.Stored(r.stamp())
	l.lease = written
	if r.holder == l.config.Identity {
		l.leader = r.holder
		l.candidate.renewed(sent, r)
	}
	return nil
}

// release gives the lease up, if the candidate holds it. It reads first: a request that was under
// way when the loop ended may have reached the server.
func (l *lock) release() {
	if !l.tried {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.config.RenewDeadline)
	defer cancel()
	for {
		spec, err := l.read(ctx)
		if err != nil {
			return
		}
		found, now := recordOf(spec), time.Now()
		if !l.wrote(found) {
			return
		}
		err = l.update(ctx, record{seconds: 1, acquired: now, renewed: now, transitions: found.transitions})
		if err == nil {
			l.candidate.sees(record{})
			l.config.Logger.Info("lease released", "lease", l.name(), "identity", l.config.Identity)
		}
		if !apierrors.IsConflict(err) {
			return
		}
	}
}

// note takes in the result of a request. It logs once that the Lease cannot be read, or written,
// and once that it can again.
func (l *lock) note(ctx context.Context, v verb, err error) {
	writes := v != toRead
	if v != toCreate && apierrors.IsNotFound(err) {
		if v == toUpdate {
			return // the next request, a creation, tells whether it can be written
		}
		err = nil
	} else if err != nil || writes {
		l.mu.Lock()
		l.last = err
		l.mu.Unlock()
	}
	if v.rivals(err) {
		err = nil
	}
	if err != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return // this candidate causes that
	}
	l.mu.Lock()
	before := l.failed[writes]
	l.failed[writes] = err
	verb := map[bool]string{true: "write", false: "read"}[writes]
	switch {
	case err != nil:
		l.now = fmt.Errorf("cannot %s it: %w", verb, err)
	case writes:
		l.now = nil
	}
	l.mu.Unlock()
	l.candidate.teller.changed()
	switch {
	case err != nil && before == nil:
		l.config.Logger.Error(err, "cannot "+verb+" the lease, will keep trying", "lease", l.name())
	case err == nil && before != nil:
		l.config.Logger.V(1).Info("can "+verb+" the lease again", "lease", l.name())
	}
}

// waits notes that the candidate has read that another one holds the lease, and can only wait.
func (l *lock) waits() {
	l.mu.Lock()
	before := l.now
	l.now = nil
	l.mu.Unlock()
	if before != nil {
		l.candidate.teller.changed()
	}
}

// trouble says why the candidate cannot do what it is about to do, nil if nothing is in its way.
func (l *lock) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// lastError says why the lease could not be renewed.
func (l *lock) lastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.last, errUnknown)
}

// follow logs a new leader.
func (l *lock) follow(found record) {
	leader := ""
	if found.holder != "" && !l.mine(found) {
		leader = l.nameOf(found) // another one than a candidate here of the same identity
	}
	if leader == l.leader {
		return
	}
	if l.leader = leader; leader != "" {
		l.config.Logger.Info("following", "lease", l.name(), "leader", found.holder, "identity", l.config.Identity)
	}
}

// mine reports whether the candidate may go on with the Lease without waiting. A user's identity
// is the candidate's alone, so another process that had it is gone. A default identity may be that
// of a copy of this process.
func (l *lock) mine(r record) bool {
	if r.holder == l.config.Identity && !l.config.OwnIdentity && !l.candidate.leads() {
		return true
	}
	return l.wrote(r)
}

// wrote reports whether the Lease is as a candidate of this process wrote it, under this identity.
func (l *lock) wrote(r record) bool {
	return r.holder == l.config.Identity && l.config.Written.Has(r.stamp())
}

// nameOf names the holder of a Lease that this candidate did not write.
func (l *lock) nameOf(r record) string {
	if r.holder == l.config.Identity {
		return fmt.Sprintf("another process with the same identity, %q,", r.holder)
	}
	return strconv.Quote(r.holder)
}

// name is that of the Lease.
func (l *lock) name() string { return l.config.Namespace + "/" + l.config.Name }
