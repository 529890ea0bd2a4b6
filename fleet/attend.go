package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/kates"
)

// seat is the place of a cluster in the fleet, by name. The fleet's mutex guards its fields.
type seat struct {
	name   string
	ctx    context.Context // ends when the name leaves the fleet
	leave  context.CancelFunc
	wanted Member
	from   *sourceState  // the source of wanted
	news   chan struct{} // the wanted member has changed
	// cluster that has the name now; nil before there is a configuration.
	cluster *Cluster
	err     error // why there is no cluster
	since   time.Time
}

func newSeat(ctx context.Context, m Member) *seat {
	s := &seat{name: m.Name, wanted: m, news: make(chan struct{}, 1), since: time.Now()}
	s.ctx, s.leave = context.WithCancel(ctx)
	return s
}

// want changes what the seat is for. If a source says the same again, that is no news.
func (s *seat) want(m Member) {
	same := m.same(s.wanted)
	s.wanted = m
	if same {
		return
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// attendant looks after one seat: it makes the client, asks whether the cluster still answers, and
// moves it to another connection. It is one goroutine, and waits for nobody else's.
type attendant struct {
	fleet    *Fleet
	seat     *seat
	used     Member // how the present cluster is reached
	failures int    // of probes, in a row
	refusals int    // of rotations, in a row
}

func (a *attendant) run() {
	defer a.drop(nil)
	for a.seat.ctx.Err() == nil {
		pause := a.step()
		select {
		case <-time.After(pause):
		case <-a.seat.news:
			a.refusals = 0
		case <-a.seat.ctx.Done():
		}
	}
}

// step does what is due, and returns how long to wait before the next one.
func (a *attendant) step() time.Duration {
	f := a.fleet
	f.mu.Lock()
	wanted, c := a.seat.wanted, a.seat.cluster
	f.mu.Unlock()
	pause := f.options.Probe - rand.N(f.options.Probe/4+1)
	if err := a.move(c, wanted); err != nil {
		a.refusals++
		a.refuse(c, err)
		pause = min(pause, retries.After(a.refusals))
	} else {
		a.refusals = 0
	}
	if c = a.cluster(); c != nil && !a.probe(c) {
		pause = min(pause, retries.After(a.failures))
	}
	return pause
}

// cluster returns that of the seat. Only this goroutine changes it.
func (a *attendant) cluster() *Cluster {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	return a.seat.cluster
}

// move makes the wanted member the one in use.
func (a *attendant) move(c *Cluster, wanted Member) error {
	if err := wanted.check(); err != nil {
		return err
	}
	if c == nil {
		return a.replace(wanted)
	}
	if !wanted.sameConnection(a.used) {
		if err := a.rotate(c, wanted); err != nil {
			return err
		}
	}
	a.used = wanted
	a.describe(wanted)
	return nil
}

// describe takes over the member's labels, and notes that the newest configuration is in use.
func (a *attendant) describe(m Member) {
	f, c := a.fleet, a.cluster()
	c.mu.Lock()
	c.labels = m.Labels
	c.mu.Unlock()
	if c.change(func(h *Health) { h.Rotation = "" }) {
		f.signalNow()
	}
}

// rotate moves a cluster to another connection. If another cluster answers there, it takes the
// name.
func (a *attendant) rotate(c *Cluster, wanted Member) error {
	if wanted.Client != nil || a.used.Client != nil || c.Health().Heard.IsZero() {
		return a.replace(wanted) // a cluster that has never answered has no history
	}
	ctx, cancel := context.WithTimeout(a.seat.ctx, 3*a.fleet.options.Timeout)
	defer cancel()
	err := c.client.Reconnect(ctx, wanted.Config)
	if errors.Is(err, kates.ErrOtherCluster) {
		return a.replace(wanted)
	}
	if err == nil {
		a.fleet.log.Info("a cluster is reached by its new configuration", "cluster", c.name)
		c.reach(wanted.Config)
		a.fleet.signalNow()
	}
	return err
}

// refuse notes why the wanted member is not in use.
func (a *attendant) refuse(c *Cluster, err error) {
	f := a.fleet
	if a.seat.ctx.Err() != nil {
		return
	}
	news := false
	if c != nil {
		news = c.change(func(h *Health) { h.Rotation = err.Error() })
	} else {
		f.mu.Lock()
		news = a.seat.err == nil || a.seat.err.Error() != err.Error()
		a.seat.err = err
		f.mu.Unlock()
	}
	if news {
		f.signalNow()
	}
	if news && a.refusals <= 1 { // later texts differ in a port, or a time
		f.log.Error(err, "a cluster's configuration does not work", "cluster", a.seat.name, "goesOn", c != nil)
	}
}

// replace gives the name to a cluster with a history of its own.
func (a *attendant) replace(m Member) error {
	client := m.Client
	if client == nil {
		var err error
		options := append(slices.Clone(a.fleet.options.Client), kates.WithClusterName(m.Name))
		if client, err = kates.NewClientFromRESTConfig(m.Config, options...); err != nil {
			return err
		}
	}
	c := &Cluster{
		name: m.Name, client: client, owned: m.Client == nil, labels: m.Labels,
		health: Health{Phase: Connecting, Since: time.Now()},
	}
	if m.Config != nil {
		c.reach(m.Config)
	}
	c.ctx, c.leave = context.WithCancel(a.seat.ctx)
	a.used, a.failures = m, 0
	a.drop(c)
	return nil
}

// drop ends the present cluster, and puts another one in its place, or none.
func (a *attendant) drop(next *Cluster) {
	f := a.fleet
	f.mu.Lock()
	old := a.seat.cluster
	a.seat.cluster, a.seat.err = next, nil
	f.signal()
	f.mu.Unlock()
	if old == nil {
		return
	}
	if next != nil {
		f.log.Info("another cluster has taken a name: its history begins", "cluster", old.name, "former", old.UID())
	}
	old.leave()
	if old.owned {
		old.client.Close()
	}
}

// probe asks the cluster whether it answers and is still the same. It reports whether it answered.
func (a *attendant) probe(c *Cluster) bool {
	f := a.fleet
	ctx, cancel := context.WithTimeout(a.seat.ctx, f.options.Timeout)
	defer cancel()
	uid, err := c.client.ClusterUID(ctx)
	if a.seat.ctx.Err() != nil {
		return true
	}
	if err != nil && !isAnswer(err) {
		a.failures++
		was := c.Health().Phase
		if c.failed(err, a.failures > 1) {
			f.signalNow()
		}
		if h := c.Health(); h.Phase != was {
			f.log.Error(err, "a cluster does not answer", "cluster", c.name, "since", h.Since)
		}
		return false
	}
	a.failures = 0
	if known := c.identify(uid); known != uid && uid != "" {
		if err := a.replace(a.used); err != nil {
			a.refuse(c, fmt.Errorf("the cluster is another one (%s, and was %s): %w", uid, known, err))
			return true
		}
		// Not the cluster of the name: that may have left and come again meanwhile, with another
		// seat.
		c = a.cluster()
		c.identify(uid) // it has answered
	}
	was := c.Health().Phase
	if c.answered(time.Now()) {
		f.signalNow()
	}
	if was != Up {
		f.log.Info("a cluster answers", "cluster", c.name)
		if others := f.alike(c); len(others) > 0 {
			f.log.Info("another cluster has the same UID", "cluster", c.name, "others", strings.Join(others, ", "))
		}
	}
	return true
}

// alike returns the names of the other clusters with the UID of a cluster.
func (f *Fleet) alike(c *Cluster) (names []string) {
	f.mu.Lock()
	var others []*Cluster
	for _, seat := range f.seats {
		if seat.cluster != nil && seat.cluster != c {
			others = append(others, seat.cluster)
		}
	}
	f.mu.Unlock()
	for _, other := range others {
		if uid := c.UID(); uid != "" && other.UID() == uid {
			names = append(names, other.name)
		}
	}
	slices.Sort(names)
	return names
}

// isAnswer reports whether an error is an answer of a server that works and accepts the
// credentials.
func isAnswer(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsTooManyRequests(err)
}
