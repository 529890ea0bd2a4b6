package warm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
)

// saving writes the files of one stream. It is for the saver's goroutine.
type saving struct {
	*Keeper
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
	s.pause = min(max(2*s.pause, s.warmth.Every), saveAgainMost)
	s.again = now.Add(s.pause)
	if text := err.Error(); text != s.failed {
		s.failed = text
		s.logger.Info("cannot keep what is watched for the next start, will keep trying",
			"resource", s.Intake.Key.Resource, "namespace", s.Intake.Key.Namespace, "err", text)
	}
}

// due is what a stream has to be written for.
type due struct {
	identity files.Identity
	lists    int
	anew     bool                         // a new base is needed
	objects  map[object.Key]object.Object // those of the store: its lock guards them
}

// due returns what there is to write; ok is false if there is nothing.
func (s *saving) due() (d due, ok bool) {
	s.Lock.Lock()
	defer s.Lock.Unlock()
	k := &s.kept
	objects, at, ok := s.Stored()
	switch {
	case !ok, k.origin == files.Origin{}, !coherence.Comparable(at):
		return d, false
	case k.base != nil && at == s.savedRV && k.base.id == s.savedID:
		return d, false
	}
	d = due{identity: s.fileIdentity(k.origin), lists: k.lists, objects: objects}
	d.anew = s.needsBase(len(d.objects))
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
	base := &Base{id: files.NewID(), changed: make(map[object.Key]struct{})}
	s.Lock.Lock()
	if s.lists != d.lists {
		s.Lock.Unlock()
		return errSuperseded
	}
	s.base = base
	s.Lock.Unlock()
	s.savedRV = ""
	err := s.file(ctx, d.identity, files.Base, files.Head{ID: base.id}, func(w *files.Writer) error {
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
		s.Lock.Lock()
		if s.base == base {
			s.base = nil
		}
		s.Lock.Unlock()
	}
	return err
}

// batches hands the objects of the store to a function, some at a time. Each that is there all the
// while is handed over once, in one of its versions. The function is called without the lock.
func (s *saving) batches(d due, f func([]object.Object) error) error {
	batch := make([]object.Object, 0, batchMost)
	s.Lock.Lock()
	for _, o := range d.objects { // a map may change while it is ranged over
		if batch = append(batch, o); len(batch) < batchMost {
			continue
		}
		s.Lock.Unlock()
		err := f(batch)
		batch = batch[:0]
		s.Lock.Lock()
		if err == nil && s.lists != d.lists {
			err = errSuperseded
		}
		if err != nil {
			s.Lock.Unlock()
			return err
		}
	}
	s.Lock.Unlock()
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
	s.Lock.Lock()
	objects, at, ok := s.Stored()
	base := s.base
	if s.lists != d.lists || base == nil || !ok {
		s.Lock.Unlock()
		return errSuperseded
	}
	head := files.Head{
		ID: files.NewID(), Base: base.id, Position: at, Saved: time.Now(),
		Objects: len(objects),
	}
	for key := range base.changed {
		o := objects[key]
		if changes = append(changes, change{key, o}); o != nil {
			chosen.add(o)
		}
	}
	for _, one := range base.witnesses {
		key := object.Key{Namespace: one.Namespace, Name: one.Name}
		if _, again := base.changed[key]; again {
			continue
		}
		if o := objects[key]; o != nil {
			chosen.add(o)
		}
	}
	s.Lock.Unlock()
	head.Witnesses = chosen.all()
	err := s.file(ctx, d.identity, files.Changes, head, func(w *files.Writer) error {
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

func (s *saving) putChange(w *files.Writer, c change) error {
	if c.now == nil {
		return w.Remove(c.key.Namespace, c.key.Name)
	}
	return s.put(w, c.now)
}

func (s *saving) put(w *files.Writer, o object.Object) error {
	if object.Fault(o) != nil {
		return errInvalid
	}
	raw, err := s.Intake.Packer.Pack(o)
	if err != nil {
		return fmt.Errorf("pack %q: %w", object.KeyOf(o), err)
	}
	return w.Put(raw)
}

// file writes one file.
func (s *saving) file(ctx context.Context, of files.Identity, name string, h files.Head, fill func(*files.Writer) error) error {
	h.Identity = of
	name = of.Name() + name
	lockorder.CallOut("the store of a warm start")
	err := s.warmth.Store.Save(ctx, name, func(to io.Writer) error {
		w, err := s.warmth.codec(of).NewWriter(to, h)
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
