package reflector

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

var (
	// errShort is the end of a watch that brought nothing new.
	errShort = errors.New("the server ended it as soon as it was open")
	// errResidue asks for a list: something waits for a version that the watch does not show.
	errResidue = errors.New("the watch is silent, and own writes wait for it")
)

// dialled is an open watch, and the number of exchanges of the connection before it.
type dialled struct {
	*source.Watch
	move int64
}

// dial opens a watch.
func (f *Reflector) dial(ctx context.Context, o metav1.ListOptions) (*dialled, error) {
	move := f.hand.moves.Load() // before the request
	w, err := f.Requests.Dial(ctx, o)
	if err != nil {
		return nil, err
	}
	return &dialled{w, move}, nil
}

// follow reads w, if there is one, and then one watch after the other, each from the version at
// which the one before ended. why is the reason for the first one. It returns when only a new list
// helps.
func (f *Reflector) follow(ctx context.Context, w *dialled, why watchReason) error {
	var last ending
	for {
		if w == nil {
			var err error
			if w, err = f.open(ctx, last); err != nil {
				return err
			}
		}
		f.counts.watches[why].Add(1)
		got := f.read(ctx, w)
		if w.move != f.hand.moves.Load() {
			// The old watch may have ended with its credentials before the new connection was
			// known.
			got = result{ending: moved}
		}
		last, why = got.ending, endings[got.ending].reason
		old := w
		if got.ending != moved {
			old.Stop() // a pause may be next
		}
		var err error
		if w, err = f.next(ctx, got); got.ending == moved {
			old.Stop()
		}
		if err != nil {
			return err
		}
	}
}

// next is what follows a watch, by the table. It returns the next watch if that is open already,
// and an error where only a new list helps.
func (f *Reflector) next(ctx context.Context, got result) (*dialled, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case got.ending == moved:
		return f.exchange(ctx)
	}
	if got.unheard() {
		f.sink.Unheard()
	}
	switch {
	case endings[got.ending].list:
		return nil, got.err
	case got.err != nil:
		f.sink.Failed(ToWatch, f.Requests.Named(got.err))
	case got.futile(): // a pause is next, without a watch
		f.sink.Failed(ToWatch, f.Requests.Named(errShort))
	}
	if got.resets() {
		f.resetPauses()
	}
	switch {
	case !got.futile():
		f.garbled = 0
		return nil, nil
	case got.ending != garbled:
	case f.garbled+1 == garbledMost:
		f.garbled = 0
		return nil, got.err
	default:
		f.garbled++
	}
	f.pause(ctx, got.err)
	return nil, nil
}

// read takes in what a watch brings until it ends.
func (f *Reflector) read(ctx context.Context, w *dialled) (got result) {
	quiet := time.NewTimer(f.IdleTimeout)
	defer quiet.Stop()
	started, fromRV := time.Now(), f.sink.Progress().PositionRV
	defer func() {
		got.lasted = time.Since(started)
		if got.brought != nothing && (!coherence.Comparable(fromRV) || coherence.Newer(f.sink.Progress().PositionRV, fromRV)) {
			got.brought = news
		}
		if got.ending == inTime {
			got.ending = endingOf(got.err, got.lasted)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return got
		case <-quiet.C:
			got.ending = silent
			return got
		case <-f.hand.moved:
			if f.movedSince(w) {
				got.ending = moved
				return got
			}
		case raw, open := <-w.ResultChan():
			if !open {
				return got
			}
			e, err := source.Check(raw)
			if err == nil {
				err = f.sink.Apply(e)
			}
			if err != nil {
				got.err = err
				return got
			}
			f.watchRV, got.brought = e.RV, oldNews
			quiet.Reset(f.IdleTimeout)
		}
	}
}

// open opens the next watch. It retries errors that may pass, so that a broken connection costs no
// list. The pauses of an outage do not count for what follows: neither for a list that the server
// asks for, nor for the next watch.
func (f *Reflector) open(ctx context.Context, after ending) (*dialled, error) {
	pace := f.pace
	if after == silent {
		f.Suspect()
	}
	for probe := endings[after].probe; ; probe = true {
		w, err := f.tryOpen(ctx, probe, after == silent)
		switch {
		case err == nil:
			f.pace = pace // the watch may still say that its version is too old: the list is not to wait
			f.sink.Opened(w.FromRV)
			return w, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !passing(err):
			f.pace = pace
			return nil, err
		}
		f.sink.Failed(ToWatch, f.Requests.Named(err))
		if f.pause(ctx, err); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (f *Reflector) tryOpen(ctx context.Context, probe, wasSilent bool) (*dialled, error) {
	if probe {
		if err := f.probe(ctx, wasSilent); err != nil {
			return nil, err
		}
	}
	if w := f.handedOver(); w != nil {
		return w, nil
	}
	f.Reach(ToWatch)
	return f.dial(ctx, f.Requests.WatchFrom(f.resumeRV()))
}

// resumeRV is the version that the watch goes on from.
func (f *Reflector) resumeRV() string {
	if rv := f.sink.Progress().PositionRV; coherence.Comparable(rv) {
		return rv
	}
	return f.watchRV
}

// newest asks the server for its newest version.
func (f *Reflector) newest(ctx context.Context) (rv string, err error) {
	ctx, cancel := context.WithTimeout(ctx, source.OpenTimeout)
	defer cancel()
	now, err := f.Requests.Newest(ctx)
	if err == nil {
		err = source.CheckListVersion(now.RV, f.sink.Progress().PositionRV)
	}
	return now.RV, err
}

// probe asks the server for its newest version (rule 8). A new list is needed if that is older
// than what the server has shown or has answered a write with, or if the server was silent while
// something waits for it.
func (f *Reflector) probe(ctx context.Context, wasSilent bool) error {
	if !coherence.Comparable(f.resumeRV()) {
		return nil
	}
	floorRV := f.sink.Progress().FloorRV
	newestRV, err := f.newest(ctx)
	switch {
	case err != nil:
		return err
	case coherence.Newer(floorRV, newestRV):
		f.doubt = probeOlder
		return ErrOlder
	case wasSilent && f.sink.Progress().Owed:
		return errResidue
	}
	return nil
}

// passing reports whether resuming at the same version may yet succeed.
func passing(err error) bool {
	return !errors.Is(err, ErrOlder) && !errors.Is(err, errResidue) && !source.Expired(err) &&
		!apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) && !object.Misplaced(err)
}
