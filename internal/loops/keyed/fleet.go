package keyed

import (
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// FleetPlan is what the options of a run over many clusters say, as package kates has read them.
// Option is its RunOption, and Query its Query.
type FleetPlan[Option, Query any] struct {
	Config  // of the whole run: Election and Report are about a home cluster
	Queries []Query
	Watched bool // there are options of watches
	Keyed   bool // there are options of runs with keys
	// OfCluster returns the options of the run of one cluster.
	OfCluster func(OfCluster) []Option
}

// OfCluster says how the run of one cluster differs from one that stands alone.
type OfCluster struct {
	// Known are the keys that the function was called with, in earlier runs too. The function notes
	// them itself; the run removes those that are gone.
	Known *Known
	Grace *Grace // of the whole run; nil: the contexts of calls end with that of the run
	OfKey func(key string, err error) error
	Log   logr.Logger
}

// Known are the keys that a function was called with, and that are not gone: there may be output
// of theirs. It outlives the runs that note keys in it. The zero value is empty. One goroutine at
// a time has a key.
type Known struct{ keys sync.Map }

// Keys returns them, in order. It is called while no run notes any.
func (k *Known) Keys() (all []string) {
	if k == nil {
		return nil
	}
	k.keys.Range(func(key, _ any) bool {
		all = append(all, key.(string))
		return true
	})
	slices.Sort(all)
	return all
}

// Called notes that the function is about to be called with a key.
func (k *Known) Called(key string) { k.keys.Store(key, nil) }

// Gone notes that the function has returned no error for a key that is gone.
func (k *Known) Gone(key string) {
	if k != nil {
		k.keys.Delete(key)
	}
}
