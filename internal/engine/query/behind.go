package query

import (
	"context"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// When a kind is served in another version, each object that is named gets another watch. Another
// reader may have had that watch for long, and it may be behind what was shown. So nothing is
// taken from it before it has passed what the former one had (G5).

// floorFor returns how new the next watch of an object has to be, that of a resource. Versions
// compare within one stored resource. Called with the lock of the query held.
func (ref *reference) floorFor(r object.Resource) position {
	floor := ref.floor
	if floor.storage != r.Storage {
		floor = position{storage: r.Storage}
	}
	if ref.watch != nil && ref.watch.Storage() == r.Storage {
		rv, deletion := ref.watch.Newest()
		floor.rv, floor.deletion = coherence.Newest(floor.rv, rv), max(floor.deletion, deletion)
	}
	return floor
}

// behind reports whether what watches an object may be older than what the reader has had. Called
// with mu held.
func (r *references) behind(ref *reference) bool {
	if ref.watch == nil {
		return false
	}
	st := ref.watch.State()
	return st.Ready() && (ref.floor.deletion > 0 || coherence.Newer(ref.floor.rv, st.PositionRV))
}

func (r *references) isBehind(ref *reference) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.behind(ref)
}

func (r *references) Late() (all []Late) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range r.named {
		if r.behind(ref) {
			all = append(all, lateReference{r, ref})
		}
	}
	return all
}

// lateReference is an object that is named, whose watch is late.
type lateReference struct {
	of  *references
	ref *reference
}

func (lateReference) Patience() time.Duration { return catchUpAfter }

func (l lateReference) CatchUp(ctx context.Context) (ok bool) {
	r := l.of
	r.mu.Lock()
	behind, floor, watch := r.behind(l.ref), l.ref.floor, l.ref.watch
	r.mu.Unlock()
	if behind {
		backTo, err := catchUp(ctx, watch, floor)
		if err != nil {
			return false
		}
		if backTo != "" {
			watch.WentBack(backTo)
		}
		r.mu.Lock()
		if l.ref.floor == floor {
			l.ref.floor = position{}
			r.breaks |= when(backTo != "", NewHistory)
		}
		r.mu.Unlock()
	}
	r.fresh.note(l.ref) // a bookmark may have moved it on, of which nobody is told
	return true
}

// catchUp asks the server on behalf of a stream that has to be as new as something that was shown.
// It returns the version of the server's list if that is older: the server's history went back.
func catchUp(ctx context.Context, l *stream.Listener, at position) (backTo string, err error) {
	to := at.rv
	if at.deletion > 0 {
		to = "" // the present
	}
	listRV, err := l.CatchUp(ctx, to)
	if err == nil && coherence.Comparable(listRV) && coherence.Newer(at.rv, listRV) {
		backTo = listRV
	}
	return backTo, err
}
