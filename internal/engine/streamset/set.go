package streamset

import (
	"context"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// Set is the streams of one client: one per distinct resource, namespace, selectors, form and
// transform, shared by everyone who asks, and the journal of the client's own writes. It is safe
// for concurrent use.
type Set struct {
	shared stream.Shared
	ctx    context.Context // the client's life, which Close ends
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	saver   *warm.Saver   // nil: nothing is kept for the next process
	working watchdog.Open // own writes that streams take in

	mu       lockorder.Mutex[lockorder.StreamSet]
	closed   bool
	journal  coherence.Journal
	underWay underWay
	streams  map[intake.Key]*member
	users    map[User]struct{}
	ended    map[intake.Key]*stream.Stream // that the saver has not written yet
}

// member is a stream of a set. The set's lock guards what is not the stream's own.
type member struct {
	*stream.Stream
	listeners int
	left      int    // how often the last one has left
	stop      func() // ends the stream; nil until it is started
}

// User is who reads streams of a set for longer than a call.
type User interface {
	// Close ends the user and waits until nothing of it runs any more.
	Close()
	// Shares reports whether o is an object, as such or converted, that the user shares with its
	// readers.
	Shares(o any) bool
}

// New returns a set without streams that lasts until Close.
func New(c stream.Config) *Set {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Set{
		ctx: ctx, cancel: cancel,
		underWay: make(underWay),
		streams:  make(map[intake.Key]*member),
		users:    make(map[User]struct{}),
		ended:    make(map[intake.Key]*stream.Stream),
	}
	s.shared.Config, s.shared.Room, s.shared.Owner = c.WithDefaults(), store.NewRoom(c.ObjectsMax), owner{s}
	s.shared.Originals = intake.NewBudget(s.shared.OriginalsMax)
	if s.saver = warm.NewSaver(s.Config().Warm, s.Logger(), s.toSave); s.saver != nil {
		s.tasks.Go(func() { s.saver.Run(ctx) })
	}
	return s
}

// Config returns the set's configuration, with its defaults filled in.
func (s *Set) Config() *stream.Config { return &s.shared.Config }

// Logger is the set's.
func (s *Set) Logger() logr.Logger { return s.shared.Config.Logger }

// Keeps reports whether streams are kept for the next process.
func (s *Set) Keeps() bool { return s.saver != nil }

// Enter adds a user, which Close will end. After Close it is stream.ErrClosed.
func (s *Set) Enter(u User) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return stream.ErrClosed
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

// Join adds a listener to the stream of a Spec, or, with [stream.Config].Share, to one that has
// more. It starts the stream for the first one.
func (s *Set) Join(r object.Resource, spec object.Spec, o stream.ListenOptions) (*stream.Listener, error) {
	if err := object.Unjudged(r, spec); err != nil {
		return nil, err
	}
	key := intake.KeyOf(r, spec)
	s.mu.Lock()
	defer s.mu.Unlock()
	m, part := s.streams[key], (*audience.Part)(nil)
	if m == nil && !s.closed {
		m, part = s.wider(r, spec, key, o)
	}
	if m == nil && !s.closed {
		s.mu.Unlock() // the configuration's function is not called under a lock
		fresh := stream.New(&s.shared, intake.New(r, spec, key, s.shared.Source, s.shared.Originals))
		s.mu.Lock()
		if m = s.streams[key]; m == nil { // nobody else has added it meanwhile
			m = &member{Stream: fresh}
		}
	}
	if s.closed {
		return nil, stream.ErrClosed
	}
	s.streams[m.Key] = m
	m.listeners++
	l := m.Join(key, part, o)
	if m.stop == nil { // started last: it is known by now who listens
		ctx, cancel := context.WithCancel(s.ctx)
		m.stop = cancel
		s.tasks.Go(func() { m.Run(ctx) })
	}
	return l, nil
}

// owner is the set as its streams see it.
type owner struct{ *Set }

// LowerFloor forgets own writes to a resource whose history has begun anew.
func (s owner) LowerFloor(storage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal.Lower(storage)
}

// OtherShares returns the streams that hold other shares of a stream's objects, in the same form.
func (s owner) OtherShares(of *stream.Stream) (all []*stream.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, m := range s.streams {
		if key.Shard = of.Key.Shard; key == of.Key && m.Stream != of {
			all = append(all, m.Stream)
		}
	}
	return all
}

// Closed reports whether all streams have to end.
func (s owner) Closed() bool { return s.ctx.Err() != nil }

// Release gives up one use of a stream; the last one ends it. Counting and removing are one step,
// so that nobody gets a stream that has ended.
func (s owner) Release(st *stream.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.streams[st.Key]
	if m.listeners--; m.listeners > 0 {
		return
	}
	if s.shared.Grace <= 0 || s.closed {
		s.drop(m)
		return
	}
	m.left++
	left := m.left
	s.tasks.Go(func() {
		source.Sleep(s.ctx, s.shared.Grace)
		s.mu.Lock()
		defer s.mu.Unlock()
		if m.listeners == 0 && m.left == left { // nobody has come and gone meanwhile
			s.drop(m)
		}
	})
}

// drop ends a stream that nobody uses. Called with mu held.
func (s *Set) drop(m *member) {
	if s.streams[m.Key] == m {
		delete(s.streams, m.Key)
		m.stop()
		if m.Keeper().Keepable() {
			s.ended[m.Key] = m.Stream
		}
	}
}

// toSave returns the streams that can be kept: those that run, and those that have ended since the
// call before, unless they run again.
func (s *Set) toSave() (running, ended []*warm.Keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.streams {
		if m.Keeper().Keepable() {
			running = append(running, m.Keeper())
		}
	}
	for key, st := range s.ended {
		if s.streams[key] == nil {
			ended = append(ended, st.Keeper())
		}
	}
	clear(s.ended)
	return running, ended
}

// FloorRV is the version of the newest own write to a stored resource: no list may be older.
func (s *Set) FloorRV(storage string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.Floor(storage)
}

// all returns every stream.
func (s *Set) all() []*stream.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*stream.Stream, 0, len(s.streams))
	for _, m := range s.streams {
		all = append(all, m.Stream)
	}
	return all
}

// over returns the streams over one stored resource. Called with mu held.
func (s *Set) over(storage string) (found []*stream.Stream) {
	for _, m := range s.streams {
		if m.Resource.Storage == storage {
			found = append(found, m.Stream)
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
			if e := st.Entry(object.KeyOf(obj)); e.Stored == obj || e.Shown == obj {
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
	newest := make(map[string]string)
	for _, st := range s.all() {
		storage := st.Resource.Storage
		newest[storage] = coherence.Newest(newest[storage], coherence.Newest(s.FloorRV(storage), st.Position()))
	}
	return newest
}

// Sync returns when every stream is as new as the server was at the call, or with ctx's error.
// [stream.Sync] says what it costs.
func (s *Set) Sync(ctx context.Context) error { return stream.Sync(ctx, s.all()) }
