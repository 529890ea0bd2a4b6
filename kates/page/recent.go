package page

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/kates"
)

// maxChanges is how many changes of a snapshot are remembered by name.
const maxChanges = 20

// Snapshot is one of the last snapshots that were delivered.
type Snapshot struct {
	Client string    `json:"client"`
	Watch  string    `json:"watch"`
	ID     int64     `json:"watchID"`
	At     time.Time `json:"at"`
	// Key of the turn, where the snapshot is one of a partition.
	Key   string `json:"key,omitempty"`
	First bool   `json:"first,omitempty"`
	// Opened is how long the watch was open when its first snapshot was delivered, in seconds.
	Opened float64 `json:"opened,omitempty"`
	// Took is how long the Update took, in seconds.
	Took float64 `json:"took"`
	// Changes is the number of objects that have changed, and Deltas are some of these.
	Changes int     `json:"changes"`
	Deltas  []Delta `json:"deltas"`
}

// Delta is a change of an object.
type Delta struct {
	Type      kates.DeltaType `json:"type"`
	Query     string          `json:"query"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
}

// recent has the last snapshots. What it holds has a bound, and so does what it does for each: it
// copies some names.
type recent struct {
	mu  lockorder.Mutex[lockorder.PageRecent]
	all []Snapshot    // the oldest first
	of  map[int64]int // how many of these each watch has
}

func newRecent(n int) *recent { return &recent{all: make([]Snapshot, 0, n), of: map[int64]int{}} }

// add notes a snapshot. If there are too many, the watch that has most loses its oldest one: quick
// watches do not push out the others.
func (r *recent) add(client string, at time.Time, u *kates.UpdateInfo) {
	s := Snapshot{
		Client: client, Watch: u.Watch, ID: u.ID, At: at, Key: u.Key, First: u.First,
		Took: u.Duration.Seconds(), Changes: u.Changes,
	}
	if u.First {
		s.Opened = u.Opened.Seconds()
	}
	if u.Each != nil && u.Changes > 0 {
		s.Deltas = make([]Delta, 0, min(u.Changes, maxChanges))
		u.Each(func(query, namespace, name string, t kates.DeltaType) bool {
			s.Deltas = append(s.Deltas, Delta{t, query, namespace, name})
			return len(s.Deltas) < maxChanges
		})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cap(r.all) == 0 {
		return
	}
	r.of[s.ID]++
	if len(r.all) == cap(r.all) {
		r.drop()
	}
	r.all = append(r.all, s)
}

// drop forgets the oldest snapshot of the watch that has most.
func (r *recent) drop() {
	most := 0
	for _, n := range r.of {
		most = max(most, n)
	}
	i := slices.IndexFunc(r.all, func(s Snapshot) bool { return r.of[s.ID] == most })
	id := r.all[i].ID
	r.all = slices.Delete(r.all, i, i+1)
	if r.of[id]--; r.of[id] == 0 {
		delete(r.of, id)
	}
}

// last returns the snapshots, the newest first.
func (r *recent) last() []Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := slices.Clone(r.all) // nobody writes to Deltas any more
	slices.Reverse(to)
	return to
}

// watcher observes one client for the page, until that is closed.
type watcher struct {
	page   *Page
	client string
	ended  atomic.Bool
}

// Call observes nothing: the report of the client says which calls run and fail.
func (*watcher) Call(ctx context.Context, _ kates.CallInfo) (context.Context, func(kates.CallResult)) {
	return ctx, nil
}

// Updated notes a snapshot. A turn that has nothing new is a key that is tried again: those would
// soon be all that the page remembers.
func (w *watcher) Updated(u kates.UpdateInfo) {
	if again := u.Key != "" && u.Changes == 0; !again && !w.ended.Load() {
		w.page.recent.add(w.client, time.Now(), &u)
	}
}

func (w *watcher) Request(
	ctx context.Context, r kates.RequestInfo,
) (context.Context, func(kates.RequestResult)) {
	if w.ended.Load() {
		return ctx, nil
	}
	of := requestKind{w.client, r.Verb, r.Group, r.Version, r.Resource, r.Subresource}
	return ctx, func(result kates.RequestResult) { w.page.requests.add(of, time.Now(), result) }
}
