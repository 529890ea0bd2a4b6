// Package core is what every request of a client rests on: the value of a caller becomes a
// [Subject], whose kind, path and namespace are as the server has them now, and which is read from
// the server or from what the streams show.
//
// In come values of callers, kinds and specs of lists. Out come subjects, objects, and errors that
// name them, without the content of Secrets. The package never writes an object, and it knows no
// options of writes and no queries of users.
package core

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/streamset"
)

// Core has the parts of a client that its requests need. The fields do not change. It is safe for
// concurrent use.
type Core struct {
	Dynamic dynamic.Interface
	Server  wire.Requests
	// Fake gives versions to what client-go's bare fake has. Nil: the server is a real one. Neither
	// the bare fake nor a user sees these versions, so no version can be a precondition. The bare
	// fake ignores field selectors, finalizers and subresources, and knows no server-side apply.
	Fake         *fake.Server
	Kinds        *kinds.Resolver
	Scheme       *runtime.Scheme
	Namespace    string // of objects that name none
	FieldManager string
	Log          logr.Logger
	Streams      *streamset.Set
	Applied      applied.Memory
}
