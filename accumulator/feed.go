package accumulator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/coherence"
)

// feed drives a client-go Reflector into a stream: it is the Reflector's
// lister-watcher on one side and its store on the other. In between it sees to what
// a Reflector leaves open: the floor under lists (rule 3 of package coherence), that
// no list is served from a stale cache, errors with a name, and waiting that obeys
// its context.
type feed struct {
	stream *stream
	source cache.ListerWatcherWithContext

	calls   calls
	open    watch.Interface // the latest watch; run's goroutine alone uses it
	mu      sync.Mutex
	asked   ask
	restart context.CancelFunc // ends the running list+watch
	fresh   bool               // the next list starts from nothing
}

// ask is what the last list was asked for.
type ask struct {
	newest   bool   // the newest state, not just one that is new enough
	position string // the stream's, when it was asked
}

func (f *feed) asks(newest bool) {
	f.stream.mu.Lock()
	position := f.stream.view.Position()
	f.stream.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = ask{newest, position}
}

// steady is how long a list+watch must have lasted for its end to start the backoff
// anew.
const steady = time.Second

func newFeed(s *stream, source cache.ListerWatcherWithContext) *feed {
	return &feed{stream: s, source: source}
}

// run lists and watches until ctx ends. It is the stream's only goroutine.
func (f *feed) run(ctx context.Context) {
	defer f.calls.end()
	ctx = klog.NewContext(ctx, logr.Discard()) // transitions are logged by the stream
	backoff := f.backoff()
	reflector := f.reflector()
	for ctx.Err() == nil {
		round, cancel := context.WithCancel(ctx)
		f.mu.Lock()
		f.restart = cancel
		if f.fresh {
			f.fresh, reflector = false, f.reflector()
		}
		f.mu.Unlock()
		started := time.Now()
		err := reflector.ListAndWatchWithContext(round)
		wanted := round.Err() != nil
		cancel()
		f.opened(nil)
		f.stream.failed("list", f.named(err))
		if wanted {
			continue
		}
		if time.Since(started) > steady {
			backoff = f.backoff()
		}
		sleep(ctx, backoff.Step())
	}
}

// relist ends the running watch and starts over with a list that is no older than
// the newest own write.
func (f *feed) relist() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.restart != nil && !f.fresh {
		f.fresh = true
		f.restart()
	}
}

func (f *feed) backoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 8, Cap: 30 * time.Second}
}

func (f *feed) reflector() *cache.Reflector {
	c := f.stream.streams.config
	var lw cache.ListerWatcher = listerWatcher{f, !c.StreamLists}
	logger := logr.Discard()
	r := cache.NewReflectorWithOptions(lw, nil, store{f}, cache.ReflectorOptions{
		Name: f.stream.key.resource, TypeDescription: f.stream.key.resource, Logger: &logger,
	})
	r.WatchListPageSize = c.PageSize
	return r
}

// options narrows a request to the stream's selectors and raises its version to
// the floor.
func (f *feed) options(o *metav1.ListOptions) {
	o.LabelSelector, o.FieldSelector = f.stream.key.labels, f.stream.key.fields
	if o.Continue != "" {
		return
	}
	if o.ResourceVersion == "0" { // any state, however old
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
	if o.ResourceVersion != "" {
		floor := f.stream.streams.floor(f.stream.resource.Storage)
		o.ResourceVersion = coherence.Newest(o.ResourceVersion, floor)
		o.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
}

func (f *feed) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if !f.calls.begin() {
		return nil, context.Canceled
	}
	defer f.calls.done()
	f.options(&o)
	if o.Continue == "" {
		f.asks(o.ResourceVersion == "")
	}
	list, err := f.source.ListWithContext(ctx, o)
	if err == nil {
		f.stream.ok()
	}
	return list, err
}

// watch opens a watch. A watch that is resumed is retried here as long as the error
// may pass, so that the Reflector does not list again for a connection that broke.
func (f *feed) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if !f.calls.begin() {
		return nil, context.Canceled
	}
	defer f.calls.done()
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if initial {
		f.options(&o)
		f.asks(o.ResourceVersion == "")
	} else {
		o.LabelSelector, o.FieldSelector = f.stream.key.labels, f.stream.key.fields
	}
	backoff := f.backoff()
	for {
		w, err := f.source.WatchWithContext(ctx, o)
		switch {
		case err == nil:
			f.stream.ok()
			f.opened(w)
			return w, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case initial || !passing(err):
			return nil, opaque{err}
		}
		f.stream.failed("watch", f.named(err))
		if sleep(ctx, retryAfter(err, backoff.Step())); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// opened stops the watch before: a Reflector leaves it open where the store refused its list.
func (f *feed) opened(w watch.Interface) {
	if f.open != nil {
		f.open.Stop()
	}
	f.open = w
}

// passing reports whether resuming at the same version may yet succeed.
func passing(err error) bool {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsForbidden(err),
		apierrors.IsNotFound(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return false
	}
	return true
}

// retryAfter is the server's own advice where it gave one.
func retryAfter(err error, otherwise time.Duration) time.Duration {
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		return max(time.Duration(s)*time.Second, otherwise)
	}
	return otherwise
}

// named says what was being done when err came.
func (f *feed) named(err error) error {
	if err == nil {
		return nil
	}
	var o opaque
	if errors.As(err, &o) {
		err = o.err
	}
	if ns := f.stream.key.namespace; ns != "" {
		return fmt.Errorf("watch %s in %q: %w", f.stream.key.resource, ns, err)
	}
	return fmt.Errorf("watch %s: %w", f.stream.key.resource, err)
}

// opaque hides an error's kind from the Reflector, whose own waiting for some kinds
// does not obey the context. 410 stays visible: the Reflector knows what to do.
type opaque struct{ err error }

func (o opaque) Error() string { return o.err.Error() }

// As lets the Reflector see an expired version, and nothing else.
func (o opaque) As(target any) bool {
	if !apierrors.IsResourceExpired(o.err) && !apierrors.IsGone(o.err) && !tooLarge(o.err) {
		return false
	}
	return errors.As(o.err, target)
}

func tooLarge(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// listerWatcher is the feed as the Reflector's source.
type listerWatcher struct {
	*feed
	plain bool
}

func (l listerWatcher) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return l.list(ctx, o)
}

func (l listerWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.watch(ctx, o)
}

func (l listerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.list(context.Background(), o)
}

func (l listerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.watch(context.Background(), o)
}

// IsWatchListSemanticsUnSupported makes the Reflector list in pages.
func (l listerWatcher) IsWatchListSemanticsUnSupported() bool { return l.plain }

// store is the feed as the Reflector's destination. Errors of single events would
// only be logged by the Reflector and the version move on, so none is returned
// there.
type store struct{ feed *feed }

func (t store) Add(o any) error    { return t.feed.stream.event(o, false) }
func (t store) Update(o any) error { return t.feed.stream.event(o, false) }
func (t store) Delete(o any) error { return t.feed.stream.event(o, true) }
func (t store) Resync() error      { return nil }

func (t store) Replace(items []any, version string) error {
	t.feed.mu.Lock()
	asked := t.feed.asked
	t.feed.mu.Unlock()
	if err := t.feed.stream.replace(items, version, asked); err != nil {
		return err
	}
	t.feed.stream.ok()
	return nil
}

func (t store) Bookmark(version string) error {
	t.feed.stream.advance(version)
	return nil
}

// versionOf is the version of a whole list.
func versionOf(list runtime.Object) string {
	if m, err := meta.ListAccessor(list); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}
