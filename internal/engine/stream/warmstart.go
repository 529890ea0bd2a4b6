package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/client/wire/ordered"
	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// warmStart begins a stream from its files. It is for the reflector's goroutine.
type warmStart struct {
	*stream
	fresh func(reflector.Asked) reflector.List // begins a list
	asked reflector.Asked
	head  warm.Head // of the changes
	next  *listing
	// changed are the keys that may differ from the base.
	changed map[object.Key]struct{}
}

// fromFiles is the first list of a stream that comes from its files.
type fromFiles struct{ *stream }

// Load brings a list up to the present with files and a watch. An error is why it could not, and
// the stream is as it was.
func (s fromFiles) Load(ctx context.Context, asked reflector.Asked, begin func(reflector.Asked) reflector.List) (reflector.List, string, error) {
	if err := s.keepable(); err != nil {
		return nil, "", err
	}
	from, err := s.askOrigin(ctx)
	if err != nil {
		return nil, "", err
	}
	w := &warmStart{stream: s.stream, fresh: begin, asked: asked, changed: make(map[object.Key]struct{})}
	rv, err := w.load(ctx, from)
	if w.next == nil {
		return nil, "", err
	}
	if err == nil {
		s.started(nil) // a status beside the first snapshot has it
	}
	return w.next, rv, err
}

// Loaded notes how the stream has begun. Another try would not change that a file is of no use.
func (s fromFiles) Loaded(ctx context.Context, err error) (again bool) {
	if err == nil || ctx.Err() == nil {
		s.started(err)
	}
	var doubt doubtful
	return err != nil && !errors.As(err, &doubt) && !errors.Is(err, ErrNoOrigin)
}

// begin starts the list over.
func (w *warmStart) begin() { w.next = w.fresh(w.asked).(*listing) }

// load returns the version to which the list was brought.
func (w *warmStart) load(ctx context.Context, from warm.Origin) (rv string, err error) {
	store, want := w.config.Warm.Store, w.fileIdentity(from)
	name, codec := want.Name(), w.config.Warm.codec(want)
	lockorder.CallOut("the store of a warm start")
	file, err := store.Load(ctx, name+warm.Changes)
	if err != nil {
		return "", missing(err)
	}
	defer func() { _ = file.Close() }() // its error says nothing of what was read
	changes, err := codec.Open(file)
	if err != nil {
		return "", useless(err)
	}
	w.head = changes.Head
	if err := w.suits(want); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan present, 1)
	go func() { // ends with its bounds, or with ctx; it is waited for
		p := w.ask(ctx)
		if p.err != nil {
			cancel() // nobody needs the file any more
		}
		answer <- p
	}()
	w.begin()
	if err = w.read(ctx, name, changes); err != nil {
		cancel()
	}
	now := <-answer
	defer now.stop()
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		return "", err
	case now.err != nil:
		return "", now.err
	case err != nil:
		return "", err
	case coherence.Newer(w.asked.FloorRV, now.now.RV):
		return "", doubtful("the server's newest version is older than that of an own write")
	}
	return w.finish(ctx, &now)
}

// suits is an error if the file is not of this query, server and program, or is too old.
func (w *warmStart) suits(want warm.Identity) error {
	age := time.Since(w.head.Saved)
	switch differs := want.Differs(w.head.Identity); {
	case differs != "":
		return doubtful("what is kept is of " + differs)
	case age > FileMost || age < -FileMost:
		return doubtful(fmt.Sprintf("what is kept is %s old", age.Round(time.Second)))
	case !coherence.Comparable(w.head.Position):
		return doubtful("what is kept has no version")
	}
	return nil
}

// useless is a file that cannot be read.
func useless(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return doubtful("what is kept cannot be read: " + err.Error())
}

// read reads the base, and the changes after it.
func (w *warmStart) read(ctx context.Context, name string, changes *warm.Reader) error {
	lockorder.CallOut("the store of a warm start")
	file, err := w.config.Warm.Store.Load(ctx, name+warm.Base)
	if err != nil {
		return useless(err)
	}
	defer func() { _ = file.Close() }() // its error says nothing of what was read
	base, err := w.config.Warm.codec(w.head.Identity).Open(file)
	switch {
	case err != nil:
		return useless(err)
	case base.Head.ID != w.head.Base || base.Head.Identity != w.head.Identity:
		return doubtful("what is kept is in two files that do not belong together")
	}
	if err := w.records(ctx, base, w.next.keep); err != nil {
		return err
	}
	err = w.records(ctx, changes, func(o object.Object, gone object.Key) error {
		key := gone
		if o != nil {
			key = object.KeyOf(o)
		}
		w.changed[key] = struct{}{}
		return w.next.keep(o, gone)
	})
	if err == nil && len(w.next.objects) != w.head.Objects {
		err = doubtful(fmt.Sprintf("what is kept has %d objects, and should have %d", len(w.next.objects), w.head.Objects))
	}
	return err
}

// unpacked is a record of a file.
type unpacked struct {
	object object.Object // nil: it is gone
	gone   object.Key
}

