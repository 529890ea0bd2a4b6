package reflector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/engine/source"
)

// server answers the reflector of a test, and notes what it is asked for after the first watch.
type server struct {
	mu       sync.Mutex
	newestRV string
	first    func(w *watch.RaceFreeFakeWatcher) // what happens on the first watch; the others stay open
	again    bool                               // the same happens on all
	refusals int                                // how many lists the server still refuses
	watches  int
	ended    time.Time // when the reflector has ended the first watch
	asked    []string
	probes   int
	pause    time.Duration // between that and the first request
}

func (s *server) note(what string) {
	switch {
	case s.ended.IsZero():
		return
	case len(s.asked) == 0:
		s.pause = time.Since(s.ended)
	}
	s.asked = append(s.asked, what)
}

func (s *server) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := "list"
	if o.Limit == 1 {
		what = "probe"
		s.probes++
	}
	s.note(what)
	if what == "list" && !s.ended.IsZero() && s.refusals > 0 {
		s.refusals--
		return nil, apierrors.NewInternalError(errors.New("away"))
	}
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion(s.newestRV)
	return list, nil
}

func (s *server) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("watch " + o.ResourceVersion)
	w := watch.NewRaceFreeFake()
	context.AfterFunc(ctx, w.Stop)
	if s.watches++; s.watches == 1 || s.again {
		go s.first(w)
	}
	if s.watches == 1 {
		return &firstWatch{w, s}, nil
	}
	return w, nil
}

// firstWatch notes when the reflector ends it.
type firstWatch struct {
	*watch.RaceFreeFakeWatcher
	server *server
}

func (w *firstWatch) Stop() {
	w.server.mu.Lock()
	w.server.ended = time.Now()
	w.server.mu.Unlock()
	w.RaceFreeFakeWatcher.Stop()
}

