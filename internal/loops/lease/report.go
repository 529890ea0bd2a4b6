package lease

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// ErrNeverLed is the error of a run that ends before it has led.
var ErrNeverLed = errors.New("it never led")

// errNotAsked is the reason before the first request is answered.
var errNotAsked = errors.New("it is asked for once the first snapshot is complete")

// Status is how a replica stands with its Lease: as a candidate, or as a shard.
type Status struct {
	Lease    string    // namespace and name; of shards: namespace and group
	Identity string    // empty before it stands
	Holds    bool      // it leads; of shards: it is a member
	Held     bool      // it holds the Lease, or has held it
	Holder   string    // who leads, by what was read or written last; empty: nobody
	Since    time.Time // of the holder's term, or of the membership
	Members  int       // of the group, by what this shard sees
	Reached  bool      // the Lease was read, or written, at least once
	Ranges   int       // of hashes that this shard has; 0: keys are divided by their names
	Part     float64   // of all hashes that is
	Keys     int       // of this shard
	Streams  string    // of a shard: whether they bring its part alone, in words
	Err      error     // what is wrong now: of the last request, or why it was lost
}

// Reports are those of one client's runs. The zero value is ready. It is safe for concurrent use.
type Reports struct {
	mu      lockorder.Mutex[lockorder.LeaseReports]
	open    []*Report       // in the order of their beginning
	reached map[string]bool // the Leases that runs have reached
}

// Report shows the status of one run, or of several, one after another. It is safe for concurrent
// use.
type Report struct {
	all    *Reports
	lease  string
	never  error // of a run that ends without having held the Lease
	status atomic.Pointer[func() Status]
	noted  atomic.Bool // that the Lease was reached
}

// New returns the report of a run that is to hold a Lease. never is its error if it does not.
func (r *Reports) New(lease string, never error) *Report {
	return &Report{all: r, lease: lease, never: never}
}

// Statuses are those of the runs that have begun and have not ended.
func (r *Reports) Statuses() (all []Status) {
	r.mu.Lock()
	open := slices.Clone(r.open)
	r.mu.Unlock()
	for _, report := range open {
		all = append(all, report.Status())
	}
	return all
}

// Ready is nil if each run's Lease has been reached, by this run or any other one. So a Lease that
// has been reached does not matter any more.
func (r *Reports) Ready() error {
	r.mu.Lock()
	open := slices.Clone(r.open)
	r.mu.Unlock()
	var errs []error
	for _, report := range open {
		errs = append(errs, report.Ready())
	}
	return errors.Join(errs...)
}

// Open are the reports of the runs that have begun and have not ended.
func (r *Reports) Open() []*Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.open)
}

// Lease is the namespace and name; of shards: the namespace and group.
func (r *Report) Lease() string { return r.lease }

// Show makes the report that of a replica that stands now. On nil it does nothing.
func (r *Report) Show(status func() Status) {
	if r != nil {
		r.status.Store(&status)
	}
}

// Status is that of the run, or of the latest one. Before the replica stands it names the Lease.
func (r *Report) Status() Status {
	if status := r.status.Load(); status != nil {
		return (*status)()
	}
	return Status{Lease: r.lease}
}

// Ready is nil if the Lease has been reached.
func (r *Report) Ready() error {
	s := r.Status()
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.all.reached[r.lease] {
		return nil
	}
	return fmt.Errorf("lease %s: %w", r.lease, s.reason())
}

// Reached notes that a run has reached its Lease, at the first answer: another run for the same
// Lease may begin before this one ends. There is one entry for each Lease, for ever: a program has
// few of them. On nil it does nothing.
func (r *Report) Reached() {
	if r == nil || r.noted.Swap(true) {
		return
	}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.all.reached == nil {
		r.all.reached = make(map[string]bool)
	}
	r.all.reached[r.lease] = true
}

// Begin adds the report to those of the client's open runs. end removes it; it stays readable.
func (r *Report) Begin() (end func()) {
	r.status.Store(nil)
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.all.open = append(r.all.open, r)
	return sync.OnceFunc(func() {
		r.all.mu.Lock()
		defer r.all.mu.Unlock()
		r.all.open = slices.DeleteFunc(r.all.open, func(other *Report) bool { return other == r })
	})
}

// Explain returns the error of a run, with whether it ever held the Lease, and if not, why.
func (r *Report) Explain(err error) error {
	s := r.Status()
	switch {
	case err == nil || errors.Is(err, ErrLost):
		return err
	case s.Held:
		return fmt.Errorf("lease %s: it was held by this replica: %w", r.lease, err)
	default:
		return r.because(s.reason(), err)
	}
}

// Unstarted returns the error of a run that has not stood for the Lease.
func (r *Report) Unstarted(err error) error { return r.because(errNotAsked, err) }

func (r *Report) because(reason, err error) error {
	return fmt.Errorf("lease %s: %w: %w: %w", r.lease, r.never, reason, err)
}

// reason says why the replica does not hold the Lease.
func (s Status) reason() error {
	switch {
	case s.Err != nil:
		return s.Err
	case s.Holder != "" && s.Holder != s.Identity:
		return fmt.Errorf("%q holds it", s.Holder)
	case s.Holder != "" && !s.Holds:
		return fmt.Errorf("another process holds it under the same identity, %q", s.Holder)
	default:
		return errNotAsked
	}
}
