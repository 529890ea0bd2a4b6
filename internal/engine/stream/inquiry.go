package stream

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// resolveOutcome returns an outcome that tells what became of the object: its answer, or what the
// server says when it is asked for the object, once for all streams. Each stream asks for itself
// where versions say nothing, or where the server does not let the client list without a selector.
// On an error no stream shows the write.
func (w *Write) resolveOutcome(ctx context.Context, o intake.Outcome) (intake.Outcome, error) {
	s := w.set
	if !o.Unknown {
		return o, nil
	}
	s.mu.Lock()
	streams := slices.DeleteFunc(s.over(w.resource.Storage), func(st *stream) bool { return !st.Covers(o.Key) })
	s.mu.Unlock()
	if len(streams) == 0 {
		return o, nil
	}
	object, version, err := w.asking(streams).Lookup(ctx, o.Key, o.Version)
	switch {
	case err != nil && refuses(err):
		return o, nil
	case err != nil:
		for _, st := range streams {
			st.unsettle(o.Key, o.Version)
		}
		return o, fmt.Errorf("ask for %s %q: %w", w.resource.Resource, o.Key, err)
	}
	now := intake.Outcome{Write: coherence.Write{Key: o.Key, UID: o.UID, Version: version}, Found: object != nil}
	if object != nil {
		now.UID, now.Version, now.Object = object.GetUID(), object.GetResourceVersion(), object
	}
	if !coherence.Comparable(now.Version) {
		return o, nil
	}
	return now, nil
}

// asking is how to ask for an object without a selector: as one of the streams does, which knows
// what the server's lists look like, or with a source of its own.
func (w *Write) asking(streams []*stream) source.Requests {
	for _, st := range streams {
		if st.Resource.GroupVersionResource == w.resource.GroupVersionResource && st.Key.Form == object.Whole {
			all := st.requests
			all.Selection = metav1.ListOptions{}
			return all
		}
	}
	lockorder.CallOut("Config.Source")
	return source.Requests{Source: w.set.config.Source(w.resource, w.key.Namespace, object.Whole), Namespace: w.key.Namespace}
}

// refuses reports whether the server will not answer, however often it is asked.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsBadRequest(err)
}

// settle asks the server for one object as the stream would show it: rule 6 of package coherence.
func (w *Write) settle(ctx context.Context, st *stream, o coherence.Write, by cause) error {
	object, version, err := st.requests.Lookup(ctx, o.Key, o.Version)
	if err != nil {
		return fmt.Errorf("ask for %s %q: %w", st.Key.Resource, o.Key, err)
	}
	made := coherence.Write{Key: o.Key, UID: o.UID, Version: version}
	if object != nil && st.Matches(object) { // it was asked for what the alternatives have in common
		if object.GetResourceVersion() != o.Version {
			by = delivered // others may have made it
		}
		made.Object, made.UID = object, object.GetUID()
	}
	s := w.set
	s.mu.Lock()
	s.journal.Commit(w.resource.Storage, made)
	s.mu.Unlock()
	st.reach(AtSettle, o.Key)
	w.record(st, made, by)
	return nil
}
