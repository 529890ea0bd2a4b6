// Package loops is the heart of the gateway: three calls of kates.Run, each with snapshots of its
// own. Two of them, on each replica, make nginx's configuration, and send it the endpoints. The
// third, on the leader alone, writes what objects are told about it. Beside them one loop asks
// whether nginx still runs, and one follows other clusters, if there are any. Start with
// [Gateway.Run].
package loops

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// Gateway is one replica. Its fields are set before Run, and not changed after that.
type Gateway struct {
	Client  *kates.Client
	Nginx   Nginx
	Reports Reports
	Logger  *slog.Logger
	// Queries are those of translate.Queries.
	Queries []kates.Query
	// Translate has what snapshots do not say. Now, Refused, Remote, ReportsOnly and Machine.Taken
	// are filled in here, and Published gets the addresses of PublishService.
	Translate translate.Options
	// PublishService is the Service whose addresses statuses show, beside Translate.Published.
	// Empty: none.
	PublishService types.NamespacedName
	// Lease decides which replica writes the reports.
	Lease kates.LeaderElection
	// Clusters are others whose endpoints are served, too. nil: there are none.
	Clusters *fleet.Fleet

	wakes     wakes
	refusals  refusals
	ports     ports
	upstreams upstreams
	remote    remote
	serving   atomic.Bool

	// Each loop has a Translator of its own.
	configuration, reports translate.Translator
}

// wakes has a channel for each loop that others wake. It holds one value.
type wakes struct {
	// configure: nginx has died (from watchNginx). Where nginx takes no endpoints without a reload,
	// also: those of other clusters have changed (from watchClusters).
	configure chan struct{}
	// push: other upstreams serve (from runConfigure), or endpoints of other clusters have changed
	// (from watchClusters).
	push chan struct{}
	// report: nginx has refused an object, has accepted one that it had refused or that is gone,
	// cannot listen somewhere, or can again, or serves for the first time (from runConfigure).
	report chan struct{}
}

