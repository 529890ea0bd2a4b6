package warm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/base/secret"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
)

// Keeper keeps one stream from one process to the next. A nil Keeper keeps nothing.
type Keeper struct {
	Stream
	warmth *Warmth
	logger logr.Logger
	kept
}

// Stream is what a Keeper knows of its stream.
type Stream struct {
	Intake   *intake.Intake
	Requests source.Requests
	// Lock guards the stream. Methods of the Keeper that say so are called with it held.
	Lock sync.Locker
	// Stored returns the objects that the watch shows, and the version that they are as of. ok is
	// false while they are not to be kept. It is called with the lock held.
	Stored func() (objects map[object.Key]object.Object, atRV string, ok bool)
}

// NewKeeper returns the keeper of a stream, nil if nothing is kept.
func NewKeeper(w *Warmth, s Stream, logger logr.Logger) *Keeper {
	if w == nil {
		return nil
	}
	return &Keeper{Stream: s, warmth: w, logger: logger}
}

// kept is what has to be written of a stream. The stream's lock guards it.
type kept struct {
	start string // how the stream has begun, for its status
	// asked is the origin that was asked for before the list under way, and origin that of the
	// list that was taken in last; zero: it is not known, and nothing is written.
	asked, origin files.Origin
	lists         int // that were taken in, or disowned: what is written meanwhile is given up
	// base is the file that the stream's objects are, but for what has changed; nil: a new one is
	// needed.
	base *Base
}

// Base is a file of all objects, and what has changed since it was begun.
type Base struct {
	id        string
	changed   map[object.Key]struct{}
	witnesses []files.Witness
}

const (
	// changedLeast is how many objects may have changed before a new base is cheaper than more and
	// more changes, and changedShare which part of all.
	changedLeast = 1000
	changedShare = 8
)

// Changed takes in that what the watch shows of a key may have changed. Called with the stream's
// lock held.
func (k *Keeper) Changed(key object.Key, objects int) {
	if k == nil || k.base == nil {
		return
	}
	if k.base.changed[key] = struct{}{}; len(k.base.changed) > changedLeast+2*objects {
		k.base = nil // what has gone is bounded, too
	}
}

// needsBase reports whether a new base is cheaper than the changes since the last one.
func (k *Keeper) needsBase(objects int) bool {
	return k.base == nil || len(k.base.changed) > max(changedLeast, objects/changedShare)
}

// Listed takes in that a list was committed; from is nil unless the list came from files. Called
// with the stream's lock held.
func (k *Keeper) Listed(from *Base) {
	if k == nil {
		return
	}
	k.lists++
	k.origin, k.base = k.asked, from
	if from != nil && from.changed == nil {
		from.changed = make(map[object.Key]struct{})
	}
}

// Forget drops what would be written, and is being written: nobody knows of which server it is.
// Called with the stream's lock held.
func (k *Keeper) Forget() {
	if k == nil {
		return
	}
	k.lists++
	k.origin, k.base = files.Origin{}, nil
}

// keepable says why a stream is not kept; nil if it is.
func (k *Keeper) keepable() error {
	s := k.Intake
	_, isClock := s.Source.(source.Clock) // its versions end with this process
	switch {
	case isClock:
		return fromContents
	case s.Where != nil, s.Transform != nil, s.Valid != nil:
		return transforms
	case k.warmth.Codec.Key == nil && secret.Resource(s.Resource.Group, s.Resource.GroupVersionResource.Resource):
		return ofSecrets
	case s.Packer == nil:
		return unpackable
	}
	return nil
}

// fileIdentity is what the files of the stream say of themselves, for objects from an origin.
func (k *Keeper) fileIdentity(from files.Origin) files.Identity {
	s := k.Intake
	form := string(s.Key.Form)
	if p, ok := s.Key.Form.Projection(); ok {
		form = fmt.Sprintf("%s %s %+v", object.Fields, files.TypeOf(p.Into), p.Beside)
	}
	return files.Identity{
		Format: files.Format, Origin: from, Packing: s.Packer.Packing(),
		Query: files.Query{
			Resource: s.Key.Resource, Kind: s.Resource.Kind.String(), Storage: s.Resource.Storage,
			Namespace: s.Key.Namespace, Labels: s.Key.Labels, Fields: s.Key.Fields, AnyOf: s.Key.AnyOf, Shard: s.Key.Shard, Form: form,
		},
	}
}

// Keepable reports whether the stream can be kept. A nil Keeper keeps nothing.
func (k *Keeper) Keepable() bool { return k != nil && k.keepable() == nil }

// AskOrigin asks which server this is, for the list that is next. Where that is not known, what is
// listed is not kept.
func (k *Keeper) AskOrigin(ctx context.Context) (from files.Origin, err error) {
	if !k.Keepable() {
		return from, nil
	}
	ctx, cancel := context.WithTimeout(ctx, source.AskTimeout)
	defer cancel()
	k.Lock.Lock()
	lists := k.lists
	k.asked = files.Origin{}
	k.Lock.Unlock()
	from, err = k.warmth.Origin(ctx, k.Intake.Resource)
	k.Lock.Lock()
	defer k.Lock.Unlock()
	if err == nil && lists == k.lists { // else the connection is another one by now
		k.asked = from
	}
	return from, err
}

// Disown drops what would be written: another connection follows, and files do not belong to both.
func (k *Keeper) Disown() {
	if k == nil {
		return
	}
	k.Lock.Lock()
	defer k.Lock.Unlock()
	k.Forget()
	k.asked = files.Origin{}
}

// started notes how the stream has begun; why is the reason of a plain list.
func (k *Keeper) started(why error) {
	how := "warm"
	if why != nil {
		how = "list: " + why.Error()
	}
	k.Lock.Lock()
	before := k.start
	k.start = how
	k.Lock.Unlock()
	if how == before {
		return // it was tried again
	}
	log := k.logger.WithValues("resource", k.Intake.Key.Resource, "namespace", k.Intake.Key.Namespace)
	switch {
	case why == nil:
		log.V(1).Info("started from what was kept")
	case errors.Is(why, noFile), errors.Is(why, fromContents), k.Intake.Where != nil, k.Intake.Transform != nil, k.Intake.Valid != nil:
		log.V(1).Info("starting with a list", "why", why.Error())
	default:
		log.Info("starting with a list, and not from what was kept", "why", why.Error())
	}
}

// Start says how the stream has begun, "" if nothing is kept. Called with the stream's lock held.
func (k *Keeper) Start() string {
	if k == nil {
		return ""
	}
	return k.start
}
