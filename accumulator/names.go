package accumulator

import "github.com/kates-go/kates/accumulator/stream"

// These are the words of package stream for queries.
type (
	// Key names an object within a resource.
	Key = stream.Key
	// Object is an object as a stream holds it. It is shared: nobody writes to it.
	Object = stream.Object
	// Resource is a resource of the API, as the streams watch it.
	Resource = stream.Resource
	// FieldReader reads the fields of one resource.
	FieldReader = stream.FieldReader
	// Selection narrows a query; nil selects everything.
	Selection = stream.Selection
	// Form is how objects are held.
	Form = stream.Form
	// Transform changes an object before it is held.
	Transform = stream.Transform
	// Signal decides whether a change is worth a signal.
	Signal = stream.Signal
	// State says how a query's watch stands.
	State = stream.State
)

// The forms of objects.
const (
	Whole    = stream.Whole
	Metadata = stream.Metadata
	Typed    = stream.Typed
)

// The states of a query.
const (
	Waiting   = stream.Waiting
	Listing   = stream.Listing
	Synced    = stream.Synced
	Retrying  = stream.Retrying
	Forbidden = stream.Forbidden
	Missing   = stream.Missing
)

// ErrClosed is the cause of an end by Close.
var ErrClosed = stream.ErrClosed
