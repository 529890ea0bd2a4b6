// Package seam is what package kates has for package controller and for nobody else: a controller's struct type and options,
// read as those of kates.RunEach are, and the watch that they make. Package kates fills the functions in when it is initialized;
// values of its types pass as any.
package seam

import (
	"context"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
)

var (
	// New reads a controller's type and options (a *kates.Client, []kates.RunOption) as far as that is possible without asking
	// the server. A field of the special type is no query.
	New func(client any, name string, t, special reflect.Type, options any) (*Plan, error)
	// Option returns a kates.RunOption that is package controller's own.
	Option func(name string, value any) any
)

// Plan is a controller that does not run.
type Plan struct {
	Workers int // 0: not said
	Own     []any
	Elected bool   // it stands for election
	Shards  Shards // nil: all keys are this replica's
	Log     logr.Logger
	Special []int // the special field
	Root    []int // the root's
	// Open starts the watch. Its end is that of ctx, or Close.
	Open func(ctx context.Context) (Watch, error)
	// Listen starts to listen to the other triggers. What it returns ends that, and waits.
	Listen func(ctx context.Context, poke func()) (stop func())
	// Ended returns the result of a run. What was missing, if it has had no snapshot, is logged, unless the result says it.
	Ended func(missing, result error) error
	// Tries are the calls for one key: logged, and told.
	Tries func(key string) Tries
}

// Shards say which keys are this replica's.
type Shards interface {
	// Enter begins the work for a key, by several goroutines, without locks. It is false if the key is not this replica's now: the turn is dropped
	// then, and there is another one when it is. Else inner is the work's context, made of ctx, which ends when the key is lost; leave is called when
	// the work has ended.
	Enter(ctx context.Context, key string) (inner context.Context, leave func(), ok bool)
	// Run lasts from when the first snapshot is complete until the last work has ended: then ctx ends. Where it returns before, with an error, the
	// keys are not this replica's any more.
	Run(ctx context.Context, keys Keys) error
}

// Keys are those that are divided.
type Keys interface {
	Keys() []string // in order
	Activate(keys ...string)
	// Sync returns when what turns are made of is as new as the server was at the call.
	Sync(ctx context.Context) error
}

// Tries are the calls of a function for one key. They are used by who holds it.
type Tries interface {
	// Call calls f, with a panic as an error. It returns when to try again, if f has failed, and what ends the tries: an error that
	// is permanent, or the end of ctx.
	Call(ctx context.Context, f func() error) (again time.Duration, end error)
	// Failed returns how many calls have failed in a row, and the error of the last one.
	Failed() (attempts int, err error)
}

// Watch hands out turns by the keys of roots.
type Watch interface {
	Keys
	ActivateAll()
	Next(ctx context.Context) (*Turn, error)
	Ready() error
	Status() any // a kates.Status
	// Complete returns when there is a first snapshot.
	Complete(ctx context.Context) error
	// Lead calls loop, when elected if that is wanted, with a context that ends with ctx or the lease, and one that ends with the lease alone.
	Lead(ctx context.Context, loop func(ctx, lease context.Context) error) error
	// Selective: the root may leave the query though it exists.
	Selective() bool
	Close()
}

// Turn is the time of one key.
type Turn struct {
	Key string
	// Struct is a controller's, addressable, but for the root and the special field. It has the objects that the root owns.
	Struct reflect.Value
	// Root is what the query shows, nil if there is none; UID is that of the object that there is, "" if there is none; Unread, if it is one that
	// cannot be shown.
	Root   accumulator.Object
	UID    types.UID
	Unread error

	// Context is the one for what is done in the turn, made of ctx. It is called when the turn begins.
	Context func(ctx context.Context) context.Context
	// OwnedBy gives the struct the objects that are controlled by that UID in place of the root's.
	OwnedBy func(uid types.UID)
	// Done, Again and Keep are those of an accumulator.Turn.
	Done  func(err error)
	Again func(after time.Duration)
	Keep  func()
	// Drop is Done of a turn that the function was not called for: its deltas are the next one's too, while there is the key.
	Drop func()
}
