package multicluster

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/kates-go/kates/fleet"
)

// Source is a source of a fleet: the clusters that a provider of multicluster-runtime engages. Of
// a cluster only its configuration is used, so the provider may be told to make clusters that
// cache nothing. [NewSource] makes one.
//
// Providers do not say when they have engaged all clusters that they know, and take a cluster away
// and bring it back when its credentials change. So the source first speaks when nothing has been
// engaged for a second, and a cluster that is disengaged leaves the fleet after [Linger], unless
// it is engaged again until then. If a provider fails, its clusters stay.
type Source struct {
	name     string
	provider multicluster.ProviderRunnable
	changed  chan struct{}

	mu       sync.Mutex
	engaged  map[string]*engaged
	versions int
}

// engaged is a cluster that a provider has engaged.
type engaged struct {
	config  *rest.Config
	version int
	ctx     context.Context // ends when the cluster is disengaged
	gone    time.Time       // when that was, or zero
}

const (
	// Linger is how long a cluster that is disengaged stays in the fleet.
	Linger = 10 * time.Second
	// settle is how long nothing may be engaged before the source speaks first.
	settle = time.Second
)

var (
	_ fleet.Source       = (*Source)(nil)
	_ multicluster.Aware = (*Source)(nil)
)

// NewSource makes a source of a provider. The fleet runs the provider.
//
// For a provider that a manager of multicluster-runtime runs, or that engages clusters with one,
// the provider here is nil. Add the source to that manager then (Manager.Add), so that it is told.
func NewSource(name string, provider multicluster.ProviderRunnable) *Source {
	return &Source{name: name, provider: provider, changed: make(chan struct{}, 1), engaged: make(map[string]*engaged)}
}

// String implements [fleet.Source].
func (s *Source) String() string { return s.name }

// Start does nothing until ctx ends. It is there so that the source can be added to a manager.
func (s *Source) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Engage implements [multicluster.Aware].
func (s *Source) Engage(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
	config := c.GetConfig()
	if config == nil {
		return errors.New("the cluster has no configuration")
	}
	s.mu.Lock()
	before := s.engaged[name.String()]
	now := &engaged{config: config, ctx: ctx}
	if before != nil && (before.config == config || reflect.DeepEqual(before.config, config)) {
		now.version = before.version
	} else {
		s.versions++
		now.version = s.versions
	}
	s.engaged[name.String()] = now
	s.mu.Unlock()
	s.wake()
	context.AfterFunc(ctx, s.wake)
	return nil
}

func (s *Source) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run implements [fleet.Source].
func (s *Source) Run(ctx context.Context, set func([]fleet.Member)) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { s.follow(ctx, set) })
	if s.provider == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	err := s.provider.Start(ctx, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = errors.New("the provider has ended")
	}
	return err
}

// follow says what is engaged, until ctx ends.
func (s *Source) follow(ctx context.Context, set func([]fleet.Member)) {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	var last []fleet.Member
	for said := false; ; {
		select {
		case <-s.changed:
			if !said {
				timer.Reset(settle)
				continue
			}
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		all, next := s.members(time.Now())
		if ctx.Err() != nil {
			return // the clusters may be gone because of that
		}
		if !said || !reflect.DeepEqual(last, all) {
			set(all)
			said, last = true, all
		}
		timer.Stop()
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// members returns the members, and when to look again, or 0.
func (s *Source) members(now time.Time) (all []fleet.Member, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.engaged)) {
		e := s.engaged[name]
		if e.ctx.Err() != nil {
			if e.gone.IsZero() {
				e.gone = now
			}
			left := Linger - now.Sub(e.gone)
			if left <= 0 {
				delete(s.engaged, name)
				continue
			}
			if next == 0 || left < next {
				next = left
			}
		}
		all = append(all, fleet.Member{Name: name, Config: e.config, Version: s.name + "/" + strconv.Itoa(e.version)})
	}
	return all, next
}
