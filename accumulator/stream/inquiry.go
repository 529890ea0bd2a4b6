package stream

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/lockorder"
)

// inquiry is what the server has said, stream by stream, of an own write whose answer does not
// tell what the streams show: rule 6 of package coherence.
type inquiry struct {
	streams []*stream // all that cover the key
	asked   []*stream
	answers []answer
}

// answer is what the server said when it was asked for an object as a stream would show it.
type answer struct {
	found bool
	// version is that up to which the answer speaks of what was before: that of the object, or of
	// the list where there is none.
	version string
	// since is the UID of the object if another one was written.
	since types.UID
}

// told returns an outcome that tells what became of the object: its answer, or what the server
// says when it is asked for the object. One answer is about one moment. If each stream asked for
// itself, the object might move from one to another meanwhile, and none would tell where it is.
// They do so all the same where versions say nothing, or where the server does not let the client
// list without a selector. On an error no stream shows the write.
func (w *Write) told(ctx context.Context, o Outcome) (Outcome, error) {
	s := w.set
	if !o.Unknown || s.config.ByContent {
		return o, nil
	}
	s.mu.Lock()
	streams := slices.DeleteFunc(s.over(w.resource.Storage), func(st *stream) bool { return !st.covers(o.Key) })
	s.mu.Unlock()
	if len(streams) == 0 {
		return o, nil
	}
	object, version, err := w.asking(streams).lookup(ctx, o.Key, o.Version)
	switch {
	case err != nil && refuses(err):
		return o, nil
	case err != nil:
		for _, st := range streams {
			st.unsettle(o.Key, o.Version)
		}
		return o, fmt.Errorf("ask for %s %q: %w", w.resource.Resource, o.Key, err)
	}
	now := Outcome{Write: coherence.Write{Key: o.Key, UID: o.UID, Version: version}, found: object != nil}
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
func (w *Write) asking(streams []*stream) requests {
	for _, st := range streams {
		if st.resource.GroupVersionResource == w.resource.GroupVersionResource && st.key.form == Whole {
			all := st.requests
			all.selection = metav1.ListOptions{}
			return all
		}
	}
	lockorder.CallOut("Config.Source")
	return requests{source: w.set.config.Source(w.resource, w.key.Namespace, Whole), namespace: w.key.Namespace}
}

// refuses reports whether the server will not answer, however often it is asked.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsBadRequest(err)
}

func (q *inquiry) add(st *stream, a answer) {
	q.asked, q.answers = append(q.asked, st), append(q.answers, a)
}

// settle asks the server for one object as the stream would show it.
func (w *Write) settle(ctx context.Context, st *stream, o coherence.Write, how landing) (a answer, err error) {
	object, version, err := st.requests.lookup(ctx, o.Key, o.Version)
	if err != nil {
		return a, fmt.Errorf("ask for %s %q: %w", st.key.resource, o.Key, err)
	}
	if object != nil && !st.matches(object) {
		object = nil // the server was asked for what the alternatives have in common
	}
	a = answer{version: version}
	made := coherence.Write{Key: o.Key, UID: o.UID, Version: version}
	if object != nil {
		if object.GetResourceVersion() != o.Version {
			how.by = delivered // others may have made it
		}
		made.Object, made.UID = object, object.GetUID()
		a.found, a.version = true, object.GetResourceVersion()
		if made.UID != o.UID {
			a.since = made.UID
		}
	}
	s := w.set
	s.mu.Lock()
	s.journal.Commit(w.resource.Storage, made)
	s.mu.Unlock()
	how.asked = true
	st.reach(AtSettle, o.Key)
	w.record(st, made, how)
	return a, nil
}

// settle tells the readers of unions what all answers say together (rule U4).
func (q *inquiry) settle(o Outcome, written Resource, how landing) {
	if how.by == deleted {
		q.deleted(o.Write, how)
	} else if !o.Unknown {
		q.denied(o.Write, written, how)
	}
}

// deleted: the object was deleted no later than the earliest version at which a watch or an answer
// shows that.
func (q *inquiry) deleted(w coherence.Write, how landing) {
	var by string
	for _, a := range q.answers {
		by, how.since = older(by, a.version), cmp.Or(a.since, how.since)
	}
	for _, st := range q.streams { // some watches may have shown it while others were asked
		saw, existedRV := st.saw(w)
		by, how.existedRV = older(by, saw), coherence.Newest(how.existedRV, existedRV)
	}
	how.asked = true
	for _, st := range q.asked { // each of them has answered by now
		st.settled(coherence.Write{Key: w.Key, UID: w.UID, Version: by}, how)
	}
}

// denied: the server does not have the object for selectors that only it can judge. Where all
// others of a union do not select it either, it is in none of the union's streams.
func (q *inquiry) denied(w coherence.Write, written Resource, how landing) {
	how.denied = make(denials)
	for i, st := range q.asked {
		if !q.answers[i].found {
			how.denied[st.selector.key()] = true
		}
	}
	for _, st := range q.streams {
		how := how
		if st.resource.GroupVersionResource != written.GroupVersionResource {
			how.as = nil // its fields are those of another version: only the server can judge
		}
		st.settled(coherence.Write{Key: w.Key, UID: w.UID, Version: w.Version}, how)
	}
}

// older returns the older of two versions, either of which may be unknown ("").
func older(a, b string) string {
	if a == "" || b != "" && coherence.Newer(a, b) {
		return b
	}
	return a
}
