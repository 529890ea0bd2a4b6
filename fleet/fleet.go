package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
)

// Options configure a fleet. The zero value is a fleet without sources, to which the program adds
// clusters ([Fleet.Add]).
type Options struct {
	// Sources say which clusters there are. Where two of them name a cluster alike, the one that
	// has the name keeps it, and the status says so. Names that a source says in its first word go
	// to the earlier source, so it does not matter which one speaks first after a start.
	Sources []Source
	// Home is the client of the cluster that holds what the program itself needs: the Lease of a
	// kates.LeaderElection. It may be nil.
	Home *kates.Client
	// Client has the options of each cluster's client. To these comes [kates.WithClusterName].
	Client []kates.Option
	// Deadline is how long a first snapshot waits for a cluster that does not answer or is not
	// complete. Default: 30 seconds. After that the cluster is [Missing].
	Deadline time.Duration
	// Interval is the least time between two signals of a watch of the fleet. Default: 1 second.
	Interval time.Duration
	// Probe is the time between two requests that ask whether a cluster still answers, and is
	// still the same one. Default: 10 seconds.
	Probe time.Duration
	// Timeout of such a request. Default: 10 seconds.
	Timeout time.Duration
	// Logger gets what happens to clusters. Default: nothing is logged. See logr.FromSlogHandler.
	Logger logr.Logger
}

func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		name string
		of   *time.Duration
		def  time.Duration
	}{
		{"Deadline", &o.Deadline, 30 * time.Second},
		{"Interval", &o.Interval, time.Second},
		{"Probe", &o.Probe, 10 * time.Second},
		{"Timeout", &o.Timeout, 10 * time.Second},
	} {
		if *d.of < 0 {
			return o, fmt.Errorf("the %s is %s: it must not be negative", d.name, *d.of)
		}
		*d.of = cmp.Or(*d.of, d.def)
	}
	if slices.Contains(o.Sources, nil) {
		return o, errors.New("a source is nil")
	}
	return o, nil
}

// Fleet is a set of clusters that come, go, and change how they are reached. [New] makes one. All
// methods are safe for concurrent use. None waits for a cluster, but for Close, which waits for
// its goroutines to end.
type Fleet struct {
	options Options
	log     logr.Logger
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	began   time.Time
	loops   keyed.Loops // of runs over all clusters, without a home cluster
	ready   atomic.Bool // it was, with what Readyz asks for

	mu        lockorder.Mutex[lockorder.Fleet]
	sources   []*sourceState // the last one is the program itself
	seats     map[string]*seat
	listeners map[chan struct{}]struct{}
}

// sourceState is what a source has said last.
type sourceState struct {
	source  Source
	name    string
	said    bool // set was called
	members []Member
	err     error // why it does not run
	unfit   error // why a member that it names does not count
}

// trouble is what is wrong with the source, if anything. The fleet's mutex is held.
func (s *sourceState) trouble() error { return cmp.Or(s.err, s.unfit) }

// New makes a fleet and starts its sources. It sends no request itself and does not wait. The
// fleet lives until Close.
func New(o Options) (*Fleet, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("make a fleet: %w", err)
	}
	f := &Fleet{
		options: o, log: o.Logger, began: time.Now(),
		seats: make(map[string]*seat), listeners: make(map[chan struct{}]struct{}),
	}
	f.ctx, f.end = context.WithCancel(context.Background())
	for _, source := range o.Sources {
		f.sources = append(f.sources, &sourceState{source: source, name: source.String()})
	}
	code := byCode{}
	f.sources = append(f.sources, &sourceState{source: code, name: code.String(), said: true})
	for _, s := range f.sources[:len(o.Sources)] {
		f.running.Go(func() { f.runSource(s) })
	}
	return f, nil
}

// Add adds a cluster, or changes how it is reached. The connection is made in the background: see
// [Cluster.Health].
func (f *Fleet) Add(name string, config *rest.Config) error {
	return f.Set(Member{Name: name, Config: config})
}

