package shards

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/election"
)

// Config says of which group a replica is to be. Its durations are those of an election (package election).
type Config struct {
	Client           dynamic.Interface
	Namespace, Group string
	Identity         string // default: the host's name and a UUID
	FieldManager     string
	LeaseDuration    time.Duration // default 15 s
	RenewDeadline    time.Duration // default 10 s
	RetryPeriod      time.Duration // default 2 s
	Logger           logr.Logger
	// Watch shows the Leases in the namespace with [Label] and the group's name. What it shows never goes back, and without own writes laid over it.
	Watch Watch
	// CatchUp returns when what the keys' work is made of is as new as the server was at the call.
	CatchUp func(context.Context) error
	// Moved is called when keys may have become, or may no longer be, the replica's.
	Moved func()
}

// Watch is a watch of Leases.
type Watch interface {
	// Changed is signalled when there may be something new.
	Changed() <-chan struct{}
	// Leases are all, as they are now; false if they are not known yet.
	Leases(context.Context) ([]*coordinationv1.Lease, bool, error)
}

// Complete fills defaults in, and reports what is wrong.
func (c *Config) Complete() error {
	if wrong := validation.IsDNS1123Label(c.Group); len(wrong) > 0 {
		return fmt.Errorf("the Name of a group of shards, %q: %s", c.Group, strings.Join(wrong, "; "))
	}
	e := election.Config{
		Namespace: c.Namespace, Name: c.Group, Identity: c.Identity,
		LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod,
	}
	if err := e.Complete(); err != nil {
		return err
	}
	c.Identity, c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = e.Identity, e.LeaseDuration, e.RenewDeadline, e.RetryPeriod
	return nil
}

// timeout is of one request: there is time for another one before the Lease is lost.
func (c *Config) timeout() time.Duration { return c.RenewDeadline / 2 }
