package reflector

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/engine/source"
)

// Sink is what a reflector fills. The reflector's goroutine calls it, and Progress any.
type Sink interface {
	// NewList starts the next list. The one before is dropped.
	NewList(Asked) List
	// Apply takes in an event of the watch. An error ends the watch.
	Apply(source.Event) error
	// Progress is how far the sink has come.
	Progress() Progress
	// Opened says that a watch is open that goes on from a version. A list that was streamed goes
	// on as a watch without a word.
	Opened(fromRV string)
	// Unheard says that the last watch brought nothing, and failed or ended at once: that it was
	// opened does not mean that the server was heard.
	Unheard()
	// Failed says that a request has failed. The reflector tries again.
	Failed(what Request, err error)
	// Gone says that there is certainly nothing left to watch. The reflector tries again.
	Gone(why error)
}

// List is a list on its way into a sink.
type List interface {
	// Put takes in an item of a list, which comes once.
	Put(item runtime.Object) error
	// Apply takes in an initial event of a watch, which may be about an object that came before.
	// It returns the version of the list when the event is the bookmark that ends the list.
	Apply(source.Event) (rv string, err error)
	// Commit puts the whole list in the place of what the sink has. [ErrOlder]: the list is older
	// than what the sink has had.
	Commit(rv string) error
	// Drop gives up the list, unless it was committed.
	Drop()
}

// Progress is how far a sink has come.
type Progress struct {
	PositionRV string // up to which the sink is complete, "" before the first list
	FloorRV    string // that no list may be older than
	Owed       bool   // something waits for a version that the watch has not shown
}

// Asked is what was known when a list was asked for.
type Asked struct {
	FloorRV string // the newest version that the sink, or an own write, had had
	Doubted bool   // the server's newest version was older: the list may begin a new history
}

// ErrOlder is a server whose newest state is older than what it has shown. If it insists, it was
// restored from a backup.
var ErrOlder = errors.New("the server's newest version is older than what it has shown before")

// Request is what a reflector was doing when something failed.
type Request string

// The requests of a reflector.
const (
	ToList   Request = "list"
	ToWatch  Request = "watch"
	ToResume Request = "resume the watch"
)

// First is a first list that does not come from the server.
type First interface {
	// Load begins a list with begin, and fills it up to a version.
	Load(ctx context.Context, asked Asked, begin func(Asked) List) (list List, rv string, err error)
	// Loaded is called with the error of Load, or of the list's Commit. It reports whether Load is
	// worth another try, should the list from the server fail as well.
	Loaded(ctx context.Context, err error) (again bool)
}