// records hands the records of a file to a function, in their order. They are unpacked on the
// cores that are idle.
func (w *warmStart) records(ctx context.Context, r *warm.Reader, take func(o object.Object, gone object.Key) error) error {
	type result struct {
		all []unpacked
		err error
	}
	line := ordered.NewLine(w.config.Warm.Helpers, func(part result) error {
		for _, one := range part.all {
			if err := take(one.object, one.gone); err != nil {
				return err
			}
		}
		return part.err
	})
	defer line.Close()
	for {
		chunk, err := r.Next()
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return useless(err)
		case chunk == nil:
			return line.Flush()
		}
		err = line.Add(int64(chunk.Bytes()), func() result {
			all, err := w.unpack(chunk)
			return result{all, err}
		})
		if err != nil {
			return err
		}
	}
}

func (w *warmStart) unpack(chunk *warm.Chunk) (all []unpacked, err error) {
	err = chunk.Each(func(r warm.Record) error {
		if r.Raw == nil {
			all = append(all, unpacked{gone: object.Key{Namespace: r.Namespace, Name: r.Name}})
			return nil
		}
		o, err := w.Packer.Unpack(r.Raw)
		if err == nil && object.Fault(o) != nil {
			err = errors.New("an object does not decode")
		}
		all = append(all, unpacked{object: o})
		return err
	})
	if err != nil {
		err = useless(err)
	}
	return all, err
}

// keep takes in a record of a file.
func (l *listing) keep(o object.Object, gone object.Key) error {
	if o != nil {
		gone = object.KeyOf(o) // it takes the place of what was written before
	}
	if o == nil || object.Ambiguous(gone) {
		l.remove(gone, nil)
	}
	if o == nil {
		return nil
	}
	err := l.put(o, false)
	if source.IsGarbled(err) {
		return useless(err)
	}
	return err
}

// present is what the server says at a warm start.
type present struct {
	answered []coherence.Sighting // of the witnesses
	now      source.Newest        // its newest state
	watch    *source.Watch        // from the file's version; nil: it is the newest
	err      error
}

// stop ends the watch.
func (p *present) stop() {
	if p.watch != nil {
		p.watch.Stop()
		p.watch = nil
	}
}

// ask asks the server for the witnesses, then for its newest version, and then opens the watch.
func (w *warmStart) ask(ctx context.Context) (p present) {
	bound, cancel := context.WithTimeout(ctx, source.AskTimeout)
	defer cancel()
	if p.answered, p.err = w.testify(bound); p.err == nil {
		p.err = w.newest(bound, &p)
	}
	if p.err != nil || p.now.Whole || p.now.RV == w.head.Position {
		return p
	}
	p.watch, p.err = w.dial(ctx, w.head.Position)
	return p
}

// testify asks for the witnesses, all at once.
func (w *warmStart) testify(ctx context.Context) ([]coherence.Sighting, error) {
	all := make([]coherence.Sighting, len(w.head.Witnesses))
	errs := make(chan error, len(all))
	for i, one := range w.head.Witnesses {
		go func() { // ends with the request, which ctx bounds
			o := w.requests.Options()
			o.Limit = 1
			found, _, err := w.requests.LookupWith(ctx, object.Key{Namespace: one.Namespace, Name: one.Name}, o)
			if found != nil {
				all[i] = sightingOf(found)
			}
			errs <- err
		}()
	}
	var first error
	for range all {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return all, first
}

func sightingOf(o object.Object) coherence.Sighting {
	return coherence.Sighting{UID: o.GetUID(), Version: o.GetResourceVersion()}
}

// newest asks for the server's newest version, with a list of one object.
func (w *warmStart) newest(ctx context.Context, p *present) (err error) {
	if p.now, err = w.requests.Newest(ctx); err != nil {
		return err
	}
	if !w.Whole() {
		p.now.Objects = -1 // the server counts what is not selected, too
	}
	switch rv := p.now.RV; {
	case !coherence.Comparable(rv):
		return fmt.Errorf("%w (resourceVersion %q)", source.ErrNoVersion, rv)
	case coherence.Newer(w.head.Position, rv):
		return doubtful(fmt.Sprintf("the server's newest version is %s, and what is kept is of %s: it was restored", rv, w.head.Position))
	}
	return nil
}

// dial opens a watch that lasts for moments.
func (w *warmStart) dial(ctx context.Context, fromRV string) (*source.Watch, error) {
	d, err := w.requests.DialShort(ctx, fromRV)
	return d, forgotten(err)
}

// forgotten says of an expired version what that means for a file.
func forgotten(err error) error {
	if source.Expired(err) {
		return doubtful("the server has forgotten the version of what is kept")
	}
	return err
}

// verdict is an error unless the witnesses confirm that file and server have one history (W3).
func (w *warmStart) verdict(answered []coherence.Sighting) error {
	all := make([]coherence.Testimony, len(answered))
	for i, one := range w.head.Witnesses {
		t := coherence.Testimony{Kept: coherence.Sighting{UID: types.UID(one.UID), Version: one.Version}, Answered: answered[i]}
		if o := w.next.objects[object.Key{Namespace: one.Namespace, Name: one.Name}]; o != nil {
			t.Now = sightingOf(o)
		}
		all[i] = t
	}
	switch coherence.Judge(all) {
	case coherence.Confirmed:
		return nil
	case coherence.Contradicted:
		return doubtful("the server has other objects than what is kept: it was restored")
	}
	return doubtful("everything that could confirm what is kept has changed")
}

// takeWhole takes in that the items are all that there are.
func (w *warmStart) takeWhole(p *present) (rv string, err error) {
	w.begin()
	w.changed = nil
	for _, item := range p.now.Items {
		if err := w.next.Put(item); err != nil {
			return "", err
		}
	}
	return p.now.RV, nil
}
