package kates

import (
	"fmt"
	"time"
)

// Tuning is an option of a client: how its streams work. Zero is the default of each field, and
// good for most programs. A client may be given several; of each field the last value that is not
// zero counts. A negative value is an error.
//
//	client, err := kates.NewClient(config, kates.Tuning{Linger: time.Minute, CompressedLists: true})
type Tuning struct {
	// Linger is how long a stream runs on after its last user has left, so that another one finds
	// it. Default: it ends at once.
	Linger time.Duration
	// IdleTimeout is how long a watch may bring nothing before the connection counts as dead.
	// Servers send a bookmark about every minute. Then the server is asked for its newest version,
	// and the watch is opened again. This bounds how long a half-open connection, or a cluster
	// that was restored from a backup, stays unnoticed. Default: 130 s.
	IdleTimeout time.Duration
	// KindPoll is how often the client looks for an optional kind that is not served. Default: 2
	// s.
	KindPoll time.Duration
	// PendingWrites is how many own writes are held for a stream that does not show them yet. Past
	// the limit the stream lists again. Default: 10,000.
	PendingWrites int
	// Lists says how first lists are fetched.
	Lists ListMode
	// PageSize is the number of objects in a page, of lists that come in pages. By default the
	// first page of a list has 500, and the others about 4 MiB, by the size of the objects that
	// have come: 50 to 5,000 objects. A list that comes slowly keeps to pages of 500, and so does
	// the list after one that has failed.
	PageSize int64
	// MaxObjectBytes bounds the memory that one object may take while it is read: an object of a
	// list, or an event of a watch, as it comes over the wire, and decompressed. A larger one is
	// an error of its query; what is shown stays. A server stores objects of a few megabytes at
	// most, and their JSON may be several times as long. It also bounds every other answer that is
	// read as a whole: an object that is read or written, or an error. All answers of discovery
	// together may have a quarter of MaxObjectBytes, but at least 1 MiB. Of that, discovery may
	// have one group or version for each KiB, and one resource for each 128 bytes. The server's
	// version may have a quarter of MaxObjectBytes, and so may each OpenAPI document. A page of a
	// list may have as many bytes as PageSize objects (500 at least, 5,000 by default). All objects
	// that are held whole because they are [Invalid] may have MaxObjectBytes together. Default: 64
	// MiB.
	MaxObjectBytes int64
	// CompressedLists lets the server compress large answers, above all lists, as it does for
	// client-go's clients that do not stream their lists. An answer has a few times fewer bytes. A
	// list takes a fifth more CPU here, and a multiple of that at the server. It pays over a slow
	// network. Default: nothing is compressed.
	CompressedLists bool
	// UntypedStreams watches everything as untyped objects, and converts them to the types of the
	// snapshots' fields when they are shown. So does a client that is made from a
	// dynamic.Interface. It takes several times the CPU and the memory. Default: objects of fields
	// whose Go type the scheme knows are decoded directly from the wire.
	UntypedStreams bool
	// ShareWider lets a query read from a running watch of this client that has more objects. The
	// query then needs no watch of its own: less memory, and fewer requests. The watch has all
	// objects of the kind in the query's namespace, or in all namespaces; in the form that the
	// query wants, or in any if the query wants metadata alone; and neither Where nor Transform.
	// It has its first list, and no error. The query narrows it by namespace, labels,
	// metadata.name and metadata.namespace, which can be judged here, in AnyOf, too. Other fields
	// need a watch of their own, and what [Query.Refs] names has watches of its own. One watch
	// serves 64 such queries at most; each namespace of [Query.Namespaces] counts as one.
	//
	// The watch goes on as long as one of these queries runs, with everything that it holds, and
	// an error of it is one of theirs. Start the widest watches first: a running query keeps the
	// watch that it has. In the status the form of such a query ends in "of a wider watch".
	// Default: a query lists and watches what it selects, and nothing else.
	ShareWider bool
}

// defaultMaxObjectBytes is above what a server can hold: it takes requests of 3 MiB, and JSON may
// write six bytes for one.
const defaultMaxObjectBytes = 64 << 20

// ListMode is how first lists are fetched, see [Tuning]. All modes are consistent. Pages cost the
// server and the client less CPU. For untyped objects, streams save the client the memory of a
// page.
type ListMode string

const (
	// AutomaticLists, the default: lists for fields of Go types that the scheme knows come in
	// pages, decoded one object at a time, and all others are streamed.
	AutomaticLists ListMode = ""
	// PagedLists come in pages.
	PagedLists ListMode = "paged"
	// StreamedLists come as a stream of events (KEP-3157), where the server has that.
	StreamedLists ListMode = "streamed"
)

func (t Tuning) applyToClient(s *settings) {
	least0(&s.refusal, "Tuning.Linger", t.Linger, "ends a stream at once")
	least0(&s.refusal, "Tuning.IdleTimeout", t.IdleTimeout, "is the default, 130s")
	least0(&s.refusal, "Tuning.KindPoll", t.KindPoll, "is the default, 2s")
	least0(&s.refusal, "Tuning.PendingWrites", t.PendingWrites, "is the default, 10,000")
	least0(&s.refusal, "Tuning.PageSize", t.PageSize, "is the default, pages of about 4 MiB")
	least0(&s.refusal, "Tuning.MaxObjectBytes", t.MaxObjectBytes, "is the default, 64 MiB")
	set(&s.streams.Grace, t.Linger)
	set(&s.streams.IdleTimeout, t.IdleTimeout)
	set(&s.streams.KindPoll, t.KindPoll)
	set(&s.streams.PendingMax, t.PendingWrites)
	set(&s.streams.PageSize, t.PageSize)
	set(&s.maxObjectBytes, t.MaxObjectBytes)
	set(&s.streams.OriginalsMax, t.MaxObjectBytes)
	set(&s.compressed, t.CompressedLists)
	set(&s.untyped, t.UntypedStreams)
	set(&s.streams.Share, t.ShareWider)
	switch t.Lists {
	case PagedLists:
		s.streams.StreamLists, s.streamLists = false, false
	case StreamedLists:
		s.streams.StreamLists, s.streamLists = true, true
	case AutomaticLists:
	default:
		s.reject(fmt.Errorf("Tuning.Lists is %q: there are AutomaticLists, PagedLists and StreamedLists", string(t.Lists)))
	}
}

// set sets a field to a value that is not zero.
func set[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}
