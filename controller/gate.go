package controller

import (
	"context"

	"github.com/kates-go/kates/kates"
)

// gate says which keys are this replica's: what sharding puts between the turns and the reconciler.
type gate interface {
	// enter is asked before each reconcile of a key, by several goroutines, without locks. It is false if the key is not this replica's
	// now: the turn is dropped then. Else inner is the reconcile's context, made of ctx, which the gate may cancel when the key is lost; leave
	// is called when the reconcile has returned.
	enter(ctx context.Context, key string) (inner context.Context, leave func(), ok bool)
	// run lasts from when the first snapshot is complete until the last reconcile has returned: then ctx ends. It calls changed when keys
	// have become this replica's: all keys have a turn then. Where it returns before ctx ends, that ends the controller: reconciles'
	// contexts are cancelled, and Run returns its error.
	run(ctx context.Context, client *kates.Client, changed func()) error
}
