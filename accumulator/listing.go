package accumulator

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
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/object"
)

// pageSize of lists where the configuration does not say: client-go's.
const pageSize = 500

// pageTimeout bounds the request of one page.
const pageTimeout = 3 * time.Minute

// initialIdle is how long a streamed list may bring nothing before the server is
// taken for one that does not stream lists: some ignore what they do not know.
const initialIdle = 30 * time.Second

// errNotStreamed says that the server does not stream lists.
var errNotStreamed = errors.New("the server does not stream lists")

// list takes in a whole list, as a stream or in pages. A streamed list goes on as the watch
// that is returned.
func (f *feed) list(ctx context.Context) (watch.Interface, error) {
	f.stream.reach(atList, Key{})
	if f.streamed {
		w, err := f.listStreamed(ctx)
		if !errors.Is(err, errNotStreamed) {
			return w, err
		}
		f.streamed = false
	}
	return nil, f.listPaged(ctx)
}

// listPaged takes the pages of one version straight into the new store. Where the
// version expires half-way, it starts over with one page of everything.
func (f *feed) listPaged(ctx context.Context) error {
	o, asked := f.options(), f.asks()
	fresh := f.stream.fresh(asked)
	if o.Limit = f.stream.streams.config.PageSize; o.Limit <= 0 {
		o.Limit = pageSize
	}
	for {
		m, err := f.page(ctx, o, func(o runtime.Object) error { return fresh.put(o) })
		if err != nil && o.Continue != "" && expired(err) {
			o.Continue, o.Limit = "", 0
			asked = f.asks()
			fresh = f.stream.fresh(asked)
			continue
		}
		if err != nil {
			return err
		}
		if o.Continue = m.Continue; o.Continue == "" {
			return f.listed(fresh, m.ResourceVersion, asked)
		}
	}
}

// page asks for a page, or, without a limit, for all of it. A server that does not answer is
// given up; its own time limit for a request is a minute.
func (f *feed) page(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
	if o.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, pageTimeout)
		defer cancel()
	}
	return f.each(ctx, o, put)
}

// ItemLister is a source that hands out the items of a list one by one, as they come, so that the list is never held
// as a whole. An error of put ends the list. What was put before an error counts for nothing.
type ItemLister interface {
	ListItems(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error)
}

// each makes one list request and hands its items to put.
func (f *feed) each(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
	return eachOf(ctx, f.source, o, put)
}

func eachOf(ctx context.Context, source cache.ListerWatcherWithContext, o metav1.ListOptions, put func(runtime.Object) error) (m metav1.ListMeta, err error) {
	if l, ok := source.(ItemLister); ok {
		return l.ListItems(ctx, o, put)
	}
	list, err := source.ListWithContext(ctx, o)
	if err != nil {
		return m, err
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		return m, fmt.Errorf("a list of %T: %w", list, err)
	}
	m.ResourceVersion, m.Continue = of.GetResourceVersion(), of.GetContinue()
	return m, meta.EachListItem(list, put)
}

// patience is how often somebody who waits for a list takes the server's advice to try later.
const patience = 5

// listPatiently lists from a source for somebody who waits: where the server says when to try again (it throttles, or is
// starting), that is done, a few times, as long as ctx allows. A feed does not: it shows what the server
// says, and goes on for ever.
func listPatiently(ctx context.Context, source cache.ListerWatcherWithContext, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
	for tried := 1; ; tried++ {
		list, err := eachOf(ctx, source, o, put)
		seconds, later := apierrors.SuggestsClientDelay(err)
		if err == nil || !later || tried == patience || ctx.Err() != nil {
			return list, err
		}
		sleep(ctx, time.Duration(seconds)*time.Second)
	}
}

// listStreamed takes the initial events of a watch into the new store, up to the bookmark that
// ends them (KEP-3157).
func (f *feed) listStreamed(ctx context.Context) (watch.Interface, error) {
	o, yes := f.options(), true
	o.SendInitialEvents, o.AllowWatchBookmarks = &yes, true
	o.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	o.TimeoutSeconds = watchSeconds()
	asked := f.asks()
	w, err := f.dial(ctx, o)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nil, fmt.Errorf("%w: %w", errNotStreamed, err)
	case err != nil:
		return nil, err
	}
	fresh := f.stream.fresh(asked)
	version, err := f.initial(ctx, w, fresh)
	if err == nil {
		err = f.listed(fresh, version, asked)
	}
	if err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// initial reads initial events. It returns the version as of which they are whole.
func (f *feed) initial(ctx context.Context, w watch.Interface, fresh listing) (string, error) {
	idle := time.NewTimer(initialIdle)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-idle.C:
			return "", fmt.Errorf("%w: nothing came for %s", errNotStreamed, initialIdle)
		case e, open := <-w.ResultChan():
			if !open {
				return "", errors.New("the connection ended in the middle of the initial list")
			}
			idle.Reset(initialIdle)
			switch e.Type {
			case watch.Added, watch.Modified:
				if err := fresh.put(e.Object); err != nil {
					return "", err
				}
			case watch.Deleted:
				if o, ok := e.Object.(Object); ok {
					delete(fresh.objects, object.KeyOf(o))
				}
			case watch.Bookmark:
				m, err := meta.Accessor(e.Object)
				if err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
					return m.GetResourceVersion(), nil
				}
			case watch.Error:
				return "", apierrors.FromObject(e.Object)
			}
		}
	}
}

// listed takes in a whole list.
func (f *feed) listed(fresh listing, version string, asked ask) error {
	f.stream.reach(atListed, Key{})
	err := f.stream.replace(fresh.objects, version, asked)
	f.doubt = errors.Is(err, errOlder)
	if err != nil {
		return err
	}
	f.version = version
	return nil
}

// listing is a list in the making: the next store.
type listing struct {
	stream  *stream
	objects map[Key]Object
	// anew: its versions may be of another history than what the stream holds.
	anew bool
}

func (s *stream) fresh(asked ask) listing { return listing{s, make(map[Key]Object), asked.doubted} }

func (l listing) put(item runtime.Object) error {
	o, ok := item.(Object)
	if !ok {
		return fmt.Errorf("unexpected %T in a list of %s", item, l.stream.key.resource)
	}
	if !l.stream.matches(o) {
		return nil
	}
	held, same := l.stream.has(o)
	if !same || l.anew {
		held = l.stream.made(o, held)
	}
	l.objects[object.KeyOf(held)] = held // what is held already is not held twice
	return nil
}
