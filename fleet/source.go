package fleet

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/kates"
)

// A Source says which clusters there are, and how to reach them.
type Source interface {
	// Run calls set with all members of the source: once at first, also if there are none, and
	// again whenever something about them has changed. It returns when ctx ends, or with an error.
	// After an error the fleet keeps the members and runs the source again, after a pause. What is
	// wrong while Run goes on is for a method Err() error: if a source has one, status shows it.
	//
	// A member that is not among those of the latest call leaves the fleet. So a source that cannot
	// find out for certain (its own cluster is down, a file is half written) does not call set, or
	// names the member with an Err.
	Run(ctx context.Context, set func([]Member)) error
	// String names the source in status and logs.
	String() string
}

// Member is what a [Source] says of a cluster.
type Member struct {
	// Name of the cluster. It is unique within the fleet.
	Name string
	// Config says how to reach the cluster. The fleet copies it.
	Config *rest.Config
	// Version tells configurations apart: two of the same Version are equal. If it is empty, the
	// configurations themselves are compared, and one with functions equals no other.
	Version string
	// Client, in place of a Config, is a client that the program has made: a fake, for example. The
	// fleet does not close it.
	Client *kates.Client
	// Labels describe the cluster.
	Labels map[string]string
	// Err says why there is no configuration: it does not parse, or names what the source does not
	// allow. A cluster that has joined before goes on as it is.
	Err error
}

// troubleOf returns what a source that runs says is wrong, if it says such things. No lock is
// held.
func troubleOf(s Source) error {
	if s, ok := s.(interface{ Err() error }); ok {
		return guard.Named("the source's Err panicked", s.Err)
	}
	return nil
}

// sameConnection reports whether a cluster is reached in the same way as before.
func (m Member) sameConnection(other Member) bool {
	switch {
	case m.Client != nil || other.Client != nil:
		return m.Client == other.Client
	case m.Version != "" || other.Version != "":
		return m.Version == other.Version
	default:
		return reflect.DeepEqual(m.Config, other.Config)
	}
}

// same reports whether a source has said the same of a cluster before.
func (m Member) same(before Member) bool {
	return textOf(m.Err) == textOf(before.Err) && maps.Equal(m.Labels, before.Labels) && m.sameConnection(before)
}

// copy returns a member that shares nothing with what the source goes on to change.
func (m Member) copy() Member {
	m.Labels = maps.Clone(m.Labels)
	if m.Config != nil {
		m.Config = rest.CopyConfig(m.Config)
	}
	return m
}

// check returns what is wrong with a member, if anything.
func (m Member) check() error {
	switch {
	case m.Err != nil:
		return m.Err
	case m.Config == nil && m.Client == nil:
		return fmt.Errorf("cluster %q has neither a configuration nor a client", m.Name)
	case m.Config != nil && m.Client != nil:
		return fmt.Errorf("cluster %q has both a configuration and a client: give one", m.Name)
	}
	return nil
}
