package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kates-go/kates/kates"
)

// state is what an object was from a version on.
type state struct {
	objectRV uint64
	uid      types.UID
	gone     bool
	leaving  bool // it has a deletionTimestamp
	labels   labels.Set
	fields   fields.Set
	content  uint64
	// stripped is a hash of the content after strip, if somebody needs it.
	stripped uint64
	note     string // for people who look into a failure
}

// history holds all states of the world's objects. They come from the server by watches that are
// neither delayed nor cut.
type history struct {
	mu     sync.Mutex
	states map[id][]state // by version
	byUID  map[types.UID]uint64
	strips bool
	plain  func(*kates.Unstructured) *kates.Unstructured // as of the world
}

func (w *world) newHistory() *history {
	return &history{states: map[id][]state{}, byUID: map[types.UID]uint64{}, strips: w.strips, plain: w.plain}
}

// follow starts the history. It ends with ctx.
func (w *world) follow(ctx context.Context, t *testing.T, tasks *sync.WaitGroup) *history {
	t.Helper()
	h := w.newHistory()
	for _, gvr := range worldKinds {
		for _, ns := range w.namespaces {
			in := w.others.Resource(gvr).Namespace(ns)
			list, err := in.List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			require.Empty(t, list.Items)
			watches := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return in.Watch(ctx, o) }}
			events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watches)
			require.NoError(t, err)
			tasks.Go(func() {
				for e := range events.ResultChan() {
					h.take(gvr, e)
				}
				<-events.Done()
			})
		}
	}
	return h
}

func (h *history) take(gvr schema.GroupVersionResource, e watch.Event) {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type == watch.Bookmark || e.Type == watch.Error {
		return
	}
	h.add(gvr.Resource, u, e.Type)
}

// add adds what an object is from its version on.
func (h *history) add(resource string, u *unstructured.Unstructured, what watch.EventType) {
	s := state{objectRV: number(u.GetResourceVersion()), uid: u.GetUID(), gone: what == watch.Deleted, leaving: u.GetDeletionTimestamp() != nil, labels: u.GetLabels(), content: contentAs(h.plain, u)}
	s.note = fmt.Sprintf("%s, finalizers %v, deleted %v", what, u.GetFinalizers(), u.GetDeletionTimestamp())
	if grace := u.GetDeletionGracePeriodSeconds(); grace != nil {
		s.note += fmt.Sprintf(", grace %d", *grace)
	}
	text := func(path ...string) string {
		text, _, _ := unstructured.NestedString(u.Object, path...)
		return text
	}
	s.fields = fields.Set{"spec.nodeName": text("spec", "nodeName"), "status.phase": text("status", "phase"), "spec.hostname": text("spec", "hostname")}
	k := id{resource, u.GetNamespace(), u.GetName()}
	if h.strips {
		if err := strip.Apply(u); err != nil {
			panic(err)
		}
		s.stripped = contentAs(h.plain, u)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states[k] = append(h.states[k], s)
	if s.gone {
		h.byUID[s.uid] = s.objectRV
	}
}

// contentAs is a hash of what plain leaves of an object.
func contentAs(plain func(*kates.Unstructured) *kates.Unstructured, u *kates.Unstructured) uint64 {
	if plain != nil {
		u = plain(u)
	}
	return content(u)
}

// content is a hash of a whole object.
func content(u *kates.Unstructured) uint64 {
	text, err := json.Marshal(u.Object)
	if err != nil {
		panic(err)
	}
	hash := fnv.New64a()
	_, _ = hash.Write(text)
	return hash.Sum64()
}

// reaches waits until the history has a state of the object at a version.
func (h *history) reaches(t *testing.T, k id, targetRV uint64) {
	t.Helper()
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		s := h.states[k]
		return len(s) > 0 && s[len(s)-1].objectRV >= targetRV
	}, patience, 5*time.Millisecond)
}

// bound returns the version from which an own write is in effect. If answers may be unreadable, a
// deletion that was answered without the object may have left it terminating: nobody learned
// that. Then somebody else's write ends it later, or nothing does.
func (h *history) bound(e written, unreadable bool) (uint64, error) {
	if e.objectRV != 0 {
		return e.objectRV, nil
	}
	unreadable = unreadable && e.bare
	if v, ok := h.byUID[e.uid]; ok && !unreadable {
		return v, nil
	}
	leaving := false
	for _, s := range h.states[e.id] { // the first deletion that can be ours
		ours := s.uid == e.uid || e.uid == "" && s.objectRV > e.afterRV
		switch {
		case s.gone && ours && unreadable && leaving:
			return e.afterRV, nil // or somebody else removed the last finalizer
		case s.gone && ours:
			return s.objectRV, nil
		}
		leaving = s.leaving && !s.gone
	}
	if unreadable && slices.ContainsFunc(h.states[e.id], func(s state) bool { return s.leaving && (s.uid == e.uid || e.uid == "") }) {
		return e.afterRV, nil
	}
	return 0, fmt.Errorf("%+v was answered as deleted, and never was: %+v", e, h.states[e.id])
}