func newWakes() wakes {
	return wakes{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
}

// wake has the loop at the other end run once more.
func wake(loop chan struct{}) {
	select {
	case loop <- struct{}{}:
	default: // it will run anyway
	}
}

// Nginx is a *nginx.Nginx, or what a test has in its place.
type Nginx interface {
	Apply(context.Context, *nginx.Config) (nginx.Outcome, error)
	Try(context.Context, *nginx.Config) (refused []nginx.Refusal, takesRest bool, err error)
	Push(ctx context.Context, upstreams map[string][]string) (int, error)
	Pushes() bool
	Alive() bool
}

// Reports is a *report.Writer, or what a test has in its place.
type Reports interface {
	Write(context.Context, *translate.Desired) error
}

// Times of the loops.
const (
	configureInterval = time.Second // nginx is reloaded as often as that, at most
	endpointsInterval = 50 * time.Millisecond
	reportInterval    = time.Second
	aliveInterval     = time.Second
	takenInterval     = 10 * time.Second // whoever has a port may have given it back
	startInterval     = 5 * time.Second
	hangs             = 10 * time.Minute // a configuration that takes so long never ends
	// Certificates expire though nothing changes.
	expiryInterval = time.Hour
	// While nginx cannot be reached, or the disk is full, a loop waits for the next try.
	firstPause, longestPause = 100 * time.Millisecond, 2 * time.Second
)

// Run serves until ctx ends. Then the Lease is released. nginx serves on until the caller closes
// it: main does so when the program ends.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	g.init()
	loops := []func() error{
		func() error { return g.patient(ctx, func() error { return g.runConfigure(ctx) }) },
		func() error { return g.patient(ctx, func() error { return g.runReport(ctx) }) },
		func() error { return g.watchNginx(ctx) },
	}
	if g.Nginx.Pushes() {
		loops = append(loops, func() error { return g.patient(ctx, func() error { return g.runEndpoints(ctx) }) })
	}
	if g.Clusters != nil {
		loops = append(loops, func() error { return g.watchClusters(ctx) })
	}
	errs := make([]error, len(loops))
	var running sync.WaitGroup
	for i, loop := range loops {
		running.Go(func() {
			defer end() // with one loop all of them end
			errs[i] = loop()
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (g *Gateway) init() {
	g.wakes = newWakes()
	g.refusals.init()
	g.remote.init()
}

// patient starts a loop again that could not start, because the API server does not answer. An
// nginx that runs serves on. None is started before there is a snapshot.
func (g *Gateway) patient(ctx context.Context, loop func() error) error {
	for {
		err := loop()
		if !errors.Is(err, kates.ErrIncompleteDiscovery) {
			return err
		}
		g.Logger.Warn("waiting for the API server", slog.Any("error", err))
		if pause(ctx, startInterval); ctx.Err() != nil {
			return nil
		}
	}
}

// Serving reports whether a complete configuration has been active. It never takes that back.
func (g *Gateway) Serving() bool { return g.serving.Load() }

// runConfigure runs on each replica. The first snapshot is complete, and other clusters are waited
// for, half a minute at most, so nginx gets no half configuration from a gateway that starts.
func (g *Gateway) runConfigure(ctx context.Context) error {
	if g.Clusters != nil {
		select {
		case <-g.remote.known:
		case <-ctx.Done():
			return nil
		}
	}
	options := []kates.RunOption{
		kates.WithName("configuration"), kates.WithInterval(configureInterval),
		kates.WithBackoff(firstPause, longestPause), kates.WithUnhealthyAfter(hangs), kates.WithTriggers(g.wakes.configure),
	}
	if g.Nginx.Pushes() {
		options = append(options, g.queries("Slices")...) // runEndpoints sends them
	} else {
		options = append(options, g.queries()...)
	}
	return kates.Run(ctx, g.Client, g.configure, options...)
}

// configure makes nginx serve what a snapshot says.
func (g *Gateway) configure(ctx context.Context, snap *translate.Snapshot) error {
	for {
		o, again := g.translateOptions(snap), g.ports.due()
		if again {
			o.Machine.Taken = nil
		}
		desired, err := g.configuration.Translate(snap, o)
		if err != nil {
			return err
		}
		g.upstreams.add(&desired.Config) // so that endpoints are sent while Apply loads it
		outcome, err := g.Nginx.Apply(ctx, &desired.Config)
		switch {
		case err != nil:
			return err // another try, with the newest snapshot
		case len(outcome.Refused) > 0:
			if err := g.refusals.refuse(snap, outcome); err != nil {
				return err
			}
			wake(g.wakes.report)
			continue // with the last good versions in place of those
		case len(outcome.Taken) > 0:
			if err := g.cannotListen(outcome.Taken, again); err != nil {
				return err
			}
			continue // without what is served there
		case outcome.Again > 0:
			return kates.Again(outcome.Again) // its last start or try was less than a second ago
		}
		g.upstreams.keepOnly(&desired.Config)
		wake(g.wakes.push) // some may have changed before they were added
		healed := g.refusals.accept(snap)
		healed = again && g.ports.free() || healed
		if first := !g.serving.Swap(true); first || healed {
			wake(g.wakes.report)
		}
		tried, err := g.tryHeld(ctx, snap)
		if err != nil {
			return err
		}
		if outcome.Reloaded {
			// Apply takes no other one before. What changes meanwhile is in the next snapshot.
			pause(ctx, configureInterval)
		}
		switch {
		case tried:
			return kates.Again(configureInterval)
		case len(g.ports.now()) > 0:
			return kates.Again(takenInterval)
		}
		return nil
	}
}

// tryHeld finds a few of the objects at fault in a namespace that is held, or the end of that. It
// is called between two configurations, so others wait no longer than that takes.
func (g *Gateway) tryHeld(ctx context.Context, snap *translate.Snapshot) (tried bool, err error) {
	namespace := g.refusals.turn()
	if namespace == "" {
		return false, nil
	}
	o := g.translateOptions(snap)
	o.Refused = g.refusals.inForce(snap, namespace)
	desired, err := g.configuration.Translate(snap, o)
	if err != nil {
		return false, err
	}
	refused, takesRest, err := g.Nginx.Try(ctx, &desired.Config)
	if err != nil {
		return false, err
	}
	if g.refusals.tried(snap, namespace, refused, takesRest) {
		wake(g.wakes.report)
	}
	return true, nil
}

// cannotListen notes where nginx cannot listen. all: it has tried all that objects ask for.
func (g *Gateway) cannotListen(taken []nginx.Taken, all bool) error {
	changed, err := g.ports.setTaken(taken, all)
	if changed {
		g.Logger.Error("nginx cannot listen everywhere: what is served there is left out", slog.Any("because", taken))
		wake(g.wakes.report)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// runReport runs on the leader. One that loses the lease waits for it again.
func (g *Gateway) runReport(ctx context.Context) error {
	expiry := time.NewTicker(expiryInterval)
	defer expiry.Stop()
	for {
		err := kates.Run(ctx, g.Client, g.report, append(g.reportQueries(), g.Lease,
			kates.WithName("reports"), kates.WithInterval(reportInterval), kates.WithQuietOwnWrites(),
			kates.WithTriggers(g.wakes.report), kates.WithTriggers(expiry.C))...)
		if !errors.Is(err, kates.ErrLeadershipLost) {
			return err
		}
	}
}

// report tells objects what has become of them. Its snapshot is its own: it has all that the
// former leader wrote. Nothing is reported before something is served. About an object that nginx
// has refused, and that was changed since, nothing new is reported until nginx has judged it.
func (g *Gateway) report(ctx context.Context, snap *translate.Snapshot) error {
	if !g.Serving() {
		return nil // called again when that changes
	}
	o := g.translateOptions(snap)
	o.ReportsOnly = true
	desired, err := g.reports.Translate(snap, o)
	if err != nil {
		return err
	}
	pending := g.refusals.pending(snap)
	for i, r := range desired.Reports {
		desired.Reports[i].Pending = pending[r.Object.GetUID()]
	}
	return g.Reports.Write(ctx, desired)
}

// watchNginx has the configuration applied again when nginx has died: then Apply starts it, or
// waits for who does.
func (g *Gateway) watchNginx(ctx context.Context) error {
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if g.Serving() && !g.Nginx.Alive() {
			wake(g.wakes.configure)
		}
	}
}

// queries are those of a loop. It has the objects of the quiet ones, too, but their changes do not
// wake it.
func (g *Gateway) queries(quiet ...string) (options []kates.RunOption) {
	for _, q := range g.Queries {
		if slices.Contains(quiet, q.Name) {
			q.Signal = kates.SignalOf(func(_, _ metav1.Object) bool { return false })
		}
		options = append(options, q)
	}
	return options
}

// reportQueries are those of the reports. Of EndpointSlices they need only those with endpoints
// that are left out: all others are none of a report.
func (g *Gateway) reportQueries() (options []kates.RunOption) {
	leftOut := g.Translate.LeavesOut
	for _, q := range g.Queries {
		if q.Name == "Slices" {
			q.Signal = kates.SignalOf(func(old, current *discoveryv1.EndpointSlice) bool { return leftOut(old) || leftOut(current) })
		}
		options = append(options, q)
	}
	return options
}

// translateOptions are those of Translate, with what changes.
func (g *Gateway) translateOptions(snap *translate.Snapshot) translate.Options {
	o := g.Translate
	o.Now = time.Now()
	o.Refused = g.refusals.inForce(snap, "")
	o.Machine.Taken = g.ports.now()
	o.Remote = g.remote.endpoints()
	for _, service := range snap.Services {
		if service.Namespace != g.PublishService.Namespace || service.Name != g.PublishService.Name {
			continue
		}
		o.Published = append([]string{}, o.Published...)
		for _, i := range service.Status.LoadBalancer.Ingress {
			if i.Hostname != "" {
				o.Published = append(o.Published, i.Hostname)
			} else {
				o.Published = append(o.Published, i.IP)
			}
		}
	}
	return o
}
