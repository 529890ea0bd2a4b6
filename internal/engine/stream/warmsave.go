package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// saving writes the files of one stream. It is for the saver's goroutine.
type saving struct {
	*stream
	savedRV string // the version of the files; "": there are none
	savedID string // of their base
	// failed is the last error, and again when the next try is due.
	failed string
	again  time.Time
	pause  time.Duration
}

const (
	// batchMost is how many objects are taken under a lock at a time.
	batchMost = 1024
	// saveAgainMost is the longest pause after failures.
	saveAgainMost = 10 * time.Minute
)

// errSuperseded: the stream has listed while its base was being written.
var errSuperseded = errors.New("the stream has listed anew meanwhile")

// errInvalid: an object has no wire form.
var errInvalid = errors.New("an object does not decode")

// save writes what has changed, if anything has.
func (s *saving) save(ctx context.Context, now time.Time) {
	if now.Before(s.again) {
		return
	}
	err := s.write(ctx)
	if err == nil || errors.Is(err, errSuperseded) {
		s.failed, s.again, s.pause = "", time.Time{}, 0
		return
	}
	s.pause = min(max(2*s.pause, s.config.Warm.Every), saveAgainMost)
	s.again = now.Add(s.pause)
	if text := err.Error(); text != s.failed {
		s.failed = text
		s.config.Logger.Info("cannot keep what is watched for the next start, will keep trying",
			"resource", s.Key.Resource, "namespace", s.Key.Namespace, "err", text)
	}
}

// due is what a stream has to be written for.
type due struct {
	identity warm.Identity
	lists    int
	anew     bool                         // a new base is needed
	objects  map[object.Key]object.Object // those of the store: its lock guards them
}

// due returns what there is to write; ok is false if there is nothing.
func (s *saving) due() (d due, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.progress.kept
	at := s.store.view.Position()
	switch {
	case !s.progress.synced, s.own.givenUp, k.origin == warm.Origin{}, !coherence.Comparable(at):
		return d, false
	case k.base != nil && at == s.savedRV && k.base.id == s.savedID:
		return d, false
	}
	d = due{identity: s.fileIdentity(k.origin), lists: k.lists, objects: s.store.objects}
	d.anew = k.needsBase(len(d.objects))
	return d, true
}

// write writes a new base, if one is needed, and the changes.
func (s *saving) write(ctx context.Context) error {
	d, ok := s.due()
	if !ok {
		return nil
	}
	if d.anew {
		if err := s.writeBase(ctx, d); err != nil {
			return err
		}
	}
	return s.writeChanges(ctx, d)
}

// writeBase writes all objects. They change meanwhile: what does is among the changes.
func (s *saving) writeBase(ctx context.Context, d due) error {
	base := &baseFile{id: warm.NewID(), changed: make(map[object.Key]struct{})}
	s.mu.Lock()
	if s.progress.kept.lists != d.lists {
		s.mu.Unlock()
		return errSuperseded
	}
	s.progress.kept.base = base
	s.mu.Unlock()
	s.savedRV = ""
	err := s.file(ctx, d.identity, warm.Base, warm.Head{ID: base.id}, func(w *warm.Writer) error {
		var chosen witnesses
		err := s.batches(d, func(batch []object.Object) error {
			for _, o := range batch {
				chosen.add(o)
				if err := s.put(w, o); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		base.witnesses = chosen.all()
		return err
	})
	if err != nil {
		s.mu.Lock()
		if s.progress.kept.base == base {
			s.progress.kept.base = nil
		}
		s.mu.Unlock()
	}
	return err
}

// batches hands the objects of the store to a function, some at a time. Each that is there all the
// while is handed over once, in one of its versions. The function is called without the lock.
func (s *saving) batches(d due, f func([]object.Object) error) error {
	batch := make([]object.Object, 0, batchMost)
	s.mu.Lock()
	for _, o := range d.objects { // a map may change while it is ranged over
		if batch = append(batch, o); len(batch) < batchMost {
			continue
		}
		s.mu.Unlock()
		err := f(batch)
		batch = batch[:0]
		s.mu.Lock()
		if err == nil && s.progress.kept.lists != d.lists {
			err = errSuperseded
		}
		if err != nil {
			s.mu.Unlock()
			return err
		}
	}
	s.mu.Unlock()
	return f(batch)
}

// change is an object that has changed since the base was begun; nil: it is gone.
type change struct {
	key object.Key
	now object.Object
}

// writeChanges writes the objects that have changed since the base was begun, and the version that
// they and the base are as of.
func (s *saving) writeChanges(ctx context.Context, d due) error {
	var changes []change
	var chosen witnesses
	s.mu.Lock()
	base := s.progress.kept.base
	if s.progress.kept.lists != d.lists || base == nil || s.own.givenUp {
		s.mu.Unlock()
		return errSuperseded
	}
	head := warm.Head{
		ID: warm.NewID(), Base: base.id, Position: s.store.view.Position(), Saved: time.Now(),
		Objects: len(s.store.objects),
	}
	for key := range base.changed {
		o := s.store.objects[key]
		if changes = append(changes, change{key, o}); o != nil {
			chosen.add(o)
		}
	}
	for _, one := range base.witnesses {
		key := object.Key{Namespace: one.Namespace, Name: one.Name}
		if _, again := base.changed[key]; again {
			continue
		}
		if o := s.store.objects[key]; o != nil {
			chosen.add(o)
		}
	}
	s.mu.Unlock()
	head.Witnesses = chosen.all()
	err := s.file(ctx, d.identity, warm.Changes, head, func(w *warm.Writer) error {
		for _, c := range changes {
			if err := s.putChange(w, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.savedRV, s.savedID = head.Position, base.id
	}
	return err
}

func (s *saving) putChange(w *warm.Writer, c change) error {
	if c.now == nil {
		return w.Remove(c.key.Namespace, c.key.Name)
	}
	return s.put(w, c.now)
}

func (s *saving) put(w *warm.Writer, o object.Object) error {
	if object.Fault(o) != nil {
		return errInvalid
	}
	raw, err := s.Packer.Pack(o)
	if err != nil {
		return fmt.Errorf("pack %q: %w", object.KeyOf(o), err)
	}
	return w.Put(raw)
}

// file writes one file.
func (s *saving) file(ctx context.Context, of warm.Identity, name string, h warm.Head, fill func(*warm.Writer) error) error {
	h.Identity = of
	name = of.Name() + name
	lockorder.CallOut("the store of a warm start")
	err := s.config.Warm.Store.Save(ctx, name, func(to io.Writer) error {
		w, err := s.config.Warm.codec(of).NewWriter(to, h)
		if err == nil {
			err = fill(w)
		}
		if err == nil {
			err = w.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
