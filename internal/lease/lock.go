package election

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a Lease, as client-go's loop reads and writes it. It keeps what it does not know of the object. The loop's
// goroutine alone calls it, and release after that.
type lock struct {
	leases    dynamic.ResourceInterface
	config    Config
	timeout   time.Duration // of a request: less than the renew deadline, so that one that hangs is tried again
	candidate *Candidate

	lease  *unstructured.Unstructured // as the server has it, as far as is known
	holder string                     // that was logged
	tried  bool                       // to write it

	mu     sync.Mutex
	failed map[bool]error // the last request that writes (true), or reads, if that is worth a log
	last   error          // since the last write that succeeded
}

var _ resourcelock.Interface = (*lock)(nil)

// Get reads the lease. A leader who reads that it is not its own has lost it.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	u, err := l.leases.Get(ctx, l.config.Name, metav1.GetOptions{})
	if l.note(ctx, false, err); err != nil {
		return nil, nil, err
	}
	var lease coordinationv1.Lease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &lease); err != nil {
		l.note(ctx, false, err)
		return nil, nil, err
	}
	l.lease = u
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	if l.candidate.leading() && record.HolderIdentity != l.config.Identity {
		err := fmt.Errorf("%q holds it", record.HolderIdentity)
		l.candidate.lose(err)
		return nil, nil, err // or the loop takes what nobody holds
	}
	l.follow(record.HolderIdentity)
	raw, err := json.Marshal(lease.Spec) // the record has whole seconds only
	return record, raw, err
}

// Create makes the lease.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(Resource.GroupVersion().WithKind("Lease"))
	u.SetNamespace(l.config.Namespace)
	u.SetName(l.config.Name)
	return l.write(ctx, u, record, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return l.leases.Create(ctx, u, metav1.CreateOptions{FieldManager: l.config.FieldManager})
	})
}

// Update writes the lease, if it is still as it was read or written last.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	u := l.lease.DeepCopy()
	return l.write(ctx, u, record, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return l.leases.Update(ctx, u, metav1.UpdateOptions{FieldManager: l.config.FieldManager})
	})
}

func (l *lock) write(ctx context.Context, u *unstructured.Unstructured, record resourcelock.LeaderElectionRecord,
	send func(context.Context) (*unstructured.Unstructured, error)) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	spec := resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
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
	written, err := send(ctx)
	if l.note(ctx, true, err); err != nil {
		return err
	}
	l.lease = written
	if record.HolderIdentity == l.config.Identity {
		l.holder = record.HolderIdentity
		l.candidate.renewed(sent)
	}
	return nil
}

// release gives the lease up, if it is held. What was under way when the loop ended may have reached the server.
func (l *lock) release() {
	if !l.tried {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.config.RenewDeadline)
	defer cancel()
	for {
		record, _, err := l.Get(ctx)
		if err != nil || record.HolderIdentity != l.config.Identity {
			return
		}
		now := metav1.Now()
		err = l.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
		if err == nil {
			l.config.Logger.Info("lease released", "lease", l.Describe(), "identity", l.config.Identity)
		}
		if !apierrors.IsConflict(err) {
			return
		}
	}
}

// note notes how a request fared. That the lease cannot be read, or written, is logged once, and so is that it can again.
func (l *lock) note(ctx context.Context, writes bool, err error) {
	l.mu.Lock()
	if err != nil || writes {
		l.last = err
	}
	l.mu.Unlock()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = nil // others do that
	}
	if err != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return // that is ours
	}
	l.mu.Lock()
	before := l.failed[writes]
	l.failed[writes] = err
	l.mu.Unlock()
	verb := map[bool]string{true: "write", false: "read"}[writes]
	switch {
	case err != nil && before == nil:
		l.config.Logger.Error(err, "cannot "+verb+" the lease, will keep trying", "lease", l.Describe())
	case err == nil && before != nil:
		l.config.Logger.V(1).Info("can "+verb+" the lease again", "lease", l.Describe())
	}
}

// lastError says what keeps the lease from being renewed.
func (l *lock) lastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.last, errUnknown)
}

// follow logs who leads.
func (l *lock) follow(holder string) {
	if holder == l.holder {
		return
	}
	l.holder = holder
	if holder != "" && holder != l.config.Identity {
		l.config.Logger.Info("following", "lease", l.Describe(), "leader", holder, "identity", l.config.Identity)
	}
}

// RecordEvent does nothing: transitions are logged.
func (l *lock) RecordEvent(string) {}

// Identity is the candidate's.
func (l *lock) Identity() string { return l.config.Identity }

// Describe names the lease.
func (l *lock) Describe() string { return l.config.Namespace + "/" + l.config.Name }
