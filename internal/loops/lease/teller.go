package lease

import (
	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/base/guard"
)

// teller tells a function how a candidate stands, whenever that has changed. It has one goroutine,
// so no two calls overlap, and each has the state as it is then: changes that come while the
// function runs are one call. A nil teller tells nobody.
type teller struct {
	f      func(Status)
	status func() Status
	log    logr.Logger
	news   chan struct{}
	end    chan struct{}
	ended  chan struct{}
}

// view is what counts as a change.
type view struct {
	holds   bool
	holder  string
	trouble bool
}

func newTeller(f func(Status), status func() Status, log logr.Logger) *teller {
	if f == nil {
		return nil
	}
	t := &teller{
		f: f, status: status, log: log,
		news: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{}),
	}
	go t.run()
	return t
}

// changed says that there may be news.
func (t *teller) changed() {
	if t == nil {
		return
	}
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// close tells what is left to tell, and waits until that is done.
func (t *teller) close() {
	if t == nil {
		return
	}
	close(t.end)
	<-t.ended
}

func (t *teller) run() {
	defer close(t.ended)
	var told view
	for over := false; !over; {
		select {
		case <-t.news:
		case <-t.end:
			over = true
		}
		s := t.status()
		now := view{s.Holds, s.Holder, s.Err != nil}
		if now == told {
			continue
		}
		told = now
		err := guard.Named("OnChange panicked", func() error {
			t.f(s)
			return nil
		})
		if err != nil {
			t.log.Error(err, "a change of the leader could not be told", guard.Attribute(err)...)
		}
	}
}
