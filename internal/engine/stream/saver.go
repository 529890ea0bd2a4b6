package stream

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
)

// saver writes what the streams of a set hold, so that the next process can begin with it. Its
// goroutine ends with the set.
type saver struct {
	set  *Set
	ctx  context.Context // ends some time after the set's: what is being written is finished
	stop context.CancelFunc
	// Of the goroutine, and of last after its end:
	streams map[intake.Key]*saving
}

// lastMost is how long the writing of all streams may take when the set is closed.
const lastMost = 10 * time.Second

// newSaver returns the saver of a set, nil if nothing is kept.
func newSaver(s *Set) *saver {
	if s.config.Warm == nil {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	return &saver{set: s, ctx: ctx, stop: stop, streams: make(map[intake.Key]*saving)}
}

// run writes streams until the set is closed.
func (s *saver) run() {
	if store, ok := s.set.config.Warm.Store.(tidier); ok {
		if err := store.Tidy(time.Now()); err != nil {
			s.set.config.Logger.Info("cannot remove old files of warm starts", "err", err.Error())
		}
	}
	for {
		source.Sleep(s.set.ctx, wait.Jitter(s.set.config.Warm.Every*3/4, 0.5))
		if s.set.ctx.Err() != nil {
			return
		}
		s.round()
	}
}

// tidier is a store that removes what is no longer needed.
type tidier interface{ Tidy(now time.Time) error }

// closing bounds what is still written from now on. The caller calls the function that it returns.
func (s *saver) closing() (closed func()) {
	late := time.AfterFunc(lastMost, s.stop)
	return func() {
		late.Stop()
		s.stop()
	}
}

// last writes all streams for the last time. The set is closed, and its goroutines have ended.
func (s *saver) last() {
	for _, one := range s.streams {
		one.again = time.Time{}
	}
	s.round()
}

// round writes the streams that have changed, and those that have ended since the round before.
func (s *saver) round() {
	running, ended := s.set.toSave()
	for _, st := range ended {
		s.saving(st).save(s.ctx, time.Now())
	}
	for _, st := range running {
		s.saving(st).save(s.ctx, time.Now())
	}
	for key, one := range s.streams { // who has ended is not held any longer
		if !slices.Contains(running, one.stream) {
			delete(s.streams, key)
		}
	}
}

// saving returns what writes a stream. A stream that takes the place of another one begins anew.
func (s *saver) saving(st *stream) *saving {
	one := s.streams[st.Key]
	if one == nil || one.stream != st {
		one = &saving{stream: st}
		s.streams[st.Key] = one
	}
	return one
}

// toSave returns the streams that can be kept: those that run, and those that have ended since it
// was called last, unless they run again.
func (s *Set) toSave() (running, ended []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if st.keepable() == nil {
			running = append(running, st)
		}
	}
	for key, st := range s.ended {
		if s.streams[key] == nil {
			ended = append(ended, st)
		}
	}
	clear(s.ended)
	return running, ended
}
