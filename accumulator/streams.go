package accumulator

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/coherence"
)

// Config is what all streams of a client have in common.
type Config struct {
	// Source lists and watches.
	Source Source
	// ByContent: the server is a fake that neither maintains versions nor judges
	// selectors. See "Objects without usable versions" in package coherence.
	ByContent bool
	// StreamLists asks for the initial list as a stream of events (KEP-3157) instead
	// of pages.
	StreamLists bool
	// PageSize of lists, 0 for client-go's default of 500.
	PageSize int64
	// PendingMax caps the own writes that a stream holds; past it the stream lists
	// again. Default 10,000.
	PendingMax int
	// Hold bounds how long a write that versions cannot confirm is shown. Default 10 s.
	Hold time.Duration
	// IdleTimeout is how long a watch may bring nothing, not even a bookmark, before the server
	// is asked how far it is and the watch opened anew. Servers send a bookmark about every
	// minute. Default 130 s.
	IdleTimeout time.Duration
	// Gone is asked when a list or watch was answered with err (404, or 403 in a namespace): whether it
	// is certain that there is nothing left to watch, because complete, fresh discovery serves the resource in no
	// version, or because the namespace does not exist. Nil: it never is.
	Gone func(ctx context.Context, r Resource, namespace string, err error) bool
	// Suspect is called, from any stream's goroutine, when a watch has been silent for IdleTimeout, or
	// a request was not answered in time, before the next request: connections that wait for
	// one may be dead too, and each would cost a time-out. It closes them. It may be nil.
	Suspect func()
	// KindPoll is how often a kind that is not served, or that may not be read, is looked for. Default 2 s.
	KindPoll time.Duration
	// Grace is how long a stream outlives its last user. Default 0.
	Grace time.Duration
	// Logger gets each transition of a stream once: as an error, if a first snapshot waits for it, or if the server refuses or does not
	// serve what is not optional; else as information. The zero Logger discards.
	Logger logr.Logger
	// points is called at each point that is reached. Only tests set it.
	points func(moment)
}

// Streams are the list+watches of one client: one per distinct resource, namespace,
// selectors, form and transform, shared by every accumulator that asks, and the journal of the
// client's own writes. It is safe for concurrent use.
type Streams struct {
	config Config
	ctx    context.Context // the client's life, which Close ends
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu           sync.Mutex
	closed       bool
	journal      coherence.Journal
	streams      map[streamKey]*stream
	accumulators map[*Accumulator]struct{}
}

// NewStreams returns streams that run until Close.
func NewStreams(c Config) *Streams {
	if c.PendingMax <= 0 {
		c.PendingMax = 10_000
	}
	if c.Hold <= 0 {
		c.Hold = 10 * time.Second
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = 130 * time.Second
	}
	if c.KindPoll <= 0 {
		c.KindPoll = 2 * time.Second
	}
	if c.Suspect == nil {
		c.Suspect = func() {}
	}
	if c.Logger.GetSink() == nil {
		c.Logger = logr.Discard()
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Streams{
		config: c, ctx: ctx, cancel: cancel,
		streams:      make(map[streamKey]*stream),
		accumulators: make(map[*Accumulator]struct{}),
	}
}

// Close ends every accumulator and every stream, and waits until their goroutines
// are gone.
func (s *Streams) Close() {
	s.mu.Lock()
	s.closed = true
	var open []*Accumulator
	for a := range s.accumulators {
		open = append(open, a)
	}
	s.mu.Unlock()
	for _, a := range open {
		a.Close()
	}
	s.cancel()
	s.tasks.Wait()
}

// subscribe joins the stream for the query, starting it if it is the first to ask.
func (s *Streams) subscribe(r Resource, q Watched, l listener) (*subscription, error) {
	namespace := q.Namespace
	if !r.Namespaced {
		namespace = ""
	}
	key := streamKey{
		resource:  r.GroupVersion().String() + "/" + r.GroupVersionResource.Resource,
		namespace: namespace, labels: q.labelSelector(), fields: q.fieldSelector(),
		form: q.Form, transform: pointerOf(q.Transform),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	st, begun := s.streams[key], true
	if st == nil {
		st, begun = newStream(s, key, r, q), false
		s.streams[key] = st
	}
	st.users++
	sub := st.join(l)
	if !begun { // now that it is known who asks
		ctx, cancel := context.WithCancel(s.ctx)
		st.stop = cancel
		s.tasks.Go(func() {
			st.feed.run(ctx)
			st.end()
		})
	}
	return sub, nil
}

// release gives up one use of the stream; the last one ends it. Counting and removing are
// one step, so that nobody is handed a stream that has ended.
func (s *Streams) release(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.users--; st.users > 0 {
		return
	}
	if s.config.Grace <= 0 || s.closed {
		s.drop(st)
		return
	}
	st.left++
	left := st.left
	s.tasks.Go(func() {
		sleep(s.ctx, s.config.Grace)
		s.mu.Lock()
		defer s.mu.Unlock()
		if st.users == 0 && st.left == left { // nobody has come and gone meanwhile
			s.drop(st)
		}
	})
}

// drop ends a stream that nobody uses. Called with mu held.
func (s *Streams) drop(st *stream) {
	if s.streams[st.key] == st {
		delete(s.streams, st.key)
		st.stop()
	}
}

// floor is the version below which no list of the resource may be.
func (s *Streams) floor(storage string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.Floor(storage)
}

// restored notes that a stream's resource has started a new history: the cluster came
// back from a backup.
func (s *Streams) restored(st *stream, version string) {
	s.mu.Lock()
	s.journal.Lower(st.resource.Storage)
	s.mu.Unlock()
	s.config.Logger.Error(nil, "the server's history went back: restored from a backup? starting anew",
		"resource", st.key.resource, "version", version)
}

// of returns the streams over one stored resource.
func (s *Streams) of(storage string) (found []*stream) {
	for _, st := range s.streams {
		if st.resource.Storage == storage {
			found = append(found, st)
		}
	}
	return found
}

// Shares reports whether o is an object, as such or converted, that a stream or a
// snapshot shares with its readers.
func (s *Streams) Shares(o any) bool {
	s.mu.Lock()
	var all []*stream
	for _, st := range s.streams {
		all = append(all, st)
	}
	var readers []*Accumulator
	for a := range s.accumulators {
		readers = append(readers, a)
	}
	s.mu.Unlock()
	for _, st := range all {
		if st.holds(o) {
			return true
		}
	}
	for _, a := range readers {
		if a.holds(o) {
			return true
		}
	}
	return false
}

// holds reports whether the stream shows this very object.
func (s *stream) holds(o any) bool {
	obj, ok := o.(Object)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	return s.store[key] == obj || s.read(key) == obj
}

// Accumulators returns the ones that are open, in no particular order.
func (s *Streams) Accumulators() []*Accumulator {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := make([]*Accumulator, 0, len(s.accumulators))
	for a := range s.accumulators {
		open = append(open, a)
	}
	return open
}
