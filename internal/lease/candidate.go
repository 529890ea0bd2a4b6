package election

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/internal/fence"
)

// Resource is that of leases.
var Resource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Config says which lease is stood for, and how. Its durations are those of client-go's LeaderElectionConfig.
type Config struct {
	Client          dynamic.Interface
	Namespace, Name string
	Identity        string // default: the host's name and a UUID
	FieldManager    string
	LeaseDuration   time.Duration // default 15 s
	RenewDeadline   time.Duration // default 10 s
	RetryPeriod     time.Duration // default 2 s
	Release         bool          // when a leader resigns
	Logger          logr.Logger
}

// Complete fills defaults in, and reports what is wrong.
func (c *Config) Complete() error {
	if c.LeaseDuration == 0 {
		c.LeaseDuration = 15 * time.Second
	}
	if c.RenewDeadline == 0 {
		c.RenewDeadline = 10 * time.Second
	}
	if c.RetryPeriod == 0 {
		c.RetryPeriod = 2 * time.Second
	}
	if c.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("an identity: %w", err)
		}
		c.Identity = host + "_" + string(uuid.NewUUID())
	}
	if wrong := validation.IsDNS1123Subdomain(c.Name); len(wrong) > 0 {
		return fmt.Errorf("the Name of a lease, %q: %s", c.Name, strings.Join(wrong, "; "))
	}
	if wrong := validation.IsDNS1123Label(c.Namespace); len(wrong) > 0 {
		return fmt.Errorf("the Namespace of a lease, %q: %s", c.Namespace, strings.Join(wrong, "; "))
	}
	switch {
	case c.LeaseDuration < time.Second || c.LeaseDuration%time.Second != 0:
		return fmt.Errorf("LeaseDuration is %s: it must be whole seconds, as a Lease has it", c.LeaseDuration)
	case c.RetryPeriod <= 0:
		return fmt.Errorf("RetryPeriod is %s: it must be positive", c.RetryPeriod)
	case c.RenewDeadline >= c.LeaseDuration:
		return fmt.Errorf("RenewDeadline (%s) must be less than LeaseDuration (%s)", c.RenewDeadline, c.LeaseDuration)
	case float64(c.RenewDeadline) <= leaderelection.JitterFactor*float64(c.RetryPeriod):
		return fmt.Errorf("RenewDeadline (%s) must be more than %v times RetryPeriod (%s)", c.RenewDeadline, leaderelection.JitterFactor, c.RetryPeriod)
	}
	return nil
}

// Candidate stands for a lease. It has one goroutine, which ends when the candidate resigns or has lost.
// All methods may be called from anywhere.
type Candidate struct {
	config   Config
	lock     *lock
	cancel   context.CancelFunc
	finished chan struct{} // the goroutine
	elected  chan struct{}
	lost     chan struct{}

	mu       sync.Mutex
	leads    bool
	err      error // why it lost
	resigned bool
	sent     time.Time   // the request that renewed the lease last
	expiry   *time.Timer // of the lease, from then on
}

// Stand makes a candidate, who stands until [Candidate.Resign]. The context's values are used, its end is not: work that ends
// with it needs its lease to the end.
func Stand(ctx context.Context, config Config) (*Candidate, error) {
	if err := config.Complete(); err != nil {
		return nil, err
	}
	c := &Candidate{
		config: config, finished: make(chan struct{}),
		elected: make(chan struct{}), lost: make(chan struct{}),
	}
	c.lock = &lock{
		leases: config.Client.Resource(Resource).Namespace(config.Namespace), config: config,
		timeout: max(time.Second, config.RenewDeadline/2), candidate: c, failed: map[bool]error{},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.lock, Name: config.Name,
		LeaseDuration: config.LeaseDuration, RenewDeadline: config.RenewDeadline, RetryPeriod: config.RetryPeriod,
		// Both are told by the lock: these come late, or in a goroutine of their own.
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go func() {
		defer close(c.finished)
		elector.Run(klog.NewContext(life, logr.Discard())) // the lock logs, each transition once
		c.lose(fmt.Errorf("it could not be renewed within %s: %w", config.RenewDeadline, c.lock.lastError()))
	}()
	return c, nil
}

// Elected is closed when the candidate leads.
func (c *Candidate) Elected() <-chan struct{} { return c.elected }

// Lost is closed when a candidate who led does so no more, though it has not resigned. It will not stand again.
func (c *Candidate) Lost() <-chan struct{} { return c.lost }

// Err says why a candidate has lost.
func (c *Candidate) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Resign ends the candidature, waits until nothing of it runs, and releases the lease, if that is configured and
// the candidate leads. It takes no longer than the renew deadline. What the lease protects must have ended before.
func (c *Candidate) Resign() {
	c.mu.Lock()
	again := c.resigned
	c.resigned = true
	if c.expiry != nil {
		c.expiry.Stop()
	}
	release := c.config.Release && c.err == nil && !again
	c.mu.Unlock()
	c.cancel()
	<-c.finished
	if release {
		c.lock.release()
	}
}

// renewed notes that the lease is the candidate's since a request that was sent at that time.
func (c *Candidate) renewed(sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resigned || c.err != nil {
		return
	}
	c.sent = sent
	left := c.config.LeaseDuration - fence.Since(sent)
	if !c.leads {
		c.leads = true
		c.expiry = time.AfterFunc(left, func() {
			c.lose(c.expired())
		})
		close(c.elected)
		c.config.Logger.Info("leading", "lease", c.lock.Describe(), "identity", c.config.Identity)
		return
	}
	c.expiry.Reset(left)
}

// lose ends the leadership of a candidate who leads and has not resigned.
func (c *Candidate) lose(why error) {
	c.mu.Lock()
	if !c.leads || c.resigned || c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = fmt.Errorf("lease %s: %w", c.lock.Describe(), why)
	c.expiry.Stop()
	close(c.lost)
	c.mu.Unlock()
	c.cancel()
	c.config.Logger.Info("leading no more", "lease", c.lock.Describe(), "identity", c.config.Identity, "error", why.Error())
}

// Held is nil as long as the lease is the candidate's, by the clocks and not by what its goroutines have come to: a process that was stopped
// may ask before any of its timers has run. Otherwise the error is an [ErrLost], and the lease is lost, if it was not given up.
func (c *Candidate) Held() error {
	c.mu.Lock()
	led, resigned, sent, err := c.leads, c.resigned, c.sent, c.err
	c.mu.Unlock()
	switch {
	case err != nil:
	case !led:
		err = fmt.Errorf("lease %s: it was never held", c.lock.Describe())
	case resigned:
		err = fmt.Errorf("lease %s: it was given up", c.lock.Describe())
	case fence.Since(sent) < c.config.LeaseDuration:
		return nil
	default:
		c.lose(c.expired())
		err = fmt.Errorf("lease %s: %w", c.lock.Describe(), c.expired())
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

func (c *Candidate) expired() error {
	return fmt.Errorf("it has not been renewed for %s", c.config.LeaseDuration)
}

// leading reports whether the candidate leads.
func (c *Candidate) leading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leads && c.err == nil
}

// errUnknown is where no request has failed: there was no time for one.
var errUnknown = errors.New("no request has been made")