func TestADeletionWithAnUnreadableAnswerMayHaveLeftTheObjectTerminating(t *testing.T) {
	k := id{"hosts", "ns", "a"}
	there, leaving, gone := state{objectRV: 5, uid: "u"}, state{objectRV: 7, uid: "u", leaving: true}, state{objectRV: 9, uid: "u", gone: true}
	for name, c := range map[string]struct {
		states []state
		uid    types.UID
		unread bool
		want   uint64 // 0: an error
	}{
		"it is gone":                              {[]state{there, gone}, "u", false, 9},
		"it is gone, unread":                      {[]state{there, gone}, "u", true, 9},
		"it is gone, whichever it was":            {[]state{there, gone}, "", true, 9},
		"it never goes":                           {[]state{there, leaving}, "u", false, 0},
		"it never goes, unread":                   {[]state{there, leaving}, "u", true, 6},
		"it never goes, whichever it was":         {[]state{there, leaving}, "", true, 6},
		"it is not even leaving":                  {[]state{there}, "u", true, 0},
		"another is leaving":                      {[]state{there, leaving}, "v", true, 0},
		"somebody else ends it":                   {[]state{there, leaving, gone}, "u", true, 6},
		"somebody else ends it, whichever it was": {[]state{there, leaving, gone}, "", true, 6},
		"it ends what was leaving":                {[]state{there, leaving, gone}, "u", false, 9},
	} {
		h := &history{states: map[id][]state{k: c.states}, byUID: map[types.UID]uint64{}}
		if last := c.states[len(c.states)-1]; last.gone {
			h.byUID[last.uid] = last.objectRV
		}
		got, err := h.bound(written{id: k, uid: c.uid, afterRV: 6, bare: true}, c.unread)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.want == 0, err != nil, name)
	}
}

// place finds the earliest version, no earlier than fromRV, at which the object was as a reader of
// q saw it.
func (h *history) place(k id, q query, s seen, fromRV uint64) (uint64, error) {
	states := h.states[k]
	i, found := slices.BinarySearchFunc(states, fromRV, func(s state, v uint64) int { return int(int64(s.objectRV) - int64(v)) })
	if !found {
		i-- // the state at fromRV
	}
	if s.uid == "" {
		if i < 0 || !q.has(states[i]) {
			return fromRV, nil
		}
		for _, next := range states[i+1:] {
			if !q.has(next) {
				return next.objectRV, nil
			}
		}
		return 0, fmt.Errorf("is not shown, though it has been there since %d", states[i].objectRV)
	}
	for _, next := range states[max(i, 0):] {
		if next.objectRV != s.objectRV || next.uid != s.uid {
			continue
		}
		switch {
		case !q.has(next):
			return 0, fmt.Errorf("is shown at %d, where it is not in %+v", s.objectRV, q.Query)
		case s.content != 0 && s.content != q.contentOf(next):
			return 0, fmt.Errorf("is shown at %d, but not as it was", s.objectRV)
		}
		return max(fromRV, s.objectRV), nil
	}
	return 0, fmt.Errorf("is shown at %d (%s), which was over by then, or never was", s.objectRV, s.uid)
}

// contentOf returns the hash that q shows of a state.
func (q query) contentOf(s state) uint64 {
	if q.stripped {
		return s.stripped
	}
	return s.content
}

// judge checks everything that a witness has seen. For each object there must be a sequence of
// times in the server's history that explains what was seen. The times never go back (G5), and
// none is earlier than what had been written before the Update (G4).
func (h *history) judge(t *testing.T, j *witness) (checked int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	at, shown, bounds, dirty := map[id]uint64{}, map[id]seen{}, map[id]uint64{}, map[id]bool{}
	done := 0
	for n, l := range j.looks {
		for ; done < l.known; done++ {
			e := j.w.record[done]
			v, err := h.bound(e, j.w.faulty != nil)
			require.NoError(t, err, "G4")
			bounds[e.id] = max(bounds[e.id], v)
			dirty[e.id] = true
		}
		for k, s := range l.now {
			shown[k], dirty[k] = s, true
		}
		for k := range dirty {
			q, ok := j.queryOf(k)
			if ok && l.absent[k.resource] {
				continue // what became of it is checked when the kind is back
			}
			delete(dirty, k)
			if !ok || shown[k].uid == "" && q.lenient != nil && q.lenient(k.ns) {
				continue
			}
			checked++
			v, err := h.place(k, q, shown[k], at[k])
			if !assert.NoError(t, err, "G5: %s, look %d: %v, last seen at %d", j.name, n, k, at[k]) {
				h.explain(t, j, k, at[k], n)
				return checked
			}
			if v < bounds[k] {
				v, err = h.place(k, q, shown[k], bounds[k])
			}
			if !assert.NoError(t, err, "G4: %s, look %d: %v, written at %d", j.name, n, k, bounds[k]) {
				h.explain(t, j, k, at[k], n)
				return checked
			}
			at[k] = v
		}
	}
	return checked
}

// explain logs the states of an object since a version, the own writes to it, and what the witness
// has seen around a look.
func (h *history) explain(t *testing.T, j *witness, k id, sinceRV uint64, look int) {
	for _, s := range h.states[k] {
		if s.objectRV >= sinceRV {
			t.Logf("%d %s %v %v: %s", s.objectRV, s.uid, s.labels, s.fields, s.note)
		}
	}
	for i, e := range j.w.record {
		if e.id == k {
			t.Logf("own write %d: %+v", i, e)
		}
	}
	for n, l := range j.looks {
		if s, ok := l.now[k]; ok || n == look {
			t.Logf("look %d, after %d own writes, %v: %+v %t", n, l.known, l.at.Format(time.StampMicro), s, ok)
		}
	}
}
