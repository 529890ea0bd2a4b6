package shards

import (
	"context"
	"errors"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/loops/lease"
)

// Config says which group a replica joins, and has the functions that the replica calls.
type Config struct {
	lease.Settings
	Group string
	// Watch shows the Leases in the namespace that have [Label] with the group's name. It never
	// goes back, and has no own writes laid over it.
	Watch Watch
	// By is the field by whose hashes replicas divide the keys. Empty: they divide them by name.
	By string
	// Hash is the place of a key among the hashes of By. Loads are how many objects the replica has,
	// by their hashes, in order. Both are nil without By. Hash is called with the replica's lock
	// held.
	Hash  func(name string) uint64
	Loads func() []shardrange.Load
	// Keys are the names of all keys that there are, and Streams says in words what the inputs of
	// the work bring, for the status; nil: nobody wants to know. They are called without locks.
	Keys    func() []string
	Streams func() string
	// Bring returns when the inputs of the work have all objects whose hashes are in the ranges; nil:
	// they have all objects. CatchUp returns when they are as new as the server was at the call.
	Bring   func(ctx context.Context, need shardrange.Ranges) error
	CatchUp func(ctx context.Context) error
	// Moved is called when the replica may have got keys, or may have lost some.
	Moved func()
}

// Watch is a watch of Leases.
type Watch interface {
	// Changed is signalled when there may be something new.
	Changed() <-chan struct{}
	// Leases are all Leases as they are now. known is false before the first list.
	Leases(context.Context) (leases []*coordinationv1.Lease, known bool, err error)
}

// Complete fills in the defaults and reports what is wrong.
func (c *Config) Complete() error {
	if c.Group == "" {
		return errors.New("a group of shards: it has no Name")
	}
	if wrong := validation.IsDNS1123Label(c.Group); len(wrong) > 0 {
		return fmt.Errorf("the Name of a group of shards, %q: %s", c.Group, strings.Join(wrong, "; "))
	}
	return c.Settings.Complete()
}
