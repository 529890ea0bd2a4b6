package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// initialIdle is how long a streamed list may bring nothing before the server counts as one that
// does not stream lists: some servers ignore what they do not know.
const initialIdle = 30 * time.Second

// initialMost is how long a streamed list may take. The live events of a busy kind look like
// initial events. A server ends a watch after five minutes at the earliest, and with it a list
// that it streams: a longer one has to come in pages in any case.
const initialMost = 4 * time.Minute

// errNotStreamed says that the server does not stream lists.
var errNotStreamed = errors.New("the server does not stream lists")

// list takes in a whole list, as a stream or in pages. A streamed list goes on as the watch that
// is returned.
func (f *reflector) list(ctx context.Context) (*dialled, error) {
	f.target.reach(AtList, object.Key{})
	defer f.target.listing(0)
	if f.doubt == listOlder {
		if err := f.confirm(ctx); err != nil {
			return nil, err
		}
	}
	if f.streamed {
		w, err := f.listStreamed(ctx)
		if !errors.Is(err, errNotStreamed) {
			return w, err
		}
		f.streamed = false
	}
	return nil, f.listPaged(ctx)
}

// listPaged takes the pages of one version straight into the next store.
func (f *reflector) listPaged(ctx context.Context) error {
	var asked ask
	var next listing
	rv, err := f.requests.ListInPages(ctx, f.config.PageSize, func() func(runtime.Object) error {
		asked = f.asks()
		next = f.target.begin(asked.doubted)
		next.paged = true
		return next.put
	})
	if err != nil {
		return err
	}
	return f.listed(next, rv, asked)
}

// listStreamed takes the initial events of a watch into the next store, up to the bookmark that
// ends them (KEP-3157).
func (f *reflector) listStreamed(ctx context.Context) (*dialled, error) {
	asked := f.asks()
	w, err := f.dial(ctx, f.requests.StreamedList())
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return nil, fmt.Errorf("%w: %w", errNotStreamed, err)
	case err != nil:
		return nil, err
	}
	next := f.target.begin(asked.doubted)
	rv, err := initial(ctx, w, next)
	if err == nil {
		err = f.listed(next, rv, asked)
	}
	if err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// initial reads initial events. It returns the version at which they are complete.
func initial(ctx context.Context, w watch.Interface, next listing) (rv string, err error) {
	idle, late := time.NewTimer(initialIdle), time.NewTimer(initialMost)
	defer idle.Stop()
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-idle.C:
			return "", fmt.Errorf("%w: nothing came for %s", errNotStreamed, initialIdle)
		case <-late.C:
			return "", fmt.Errorf("%w: the list was incomplete after %s", errNotStreamed, initialMost)
		case raw, open := <-w.ResultChan():
			if !open {
				return "", errors.New("the connection ended in the middle of the initial list")
			}
			idle.Reset(initialIdle)
			e, err := source.Check(raw)
			if err == nil {
				rv, err = next.initial(e)
			}
			if rv != "" || err != nil {
				return rv, err
			}
		}
	}
}

// initial takes in an event of a streamed list. It returns the version of the bookmark that ends
// the list.
func (l listing) initial(e source.Event) (rv string, err error) {
	switch e.Type {
	case watch.Bookmark:
		m, err := meta.Accessor(e.Object)
		if err != nil || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
			return "", nil
		}
		if e.RV == "" || e.RV == "0" {
			return "", source.Garbled{Cause: fmt.Errorf("the list ends with a bookmark at version %q, which is no version", e.RV)}
		}
		return e.RV, nil
	case watch.Deleted:
		o, err := l.stream.Checked(e.Object)
		if err == nil {
			l.remove(object.KeyOf(o), o)
		}
		return "", err
	}
	return "", l.put(e.Object)
}

// listed takes in a whole list.
func (f *reflector) listed(next listing, rv string, asked ask) error {
	f.target.reach(AtListed, object.Key{})
	f.step.Begin()
	err := f.target.commit(next, rv, asked)
	f.step.End()
	if err != nil {
		if errors.Is(err, errOlder) {
			f.doubt = listOlder
		}
		return err
	}
	f.doubt = noDoubt
	f.watchRV = rv
	f.outdated()
	return nil
}

// listing is the next store in the making.
type listing struct {
	stream    *stream
	objects   map[object.Key]object.Object
	namesakes *namesakes
	// compared are the items of a version that the stream holds. It lacks those that are the held
	// object by now.
	compared map[object.Key]comparison
	// others hold other shares of the same objects.
	others []*stream
	// newHistory: its versions may not compare with those of what the stream holds.
	newHistory bool
	// paged: each object comes once. A streamed list may bring its next version, too.
	paged bool
	// from is the file that the list comes from; nil: it comes from the server.
	from *baseFile
}

// begin starts a listing. The one before is given up.
func (s *stream) begin(newHistory bool) listing {
	s.listing(0)
	s.ListBegins()
	return listing{
		stream: s, objects: make(map[object.Key]object.Object), namesakes: &namesakes{}, compared: make(map[object.Key]comparison),
		newHistory: newHistory, others: s.set.otherShares(s),
	}
}

// put takes in an item of the list.
func (l listing) put(item runtime.Object) error {
	l.stream.Step.Begin()
	defer l.stream.Step.End()
	o, err := l.stream.Checked(item)
	if err != nil {
		return err
	}
	key := object.KeyOf(o)
	before, again := l.objects[key]
	if !l.stream.Matches(o) {
		if again && !l.paged { // a streamed list brings the version with which it leaves the query
			l.remove(key, o)
		}
		return nil
	}
	if again && l.paged && !object.Ambiguous(key) {
		return fmt.Errorf("the server sends %q twice in one list", key)
	}
	held, same := l.stream.has(o)
	switch {
	case !same || l.newHistory:
		made := l.made(o, held)
		l.stream.tally.taken(made)
		l.objects[key] = l.namesakes.add(key, before, made)
	default:
		now := l.stream.ReuseIfEqual(o, held)
		l.objects[key] = l.namesakes.add(key, before, now) // what is held already is not held twice
		if now != held {
			l.compared[key] = comparison{with: held}
		}
	}
	l.stream.tally.listed.Store(int64(l.size()))
	return l.stream.admit(l.size())
}

// size is how many objects the list has.
func (l listing) size() int { return len(l.objects) + l.namesakes.more }

// remove takes in the deletion of an object; nil stands for whatever has the key.
func (l listing) remove(key object.Key, o object.Object) {
	delete(l.compared, key)
	if left := l.namesakes.drop(key, l.objects[key], o); left != nil {
		l.objects[key] = left
	} else {
		delete(l.objects, key)
	}
	l.stream.listing(l.size())
}