// requests waits for the first requests after the first watch.
func (s *server) requests(n int) []string {
	for {
		s.mu.Lock()
		all := slices.Clone(s.asked)
		s.mu.Unlock()
		if len(all) >= n {
			return all[:n]
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// start runs a reflector until the test ends.
func (s *server) start(t *testing.T, to Sink) *Reflector {
	f := s.reflector(to)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}

const idleTimeout = 130 * time.Second

func (s *server) reflector(to Sink) *Reflector {
	return New(to, Config{
		Requests: source.Requests{Resource: "things", Source: source.Plain{ListerWatcherWithContext: &cache.ListWatch{
			ListWithContextFunc: s.list, WatchFuncWithContext: s.watch,
		}}},
		PageSize: 500, IdleTimeout: idleTimeout, KindPoll: time.Second, Suspect: func() {},
		Lost:       func(context.Context, error) bool { return false },
		BeforeList: func(context.Context) {},
		Reach:      func(Request) {},
	})
}

// sink notes what it is told.
type sink struct {
	mu      sync.Mutex
	mark    Progress
	full    bool
	doubted bool // of the last list
}

func (s *sink) NewList(a Asked) List { return &list{sink: s, asked: a} }

func (s *sink) Apply(e source.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return source.ErrTooMany
	}
	s.mark.PositionRV, s.mark.FloorRV = e.RV, e.RV
	return nil
}

func (s *sink) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mark
}

func (s *sink) Opened(string) {}
func (s *sink) Unheard()      {}
func (s *sink) Gone(error)    {}

func (s *sink) Failed(Request, error) {}

type list struct {
	sink  *sink
	asked Asked
}

func (l *list) Put(runtime.Object) error           { return nil }
func (l *list) Apply(source.Event) (string, error) { return "", nil }
func (l *list) Drop()                              {}
func (l *list) Commit(rv string) error {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	l.sink.mark.PositionRV, l.sink.mark.FloorRV, l.sink.doubted = rv, rv, l.asked.Doubted
	return nil
}

func bookmark(rv string) runtime.Object {
	o := &unstructured.Unstructured{}
	o.SetResourceVersion(rv)
	return o
}

func status(err *apierrors.StatusError) runtime.Object { return &err.ErrStatus }

var (
	gone = status(apierrors.NewResourceExpired("too old"))
	away = status(apierrors.NewGenericServerResponse(http.StatusInternalServerError, "watch", schema.GroupResource{}, "", "", 0, false))
)

// closed is a watch that the server ends after a time.
func closed(after time.Duration) func(*watch.RaceFreeFakeWatcher) {
	return func(w *watch.RaceFreeFakeWatcher) {
		time.Sleep(after)
		w.Stop()
	}
}

func sends(o runtime.Object) func(*watch.RaceFreeFakeWatcher) {
	return func(w *watch.RaceFreeFakeWatcher) { w.Error(o) }
}

// afterNews is a watch that brings something new before it does something else.
func afterNews(then func(*watch.RaceFreeFakeWatcher)) func(*watch.RaceFreeFakeWatcher) {
	return func(w *watch.RaceFreeFakeWatcher) {
		w.Action(watch.Bookmark, bookmark("11"))
		then(w)
	}
}

func garbles(w *watch.RaceFreeFakeWatcher) { w.Action("ODD", bookmark("11")) }

func idles(*watch.RaceFreeFakeWatcher) {}

func lasts(w *watch.RaceFreeFakeWatcher) {
	for range 5 {
		time.Sleep(time.Minute)
		w.Action(watch.Bookmark, bookmark("10"))
	}
	w.Stop()
}

// TestEachEndingIsFollowedByWhatTheTableSays walks the table of endings.
func TestEachEndingIsFollowedByWhatTheTableSays(t *testing.T) {
	full := func(s *sink, _ *server) { s.full = true }
	owed := func(s *sink, _ *server) { s.mark.Owed = true }
	at11 := func(_ *sink, v *server) { v.newestRV = "11" }
	restored := func(_ *sink, v *server) { v.newestRV = "9" }
	for _, c := range []struct {
		name    string
		first   func(*watch.RaceFreeFakeWatcher)
		set     func(*sink, *server) // once the first watch is open
		pause   bool
		want    []string
		reason  string // of the next watch
		doubted bool   // a list may begin a new history
	}{
		{name: "in time", first: lasts, want: []string{"watch 10"}, reason: "ended"},
		{name: "early, and it lasted", first: closed(2 * time.Second), want: []string{"probe", "watch 10"}, reason: "short"},
		{name: "early, at once", first: closed(0), pause: true, want: []string{"probe", "watch 10"}, reason: "short"},
		{name: "early, with news", first: afterNews(closed(0)), set: at11, want: []string{"probe", "watch 11"}, reason: "short"},
		{name: "silent", first: idles, want: []string{"probe", "watch 10"}, reason: "idle"},
		{name: "silent, and something waits", first: idles, set: owed, want: []string{"probe", "list"}},
		{name: "failed", first: sends(away), pause: true, want: []string{"probe", "watch 10"}, reason: "error"},
		{name: "failed, with news", first: afterNews(sends(away)), set: at11, want: []string{"probe", "watch 11"}, reason: "error"},
		{name: "garbled", first: garbles, pause: true, want: []string{"probe", "watch 10"}, reason: "error"},
		{name: "garbled, with news", first: afterNews(garbles), set: at11, want: []string{"probe", "watch 11"}, reason: "error"},
		{name: "expired", first: sends(gone), pause: true, want: []string{"list"}},
		{name: "full", first: afterNews(idles), set: full, pause: true, want: []string{"list"}},
		{name: "restored", first: closed(2 * time.Second), set: restored, want: []string{"probe", "list"}, doubted: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, s, open := &server{newestRV: "10"}, &sink{}, make(chan struct{})
				v.first = func(w *watch.RaceFreeFakeWatcher) {
					<-open
					c.first(w)
				}
				f := v.start(t, s)
				synctest.Wait()
				if c.set != nil {
					c.set(s, v)
				}
				close(open)
				got := v.requests(len(c.want))
				synctest.Wait()
				assert.Equal(t, c.want, got)
				assert.Equal(t, c.pause, v.pause > 0, "the first request came %s after the watch", v.pause)
				assert.Equal(t, c.doubted, s.doubted)
				if c.reason != "" {
					assert.EqualValues(t, 1, f.Watches()[c.reason], "%v", f.Watches())
				}
			})
		})
	}
}

