package warm

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
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
)

// List is a list that a warm start fills.
type List interface {
	reflector.List
	// Keep takes in an object, in the place of one with its key.
	Keep(object.Object) error
	// Remove takes out whatever has a key, and Get returns it, nil for nothing.
	Remove(object.Key)
	Get(object.Key) object.Object
	// Count returns how many keys and objects there are.
	Count() (keys, objects int)
	// ComesFrom says which file the list is, but for what has changed since.
	ComesFrom(*Base)
}

// start begins a stream from its files. It is for the reflector's goroutine.
type start struct {
	*Keeper
	fresh func(reflector.Asked) reflector.List // begins a list
	asked reflector.Asked
	head  files.Head // of the changes
	next  List
	// changed are the keys that may differ from the base.
	changed map[object.Key]struct{}
}

var _ reflector.First = (*Keeper)(nil)

// Load brings a list up to the present with files and a watch. An error is why it could not. It is
// for the reflector.
func (k *Keeper) Load(ctx context.Context, asked reflector.Asked, begin func(reflector.Asked) reflector.List) (reflector.List, string, error) {
	if err := k.keepable(); err != nil {
		return nil, "", err
	}
	from, err := k.AskOrigin(ctx)
	if err != nil {
		return nil, "", err
	}
	w := &start{Keeper: k, fresh: begin, asked: asked, changed: make(map[object.Key]struct{})}
	rv, err := w.load(ctx, from)
	if w.next == nil {
		return nil, "", err
	}
	if err == nil {
		k.started(nil) // a status beside the first snapshot has it
	}
	return w.next, rv, err
}

// Loaded takes in how the stream has begun. Another try would not change that a file is of no use.
func (k *Keeper) Loaded(ctx context.Context, err error) (again bool) {
	if err == nil || ctx.Err() == nil {
		k.started(err)
	}
	var doubt doubtful
	return err != nil && !errors.As(err, &doubt) && !errors.Is(err, ErrNoOrigin)
}

// restartList starts the list over.
func (w *start) restartList() { w.next = w.fresh(w.asked).(List) }

// load returns the version to which the list was brought.
func (w *start) load(ctx context.Context, from files.Origin) (rv string, err error) {
	store, want := w.warmth.Store, w.fileIdentity(from)
	name, codec := want.Name(), w.warmth.codec(want)
	lockorder.CallOut("the store of a warm start")
	file, err := store.Load(ctx, name+files.Changes)
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
	w.restartList()
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
func (w *start) suits(want files.Identity) error {
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
func (w *start) read(ctx context.Context, name string, changes *files.Reader) error {
	lockorder.CallOut("the store of a warm start")
	file, err := w.warmth.Store.Load(ctx, name+files.Base)
	if err != nil {
		return useless(err)
	}
	defer func() { _ = file.Close() }() // its error says nothing of what was read
	base, err := w.warmth.codec(w.head.Identity).Open(file)
	switch {
	case err != nil:
		return useless(err)
	case base.Head.ID != w.head.Base || base.Head.Identity != w.head.Identity:
		return doubtful("what is kept is in two files that do not belong together")
	}
	if err := w.records(ctx, base, w.keep); err != nil {
		return err
	}
	err = w.records(ctx, changes, func(o object.Object, gone object.Key) error {
		key := gone
		if o != nil {
			key = object.KeyOf(o)
		}
		w.changed[key] = struct{}{}
		return w.keep(o, gone)
	})
	if keys, _ := w.next.Count(); err == nil && keys != w.head.Objects {
		err = doubtful(fmt.Sprintf("what is kept has %d objects, and should have %d", keys, w.head.Objects))
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
func (w *start) records(ctx context.Context, r *files.Reader, take func(o object.Object, gone object.Key) error) error {
	type result struct {
		all []unpacked
		err error
	}
	line := ordered.NewLine(w.warmth.Helpers, func(part result) error {
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

func (w *start) unpack(chunk *files.Chunk) (all []unpacked, err error) {
	err = chunk.Each(func(r files.Record) error {
		if r.Raw == nil {
			all = append(all, unpacked{gone: object.Key{Namespace: r.Namespace, Name: r.Name}})
			return nil
		}
		o, err := w.Intake.Packer.Unpack(r.Raw)
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
func (w *start) keep(o object.Object, gone object.Key) error {
	if o != nil {
		gone = object.KeyOf(o) // it takes the place of what was written before
	}
	if o == nil || object.Ambiguous(gone) {
		w.next.Remove(gone)
	}
	if o == nil {
		return nil
	}
	err := w.next.Keep(o)
	if source.IsGarbled(err) {
		return useless(err)
	}
	return err
}

// present is what the server says at a warm start.
type present struct {
	answered []sighting    // of the witnesses
	now      source.Newest // its newest state
	watch    *source.Watch // from the file's version; nil: it is the newest
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
func (w *start) ask(ctx context.Context) (p present) {
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
func (w *start) testify(ctx context.Context) ([]sighting, error) {
	all := make([]sighting, len(w.head.Witnesses))
	errs := make(chan error, len(all))
	for i, one := range w.head.Witnesses {
		go func() { // ends with the request, which ctx bounds
			o := w.Requests.Options()
			o.Limit = 1
			found, _, err := w.Requests.LookupWith(ctx, object.Key{Namespace: one.Namespace, Name: one.Name}, o)
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

func sightingOf(o object.Object) sighting {
	return sighting{UID: o.GetUID(), Version: o.GetResourceVersion()}
}

// newest asks for the server's newest version, with a list of one object.
func (w *start) newest(ctx context.Context, p *present) (err error) {
	if p.now, err = w.Requests.Newest(ctx); err != nil {
		return err
	}
	if !w.Intake.Whole() {
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
func (w *start) dial(ctx context.Context, fromRV string) (*source.Watch, error) {
	d, err := w.Requests.DialShort(ctx, fromRV)
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
func (w *start) verdict(answered []sighting) error {
	all := make([]testimony, len(answered))
	for i, one := range w.head.Witnesses {
		t := testimony{Kept: sighting{UID: types.UID(one.UID), Version: one.Version}, Answered: answered[i]}
		if o := w.next.Get(object.Key{Namespace: one.Namespace, Name: one.Name}); o != nil {
			t.Now = sightingOf(o)
		}
		all[i] = t
	}
	switch judge(all) {
	case confirmed:
		return nil
	case contradicted:
		return doubtful("the server has other objects than what is kept: it was restored")
	}
	return doubtful("everything that could confirm what is kept has changed")
}

// takeWhole takes in that the items are all that there are.
func (w *start) takeWhole(p *present) (rv string, err error) {
	w.restartList()
	w.changed = nil
	for _, item := range p.now.Items {
		if err := w.next.Put(item); err != nil {
			return "", err
		}
	}
	return p.now.RV, nil
}
