package lease

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
)

// Resource is the resource of Leases.
var Resource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// jitterFactor is client-go's JitterFactor: candidates spread their tries by it.
const jitterFactor = 1.2

// Settings say who writes a Lease, where and how often. Elections and shards share them. The
// durations are those of client-go's LeaderElectionConfig.
type Settings struct {
	Client    dynamic.Interface
	Namespace string
	// Server names the API server, the same in all clients of it, as far as that is known.
	Server string
	// Identity is filled in by TakeIdentity. OwnIdentity says that it did: then this process, or a
	// copy of it, wrote everything that was ever written under it. Written tells which.
	Identity      string
	OwnIdentity   bool
	Written       *Written
	FieldManager  string
	LeaseDuration time.Duration // default 15 s
	RenewDeadline time.Duration // default 10 s
	RetryPeriod   time.Duration // default 2 s
	Logger        logr.Logger
	Report        *Report // nil: nobody asks
}

// Config says which Lease a candidate stands for, and how.
type Config struct {
	Settings
	Name    string
	Release bool // the Lease, when a leader resigns
	// Changed is told of the status when it has changed, until Resign returns. It may be nil.
	Changed func(Status)
}

// Complete fills in the defaults and reports what is wrong.
func (c *Config) Complete() error {
	if c.Name == "" {
		return errors.New("a lease: it has no Name")
	}
	if wrong := validation.IsDNS1123Subdomain(c.Name); len(wrong) > 0 {
		return fmt.Errorf("the Name of a lease, %q: %s", c.Name, strings.Join(wrong, "; "))
	}
	return c.Settings.Complete()
}

// Complete fills in the defaults and reports what is wrong.
func (s *Settings) Complete() error {
	s.LeaseDuration = cmp.Or(s.LeaseDuration, 15*time.Second)
	s.RenewDeadline = cmp.Or(s.RenewDeadline, 10*time.Second)
	s.RetryPeriod = cmp.Or(s.RetryPeriod, 2*time.Second)
	if wrong := validation.IsDNS1123Label(s.Namespace); len(wrong) > 0 {
		return fmt.Errorf("the Namespace of a lease, %q: %s", s.Namespace, strings.Join(wrong, "; "))
	}
	switch {
	case s.LeaseDuration < time.Second || s.LeaseDuration%time.Second != 0:
		return fmt.Errorf("LeaseDuration is %s: it must be whole seconds, as a Lease has it", s.LeaseDuration)
	case s.LeaseDuration > math.MaxInt32*time.Second:
		return fmt.Errorf("LeaseDuration is %s: a Lease has %d seconds at most", s.LeaseDuration, math.MaxInt32)
	case s.RetryPeriod <= 0:
		return fmt.Errorf("RetryPeriod is %s: it must be positive", s.RetryPeriod)
	case s.RenewDeadline >= s.LeaseDuration:
		return fmt.Errorf("RenewDeadline (%s) must be less than LeaseDuration (%s)", s.RenewDeadline, s.LeaseDuration)
	case float64(s.RenewDeadline) <= jitterFactor*float64(s.RetryPeriod):
		return fmt.Errorf("RenewDeadline (%s) must be more than %v times RetryPeriod (%s)",
			s.RenewDeadline, jitterFactor, s.RetryPeriod)
	}
	return nil
}
