package stream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/kates-go/kates/internal/base/secret"
	"github.com/kates-go/kates/internal/client/wire/ordered"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// A stream may begin with what it held when the program ran before: its warm start. It is a first
// list that comes from a file, and from a watch that goes on where the file ends. The rules that
// make it one are in package coherence (W1 to W4). Whatever is wrong with a file, or may be, is a
// reason for a plain first list, and nothing else: it is in the status, and logged once.
//
//	file ───────────▶ listing ◀─── events of a short watch from the file's version
//	server: witnesses, newest version ──▶ is it the same history? has the watch reached it?
//
// Not every stream is kept. A transform is a function, and nobody can tell whether that of the
// next process does the same. The versions of a [source.Clock] end with its process. Secrets are
// kept only where files are encrypted. A stream with an object that does not decode is not kept
// while it is there: the file would not have it in wire form.

// Warmth is how the streams of a set are kept from one process to the next.
type Warmth struct {
	Store warm.Store
	Codec warm.Codec
	// Every is about how often a stream is written that has changed.
	Every time.Duration
	// Origin says which server a resource comes from now. While it returns an error, streams are
	// neither kept nor begun from a file. One that wraps [ErrNoOrigin] stays.
	Origin func(ctx context.Context, r object.Resource) (warm.Origin, error)
	// Wait is how long a watch may take to reach the present. 0: 10 s.
	Wait time.Duration
	// Helpers unpack objects side by side. Nil: nobody does.
	Helpers *ordered.Pool
}

// ErrNoOrigin says that the server will not say which one it is.
var ErrNoOrigin = errors.New("it is not known which cluster this is")

const (
	// FileMost is how old a file may be (W4). Servers forget versions after 5 to 10 minutes, and
	// those that keep them for longer are rare.
	FileMost = 30 * time.Minute
	// catchMost bounds the time in which the watch has to reach the present: a file never makes a
	// start hang.
	catchMost = 10 * time.Second
)

// doubtful is why a file is of no use. Another try does not change that.
type doubtful string

func (d doubtful) Error() string { return string(d) }

const (
	noFile       = doubtful("nothing is kept of it")
	fromContents = doubtful("the server has no versions")
	transforms   = doubtful("its objects are transformed by a function, which may be another one now")
	ofSecrets    = doubtful("Secrets are kept only with a key")
	unpackable   = doubtful("its objects cannot be packed")
)

// keepable says why a stream is not kept; nil if it is.
func (s *stream) keepable() error {
	w := s.config.Warm
	_, isClock := s.Source.(source.Clock) // its versions end with this process
	switch {
	case isClock:
		return fromContents
	case s.Transform != nil:
		return transforms
	case w.Codec.Key == nil && secret.Resource(s.Resource.Group, s.Resource.GroupVersionResource.Resource):
		return ofSecrets
	case s.Packer == nil:
		return unpackable
	}
	return nil
}

// identity is what the files of the stream say of themselves, for objects from an origin.
func (s *stream) fileIdentity(from warm.Origin) warm.Identity {
	form := string(s.Key.Form)
	if p, ok := s.Key.Form.Projection(); ok {
		form = fmt.Sprintf("%s %s %+v", object.Fields, warm.TypeOf(p.Into), p.Beside)
	}
	return warm.Identity{
		Format: warm.Format, Origin: from, Packing: s.Packer.Packing(),
		Query: warm.Query{
			Resource: s.Key.Resource, Kind: s.Resource.Kind.String(), Storage: s.Resource.Storage,
			Namespace: s.Key.Namespace, Labels: s.Key.Labels, Fields: s.Key.Fields, AnyOf: s.Key.AnyOf, Shard: s.Key.Shard, Form: form,
		},
	}
}

// askOrigin asks which server this is, for the list that is next. Where that is not known, what is
// listed is not kept.
func (s *stream) askOrigin(ctx context.Context) (from warm.Origin, err error) {
	if s.config.Warm == nil || s.keepable() != nil {
		return from, nil
	}
	ctx, cancel := context.WithTimeout(ctx, source.AskTimeout)
	defer cancel()
	s.mu.Lock()
	lists := s.progress.kept.lists
	s.progress.kept.asked = warm.Origin{}
	s.mu.Unlock()
	from, err = s.config.Warm.Origin(ctx, s.Resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && lists == s.progress.kept.lists { // else the connection is another one by now
		s.progress.kept.asked = from
	}
	return from, err
}

// disown drops what would be written: another connection follows, and files do not belong to both.
func (s *stream) disown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.kept.forget()
	s.progress.kept.asked = warm.Origin{}
}

// codec is how the files of an identity are written and read.
func (w *Warmth) codec(of warm.Identity) warm.Codec {
	c := w.Codec
	c.Member = of.Member
	return c
}

// started notes how the stream has begun; why is the reason of a plain list.
func (s *stream) started(why error) {
	how := "warm"
	if why != nil {
		how = "list: " + why.Error()
	}
	s.mu.Lock()
	before := s.progress.kept.start
	s.progress.kept.start = how
	s.mu.Unlock()
	if how == before {
		return // it was tried again
	}
	log := s.config.Logger.WithValues("resource", s.Key.Resource, "namespace", s.Key.Namespace)
	switch {
	case why == nil:
		log.V(1).Info("started from what was kept")
	case errors.Is(why, noFile), errors.Is(why, fromContents), s.Transform != nil:
		log.V(1).Info("starting with a list", "why", why.Error())
	default:
		log.Info("starting with a list, and not from what was kept", "why", why.Error())
	}
}

// missing turns the error of a store that has no such file into one that says so.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return noFile
	}
	return err
}