// Set is Add for a member with labels, or with a client of its own.
func (f *Fleet) Set(m Member) error {
	err := m.check()
	if m.Name == "" {
		err = errors.New("the cluster has no name")
	}
	if err != nil {
		return fmt.Errorf("add a cluster: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return fmt.Errorf("add cluster %q: %w", m.Name, kates.ErrClosed)
	}
	code := f.sources[len(f.sources)-1]
	f.say(code, append(without(code.members, m.Name), m.copy()))
	return nil
}

// Remove removes a cluster that Add or Set has added. It reports whether there was one.
func (f *Fleet) Remove(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	code := f.sources[len(f.sources)-1]
	left := without(code.members, name)
	was := len(left) < len(code.members)
	if was {
		f.say(code, left)
	}
	return was
}

// without returns the members but for one.
func without(all []Member, name string) []Member {
	return slices.DeleteFunc(slices.Clone(all), func(m Member) bool { return m.Name == name })
}

// Clusters returns the clusters by name, in order: all for which there has been a configuration,
// whether they answer or not.
func (f *Fleet) Clusters() []*Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*Cluster
	for _, name := range slices.Sorted(maps.Keys(f.seats)) {
		if c := f.seats[name].cluster; c != nil {
			all = append(all, c)
		}
	}
	return all
}

// Cluster returns the cluster of a name, and nil if there is none now.
func (f *Fleet) Cluster(name string) *Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.seats[name]; s != nil {
		return s.cluster
	}
	return nil
}

// Listen returns a channel that signals when clusters have come or gone, or when their health, or
// the way in which they are reached, has changed. It holds one signal at most: read Clusters then.
// It begins with a signal. stop ends it.
func (f *Fleet) Listen() (changed <-chan struct{}, stop func()) {
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	f.mu.Lock()
	f.listeners[wake] = struct{}{}
	f.mu.Unlock()
	return wake, func() {
		f.mu.Lock()
		delete(f.listeners, wake)
		f.mu.Unlock()
	}
}

// Ready is nil once each source has said which clusters there are. From then on it stays nil. A
// cluster that does not answer is no reason not to be ready.
func (f *Fleet) Ready() error {
	var errs []error
	for _, s := range f.sources {
		f.mu.Lock()
		said, why := s.said, s.trouble()
		f.mu.Unlock()
		if said {
			continue
		}
		if why == nil {
			why = troubleOf(s.source)
		}
		if why == nil {
			why = errors.New("not yet")
		}
		errs = append(errs, fmt.Errorf("%s has not said which clusters there are: %w", s.name, why))
	}
	return errors.Join(errs...)
}

// Close ends everything that was started for the fleet and its clusters, their clients included
// (but for those that [Member.Client] has given), and waits.
func (f *Fleet) Close() {
	f.mu.Lock() // whoever starts something now has started its goroutine, or sees the end
	f.end()
	f.mu.Unlock()
	f.running.Wait()
}

// signal tells the listeners. f.mu is held.
func (f *Fleet) signal() {
	for l := range f.listeners {
		select {
		case l <- struct{}{}:
		default:
		}
	}
}

func (f *Fleet) signalNow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signal()
}

// seated is what is known of a name in the fleet.
type seated struct {
	name    string
	cluster *Cluster // nil: there is no configuration that can be used
	err     error    // why; nil for a moment, until that is known
	since   time.Time
}

// seated returns all names of the fleet, in order. known: each source has said which there are.
func (f *Fleet) seated() (all []seated, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known = !slices.ContainsFunc(f.sources, func(s *sourceState) bool { return !s.said })
	for _, name := range slices.Sorted(maps.Keys(f.seats)) {
		s := f.seats[name]
		all = append(all, seated{name, s.cluster, s.err, s.since})
	}
	return all, known
}
