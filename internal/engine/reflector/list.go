package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/source"
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

// doubt is what speaks for a server that was restored from a backup.
type doubt int

const (
	noDoubt    doubt = iota
	listOlder        // a list was older than an earlier answer. The next list asks the server again
	probeOlder       // a probe has found the server older. The next list may begin a new history
)

func (f *Reflector) asked() Asked { return Asked{f.sink.Progress().FloorRV, f.doubt == probeOlder} }

// loadFirst takes in a first list that does not come from the server.
func (f *Reflector) loadFirst(ctx context.Context, first First) error {
	asked := Asked{FloorRV: f.sink.Progress().FloorRV} // before any request: W1
	next, rv, err := first.Load(ctx, asked, f.sink.NewList)
	if next != nil {
		defer next.Drop()
	}
	if err != nil {
		return err
	}
	return f.commit(next, rv)
}

// list takes in a whole list, as a stream or in pages. A streamed list goes on as the watch that
// is returned.
func (f *Reflector) list(ctx context.Context) (*dialled, error) {
	f.Reach(ToList)
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

// confirm asks whether the server is as old as its list was (rule 8). If it is not, the list was
// wrong.
func (f *Reflector) confirm(ctx context.Context) error {
	floorRV := f.sink.Progress().FloorRV
	rv, err := f.newest(ctx)
	if err != nil {
		return err
	}
	f.doubt = noDoubt
	if coherence.Newer(floorRV, rv) {
		f.doubt = probeOlder
	}
	return nil
}

// listPaged takes the pages of one version straight into the next list.
func (f *Reflector) listPaged(ctx context.Context) error {
	var next List
	size := f.PageSize
	if size == 0 && f.pagesFailed {
		size = source.PageSize
	}
	rv, err := f.Requests.ListInPages(ctx, size, func() func(runtime.Object) error {
		next = f.sink.NewList(f.asked())
		return next.Put
	})
	if next != nil {
		defer next.Drop()
	}
	if ctx.Err() == nil {
		f.pagesFailed = err != nil
	}
	if err != nil {
		return err
	}
	return f.commit(next, rv)
}

// listStreamed takes the initial events of a watch into the next list, up to the bookmark that
// ends them (KEP-3157).
func (f *Reflector) listStreamed(ctx context.Context) (*dialled, error) {
	asked := f.asked()
	w, err := f.dial(ctx, f.Requests.StreamedList())
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return nil, fmt.Errorf("%w: %w", errNotStreamed, err)
	case err != nil:
		return nil, err
	}
	next := f.sink.NewList(asked)
	defer next.Drop()
	rv, err := ReadInitial(ctx, w, next)
	if err == nil {
		err = f.commit(next, rv)
	}
	if err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// ReadInitial reads the initial events of a watch into a list. It returns the version at which the
// list is complete.
func ReadInitial(ctx context.Context, w watch.Interface, next List) (rv string, err error) {
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
			e, err := source.Check(raw)
			if err == nil {
				rv, err = next.Apply(e)
			}
			idle.Reset(initialIdle) // what a user's function takes is no silence of the server
			if rv != "" || err != nil {
				return rv, err
			}
		}
	}
}

// commit puts a whole list into the sink.
func (f *Reflector) commit(next List, rv string) error {
	if err := next.Commit(rv); err != nil {
		if errors.Is(err, ErrOlder) {
			f.doubt = listOlder
		}
		return err
	}
	f.doubt, f.watchRV = noDoubt, rv
	f.dropOutdated()
	return nil
}
