package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/kates"
)

// TargetsStatus is the state of [Targets]. It prints as a table and marshals to JSON.
type TargetsStatus struct {
	Owners  int                 `json:"owners"`
	Watches []TargetWatchStatus `json:"watches"`
}

// TargetWatchStatus is the state of the watch of one kind in one cluster.
type TargetWatchStatus struct {
	Cluster string `json:"cluster"`
	Kind    string `json:"kind"`
	// Targets is how many there are, and Known how many of them are known. Idle ones are needed by
	// no owner, and are watched for a while ([TargetOptions].Grace).
	Targets int `json:"targets"`
	Known   int `json:"known"`
	Idle    int `json:"idle,omitempty"`
	// Watched is what is shown: everything, or namespaces, names and selectors.
	Watched []string `json:"watched,omitempty"`
	// Changing: another watch is started, and replaces the one that is shown when it is complete.
	Changing bool `json:"changing,omitempty"`
	// State of the watch; empty while there is none.
	State   kates.State `json:"state,omitempty"`
	Objects int         `json:"objects"`
	// Error says what is wrong now. Failures is how many starts have failed in a row, and Since is
	// when it began.
	Error    string    `json:"error,omitempty"`
	Failures int       `json:"failures,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}

// Status returns the state of all watches, by cluster and kind. It does not wait for any of them.
func (t *Targets) Status() (s TargetsStatus) {
	t.mu.Lock()
	s.Owners = len(t.owners)
	t.mu.Unlock()
	for _, w := range t.all() {
		s.Watches = append(s.Watches, w.status())
	}
	slices.SortFunc(s.Watches, func(a, b TargetWatchStatus) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind, b.Kind))
	})
	return s
}

func (w *targetWatch) status() TargetWatchStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := TargetWatchStatus{
		Cluster: w.key.cluster, Kind: w.key.kind, Targets: len(w.wanted), Changing: w.schedule.Waiting(),
		Error: textOf(w.problem.err), Failures: w.problem.failures,
	}
	if s.Error != "" {
		s.Since = w.problem.since
	}
	for _, part := range w.schedule.Present().Parts {
		s.Watched = append(s.Watched, part.String())
	}
	var unfit []error
	chosen := w.schedule.Chosen()
	for _, is := range w.wanted {
		switch {
		case len(is.owners) == 0:
			s.Idle++
		case is.unfit != nil:
			unfit = append(unfit, fmt.Errorf("%s: %w", is.target, is.unfit))
		case w.scope.known && !chosen.Covers(is.target.planned()):
			unfit = append(unfit, fmt.Errorf("%s: %w", is.target, errRefused))
		}
		if w.following != nil && w.schedule.Known(is.target.planned()) {
			s.Known++
		}
	}
	if s.Error == "" && unfit != nil {
		slices.SortFunc(unfit, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
		s.Error = errors.Join(unfit...).Error()
	}
	if w.following != nil {
		q := w.following.state()
		s.State, s.Objects = q.State, q.Objects
	}
	return s
}

// Err says what is wrong now. It is nil while every target that an owner needs is known, and every
// watch is open.
func (s TargetsStatus) Err() error {
	var errs []error
	for _, w := range s.Watches {
		switch {
		case w.Error != "":
			errs = append(errs, fmt.Errorf("%s in cluster %q: %s", plain.Line(w.Kind), w.Cluster, plain.Line(w.Error)))
		case w.Known < w.Targets:
			errs = append(errs, fmt.Errorf("%s in cluster %q: %d of %d targets are known", plain.Line(w.Kind), w.Cluster, w.Known, w.Targets))
		}
	}
	return errors.Join(errs...)
}

// String prints the status as a table.
func (s TargetsStatus) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tKIND\tTARGETS\tKNOWN\tIDLE\tSTATE\tOBJECTS\tWATCHED\tERROR")
	for _, k := range s.Watches {
		state := string(k.State)
		if k.Changing {
			state += ", changing"
		}
		plain.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%d\t%s\t%s\n", k.Cluster, k.Kind, k.Targets, k.Known, k.Idle, state,
			k.Objects, strings.Join(k.Watched, "; "), k.Error)
	}
	_ = w.Flush() // a strings.Builder does not fail
	return b.String()
}
