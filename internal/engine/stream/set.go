package stream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// ErrClosed is the cause of an end by Close.
var ErrClosed = errors.New("closed")

// Set is the streams of one client: one per distinct resource, namespace, selectors, form and
// transform, shared by everyone who asks, and the journal of the client's own writes. It is safe
// for concurrent use.
type Set struct {
	config Config
	ctx    context.Context // the client's life, which Close ends
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	unversioned atomic.Int64 // how many deletions had no version, see progress.noteUnversioned
	saver       *warm.Saver  // nil: nothing is kept for the next process
	room        *store.Room
	working     watchdog.Open // own writes that streams take in

	mu      lockorder.Mutex[lockorder.StreamSet]
	closed  bool
	journal coherence.Journal
	streams map[intake.Key]*stream
	users   map[User]struct{}
	ended   map[intake.Key]*stream // that the saver has not written yet
}

// User is who reads streams of a set for longer than a call.
type User interface {
	// Close ends the user and waits until nothing of it runs any more.
	Close()
	// Shares reports whether o is an object, as such or converted, that the user shares with its
	// readers.
	Shares(o any) bool
}

// use is how many listeners a stream has. The set's lock guards it.
type use struct {
	listeners int
	left      int    // how often the last one has left
	stop      func() // ends the stream; nil until it is started
}

// New returns a set without streams that lasts until Close.
func New(c Config) *Set {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Set{
		config: c.withDefaults(), ctx: ctx, cancel: cancel, room: store.NewRoom(c.ObjectsMax),
		streams: make(map[intake.Key]*stream),
		users:   make(map[User]struct{}),
		ended:   make(map[intake.Key]*stream),
	}
	if s.saver = warm.NewSaver(s.config.Warm, s.config.Logger, s.toSave); s.saver != nil {
		s.tasks.Go(func() { s.saver.Run(ctx) })
	}
	return s
}

// Config returns the set's configuration, with its defaults filled in.
func (s *Set) Config() *Config { return &s.config }

// Logger is the set's.
func (s *Set) Logger() logr.Logger { return s.config.Logger }

// Enter adds a user, which Close will end. After Close it is ErrClosed.
func (s *Set) Enter(u User) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.users[u] = struct{}{}
	return nil
}

// Leave removes a user.
func (s *Set) Leave(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, u)
}

// Users returns those that have entered and not left, in no particular order.
func (s *Set) Users() []User {
	s.mu.Lock()
	defer s.mu.Unlock()
	users := make([]User, 0, len(s.users))
	for u := range s.users {
		users = append(users, u)
	}
	return users
}

// Close ends every user and every stream, and waits until their goroutines are gone. What is kept
// for the next process is written then, for some seconds at most.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	defer s.saver.Closing()()
	for _, u := range s.Users() {
		u.Close()
	}
	s.cancel()
	s.tasks.Wait()
	s.saver.Last()
}

// Join adds a listener to the stream of a Spec, or, with [Config].Share, to one that has more. It
// starts the stream for the first one.
func (s *Set) Join(r object.Resource, spec object.Spec, o ListenOptions) (*Listener, error) {
	if err := object.Unjudged(r, spec); err != nil {
		return nil, err
	}
	key := intake.KeyOf(r, spec)
	s.mu.Lock()
	defer s.mu.Unlock()
	st, part := s.streams[key], (*audience.Part)(nil)
	if st == nil && !s.closed {
		st, part = s.wider(r, spec, key, o)
	}
	if st == nil && !s.closed {
		s.mu.Unlock() // the configuration's function is not called under a lock
		fresh := newStream(s, intake.New(r, spec, key, s.config.Source))
		s.mu.Lock()
		if st = s.streams[key]; st == nil { // nobody else has added it meanwhile
			st = fresh
		}
	}
	if s.closed {
		return nil, ErrClosed
	}
	s.streams[st.Key] = st
	st.use.listeners++
	l := st.join(key, part, o)
	if st.use.stop == nil { // started last: it is known by now who listens
		ctx, cancel := context.WithCancel(s.ctx)
		st.use.stop = cancel
		s.tasks.Go(func() {
			st.reflector.Run(ctx)
			st.end()
		})
	}
	return l, nil
}

