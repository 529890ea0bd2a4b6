package warm

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kates-go/kates/internal/engine/source"
)

// Saver writes what the streams of a client hold, so that the next process can begin with it.
type Saver struct {
	warmth *Warmth
	logger logr.Logger
	due    func() (running, ended []*Keeper)
	// life ends some time after the client's: what is being written is finished.
	life context.Context
	stop context.CancelFunc
	// Of Run's goroutine, and of Last after its end:
	streams map[*Keeper]*saving
}

// lastMost is how long the writing of all streams may take when the client is closed.
const lastMost = 10 * time.Second

// NewSaver returns a saver, nil if nothing is kept. due returns the streams that run, and those
// that have ended since the call before; all can be kept.
func NewSaver(w *Warmth, logger logr.Logger, due func() (running, ended []*Keeper)) *Saver {
	if w == nil {
		return nil
	}
	life, stop := context.WithCancel(context.Background())
	return &Saver{warmth: w, logger: logger, due: due, life: life, stop: stop, streams: make(map[*Keeper]*saving)}
}

// Run writes streams until ctx, the life of the client, ends.
func (s *Saver) Run(ctx context.Context) {
	if store, ok := s.warmth.Store.(tidier); ok {
		if err := store.Tidy(time.Now()); err != nil {
			s.logger.Info("cannot remove old files of warm starts", "err", err.Error())
		}
	}
	for {
		source.Sleep(ctx, wait.Jitter(s.warmth.Every*3/4, 0.5))
		if ctx.Err() != nil {
			return
		}
		s.round()
	}
}

// tidier is a store that removes what is no longer needed.
type tidier interface{ Tidy(now time.Time) error }

// Closing bounds what is still written from now on. The caller calls the function that it returns.
func (s *Saver) Closing() (closed func()) {
	if s == nil {
		return func() {}
	}
	late := time.AfterFunc(lastMost, s.stop)
	return func() {
		late.Stop()
		s.stop()
	}
}

// Last writes all streams for the last time. The client is closed, and Run has ended.
func (s *Saver) Last() {
	if s == nil {
		return
	}
	for _, one := range s.streams {
		one.again = time.Time{}
	}
	s.round()
}

// round writes the streams that have changed, and those that have ended since the round before.
func (s *Saver) round() {
	running, ended := s.due()
	for _, st := range ended {
		s.saving(st).save(s.life, time.Now())
	}
	for _, st := range running {
		s.saving(st).save(s.life, time.Now())
	}
	for k := range s.streams { // one that has ended is not held any longer
		if !slices.Contains(running, k) {
			delete(s.streams, k)
		}
	}
}

// saving returns what writes a stream.
func (s *Saver) saving(k *Keeper) *saving {
	one := s.streams[k]
	if one == nil {
		one = &saving{Keeper: k}
		s.streams[k] = one
	}
	return one
}
