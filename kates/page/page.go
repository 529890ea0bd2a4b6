package page

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/kates"
)

// Page is the status page: an http.Handler, and an observer of clients. [New] makes one.
type Page struct {
	hosts     map[string]bool
	redact    func(*kates.Unstructured)
	texts     func(string) string
	recent    *recent
	requests  requests
	history   history
	ctx       context.Context // ends with Close
	end       context.CancelFunc
	sampling  sync.WaitGroup
	somebody  chan struct{} // looks
	snapshots int

	mu     lockorder.Mutex[lockorder.StatusPage]
	joined []*member
	fleets []*fleet.Fleet
	graphs []derive.Any
}

// An Option says what a page is about.
type Option func(*Page)

// Fleet has the page say how the clusters and the sources of a fleet are doing. Its clients are
// given the page by [kates.WithObserver] among the fleet's options.
func (p *Page) Fleet(f *fleet.Fleet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fleets = append(p.fleets, f)
}

// Snapshots sets how many of the last snapshots the page remembers. Default: 100.
func Snapshots(n int) Option {
	return func(p *Page) { p.snapshots = max(0, n) }
}

// Redact has a function hide more than Secrets' data. It is given a copy of each object before the
// object is shown, and removes or replaces what nobody may see. What it has hidden is then looked
// for in the rest of the object (in annotations, say), and hidden there, too. An object for which
// it panics is not shown. It is called by several goroutines at a time.
//
// Texts of errors may quote objects, and so may the keys of a graph's entries ([Page.Derived]). With
// Redact they are left out, but for those of refusals and missing kinds: give [RedactText] to have
// them.
func Redact(hide func(*kates.Unstructured)) Option {
	return func(p *Page) { p.redact = hide }
}

// RedactText has a function change each text of an error before it is shown. The library's own
// errors quote no Secret; those of the program's functions say what the program wants.
func RedactText(change func(string) string) Option {
	return func(p *Page) { p.texts = change }
}

// Hosts adds names by which the page may be asked for: "status.example.com". Addresses, localhost
// and names without a dot are always right. Others are refused, because a page of another site
// could have its own name point to this program (DNS rebinding). "*" stands for all names: for a
// handler that authenticates by more than being reachable.
func Hosts(names ...string) Option {
	return func(p *Page) {
		for _, n := range names {
			p.hosts[strings.ToLower(n)] = true
		}
	}
}

// New makes a page. It is about the clients that have it as an observer ([kates.WithObserver]),
// each from its beginning until it is closed. It samples them until Close.
func New(options ...Option) *Page {
	p := &Page{hosts: map[string]bool{}, snapshots: 100, somebody: make(chan struct{}, 1)}
	for _, o := range options {
		if o != nil {
			o(p)
		}
	}
	p.recent = newRecent(p.snapshots)
	p.ctx, p.end = context.WithCancel(context.Background())
	p.sampling.Go(p.sample)
	return p
}

// Close ends what the page does beside its requests, and waits for that. The clients go on.
func (p *Page) Close() {
	p.end()
	p.sampling.Wait()
}

// How often the page samples, and for how long after somebody has looked it does so often.
const (
	idleEvery    = 10 * time.Second
	watchedEvery = time.Second
	watchedFor   = 2 * time.Minute
)

// sample takes samples until Close. It is the page's only goroutine.
func (p *Page) sample() {
	var looked time.Time
	for {
		p.takeSample(time.Now())
		every := idleEvery
		if !looked.IsZero() && time.Since(looked) < watchedFor {
			every = watchedEvery
		}
		next := time.NewTimer(every)
		for waits := true; waits; {
			select {
			case <-p.ctx.Done():
				next.Stop()
				return
			case <-p.somebody:
				waits = every == watchedEvery
				looked = time.Now()
			case <-next.C:
				waits = false
			}
		}
		next.Stop()
	}
}

// isLooked notes that somebody looks.
func (p *Page) isLooked() {
	select {
	case p.somebody <- struct{}{}:
	default:
	}
}