// release gives up one use of a stream; the last one ends it. Counting and removing are one step,
// so that nobody gets a stream that has ended.
func (s *Set) release(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.use.listeners--; st.use.listeners > 0 {
		return
	}
	if s.config.Grace <= 0 || s.closed {
		s.drop(st)
		return
	}
	st.use.left++
	left := st.use.left
	s.tasks.Go(func() {
		source.Sleep(s.ctx, s.config.Grace)
		s.mu.Lock()
		defer s.mu.Unlock()
		if st.use.listeners == 0 && st.use.left == left { // nobody has come and gone meanwhile
			s.drop(st)
		}
	})
}

// drop ends a stream that nobody uses. Called with mu held.
func (s *Set) drop(st *stream) {
	if s.streams[st.Key] == st {
		delete(s.streams, st.Key)
		st.use.stop()
		if st.kept.Keepable() {
			s.ended[st.Key] = st
		}
	}
}

// toSave returns the streams that can be kept: those that run, and those that have ended since the
// call before, unless they run again.
func (s *Set) toSave() (running, ended []*warm.Keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if st.kept.Keepable() {
			running = append(running, st.kept)
		}
	}
	for key, st := range s.ended {
		if s.streams[key] == nil {
			ended = append(ended, st.kept)
		}
	}
	clear(s.ended)
	return running, ended
}

// floor is the version of the newest own write to a resource: no list may be older.
func (s *Set) floor(storage string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.Floor(storage)
}

// restored notes that a stream's resource has started a new history: the cluster was restored from
// a backup.
func (s *Set) restored(st *stream, rv string) {
	s.mu.Lock()
	s.journal.Lower(st.Resource.Storage)
	s.mu.Unlock()
	s.wentBack(st, rv)
}

func (s *Set) wentBack(st *stream, rv string) {
	s.config.Logger.Error(nil, "the server's history went back: restored from a backup? starting anew",
		"resource", st.Key.Resource, "version", rv)
}

// WentBack notes that the listener's stream has begun in a history that lacks what another stream
// of the same resource has shown, at a version.
func (l *Listener) WentBack(rv string) { l.stream.set.wentBack(l.stream, rv) }

// all returns every stream.
func (s *Set) all() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*stream, 0, len(s.streams))
	for _, st := range s.streams {
		all = append(all, st)
	}
	return all
}

// over returns the streams over one stored resource. Called with mu held.
func (s *Set) over(storage string) (found []*stream) {
	for _, st := range s.streams {
		if st.Resource.Storage == storage {
			found = append(found, st)
		}
	}
	return found
}

// Len is the number of streams that run.
func (s *Set) Len() int { return len(s.all()) }

// Shares reports whether o is an object, as such or converted, that a stream or a user shares with
// its readers.
func (s *Set) Shares(o any) bool {
	if obj, ok := o.(object.Object); ok {
		for _, st := range s.all() {
			if e := st.entry(object.KeyOf(obj)); e.stored == obj || e.shown == obj {
				return true
			}
		}
	}
	for _, u := range s.Users() {
		if u.Shares(o) {
			return true
		}
	}
	return false
}

// Horizon returns, for each stored resource that is watched, the newest version that a watch has
// shown or an own write was answered with. Whatever happens to an object later has a newer one.
func (s *Set) Horizon() map[string]string {
	s.mu.Lock()
	streams := make([]*stream, 0, len(s.streams))
	newest := make(map[string]string)
	for _, st := range s.streams {
		streams = append(streams, st)
		newest[st.Resource.Storage] = s.journal.Floor(st.Resource.Storage)
	}
	s.mu.Unlock()
	for _, st := range streams {
		st.mu.Lock()
		position := st.store.View.Position()
		st.mu.Unlock()
		newest[st.Resource.Storage] = coherence.Newest(newest[st.Resource.Storage], position)
	}
	return newest
}