// TestG5AListThatFailsAfterAProbeIsFollowedByAProbe: the server may be another one by then.
func TestG5AListThatFailsAfterAProbeIsFollowedByAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := &server{newestRV: "10", first: closed(2 * time.Second), refusals: 2}, &sink{}
		v.start(t, s)
		synctest.Wait()
		v.mu.Lock()
		v.newestRV = "9"
		v.mu.Unlock()
		assert.Equal(t, []string{"probe", "list", "probe", "list"}, v.requests(4))
		v.mu.Lock()
		v.newestRV = "11" // it was no restored server
		v.mu.Unlock()
		assert.Equal(t, []string{"probe", "list"}, v.requests(6)[4:])
		synctest.Wait()
		assert.False(t, s.doubted, "a list that begins a new history")
	})
}

// slowList is a list whose objects take long to take in.
type slowList struct {
	list
	left int
}

func (l *slowList) Apply(source.Event) (string, error) {
	time.Sleep(initialIdle + time.Second)
	if l.left--; l.left == 0 {
		return "10", nil
	}
	return "", nil
}

// TestASlowTransformIsNoSilenceOfTheServer: the server has sent what is taken in.
func TestASlowTransformIsNoSilenceOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, next := watch.NewRaceFreeFake(), &slowList{left: 7}
		for range next.left {
			w.Add(bookmark("10"))
		}
		rv, err := ReadInitial(t.Context(), w, next)
		assert.NoError(t, err)
		assert.Equal(t, "10", rv)
		w.Stop()
	})
}

// TestWatchesThatCannotBeReadEndInAList: a list shows what no watch can.
func TestWatchesThatCannotBeReadEndInAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := &server{newestRV: "10", first: garbles, again: true}, &sink{}
		f := v.start(t, s)
		var want []string
		for range 3 {
			want = append(want, "probe", "watch 10")
		}
		assert.Equal(t, append(want, "list"), v.requests(7))
		synctest.Wait()
		assert.EqualValues(t, 1, f.Lists()["unreadable"], "%v", f.Lists())
	})
}

// TestAnExchangeOfTheConnectionEndsNoWatchBeforeTheNext: the watch that was opened before is read,
// without a request; where there is none, one is opened after a probe.
func TestAnExchangeOfTheConnectionEndsNoWatchBeforeTheNext(t *testing.T) {
	for _, tried := range []bool{true, false} {
		t.Run(fmt.Sprintf("opened before: %t", tried), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, s := &server{newestRV: "10", first: idles}, &sink{}
				f := v.start(t, s)
				synctest.Wait()
				var next *Opened
				if tried {
					var err error
					next, err = f.OpenElsewhere(t.Context(), false)
					assert.NoError(t, err)
				}
				f.HandOver(next)
				synctest.Wait()
				assert.False(t, v.ended.IsZero(), "the old watch has ended")
				assert.Empty(t, v.asked, "before the next one was open")
				assert.Equal(t, 2, v.watches)
				assert.Equal(t, !tried, v.probes == 1)
				assert.EqualValues(t, 1, f.Watches()["moved"], "%v", f.Watches())
			})
		})
	}
}

// TestAWatchThatIsHandedOverWhileAnotherIsDialledIsNotLeftOpen: the dialled one is over the new
// connection, too, and is read.
func TestAWatchThatIsHandedOverWhileAnotherIsDialledIsNotLeftOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := &server{newestRV: "10", first: idles}, &sink{}
		f := v.reflector(s)
		var next *Opened
		f.Reach = func(to Request) {
			if to != ToWatch || next != nil {
				return
			}
			var err error
			next, err = f.OpenElsewhere(t.Context(), false)
			assert.NoError(t, err)
			f.HandOver(next)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.Run(ctx)
		}()
		synctest.Wait()
		select {
		case _, open := <-next.ResultChan():
			assert.False(t, open)
		default:
			assert.Fail(t, "it is open, and nobody reads it")
		}
		assert.Equal(t, 2, v.watches)
		cancel()
		<-ended
	})
}
