package kates

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/coherence"
)

// recollections are what the server was asked of many objects at a time: who owns which of their fields, which the watches of
// Go types do not hold. A program that starts among thousands of objects that it has applied before finds out by a few lists of
// metadata, and not by applying each again, that there is nothing to do. A list is made when those who would have needed it
// are worth it. The zero value is empty.
type recollections struct {
	mu     sync.Mutex
	all    map[recollectable]*recollection
	closed bool
}

// recollectable names what is listed: the objects of the sets of a name, by label, as one manager applies them.
type recollectable struct{ storage, namespace, manager, label, set string }

type recollection struct {
	done chan struct{} // closed when it has been listed
	err  error         // set before
	at   time.Time     // set before

	// Guarded by recollections.mu:
	objects map[accumulator.Key]recalled
	timer   *time.Timer // that lets go of them
	missed  int         // who have not found what they looked for
	worth   int         // how many of them are worth another list
}

// recalled is what a list has said of an object. It is good for one who asks: he remembers it.
type recalled struct {
	uid     types.UID
	version string
	sum     string
	fields  []byte
}

// recollectionAge is how long objects are kept that nobody has asked for.
const recollectionAge = 10 * time.Minute

// recalls reports whether the object is known to be as it is applied by what the server was asked of many. It may ask.
func (a *ownedApply) recalls(ctx context.Context, w *wanted, now Object) bool {
	of := recollectable{w.resource.Storage, "", a.options.fieldManager, a.label, a.set.Name}
	r := a.client.core.recollected.of(ctx, of, a, w)
	if r != nil && apierrors.IsForbidden(r.err) && w.key.Namespace != "" {
		of.namespace = w.key.Namespace
		r = a.client.core.recollected.of(ctx, of, a, w)
	}
	if r == nil || r.err != nil {
		return false
	}
	o, ok := a.client.core.recollected.take(r, w.key, now)
	whole, _ := a.client.core.streams.Lookup(w.resource, w.key, accumulator.Known)
	if whole != nil && whole.GetResourceVersion() != o.version {
		whole = nil
	}
	if !ok || o.sum != w.sum || !a.owns(ctx, w, o.fields, whole) {
		return false
	}
	a.client.core.applied.put(a.client.core.streams, w, a.options.fieldManager, o.uid, o.version)
	return true
}

// take looks an object up, at a version no older than now's.
func (c *recollections) take(r *recollection, key accumulator.Key, now Object) (recalled, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := r.objects[key]
	delete(r.objects, key)
	if !ok || o.uid != now.GetUID() || coherence.Newer(now.GetResourceVersion(), o.version) {
		return recalled{}, false
	}
	r.missed--
	return o, true
}

// keep takes in what was listed, for a while. Whether that has failed says nothing where it was not finished.
func (c *recollections) keep(of recollectable, r *recollection, objects map[accumulator.Key]recalled, err error, finished bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.worth, r.at, r.err = 16+len(objects)/16, time.Now(), err
	if !finished {
		delete(c.all, of)
	}
	if finished && !c.closed && len(objects) > 0 {
		r.objects, r.timer = objects, time.AfterFunc(recollectionAge, func() { c.drop(r) })
	}
}

// close lets go of all objects.
func (c *recollections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, r := range c.all {
		r.forget()
	}
}

// forget lets go of what was listed. The lock is held.
func (r *recollection) forget() {
	if r.objects = nil; r.timer != nil {
		r.timer.Stop()
	}
}

// drop lets go of objects that nobody has asked for: those of other shards, say.
func (c *recollections) drop(r *recollection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.forget()
}

// of is the newest recollection, or a new one where that is worth it: a list of so many objects is to save a sixteenth as many
// applies. It is nil where ctx ends.
func (c *recollections) of(ctx context.Context, of recollectable, a *ownedApply, w *wanted) *recollection {
	r, mine := c.find(of, func() int { return a.client.core.applied.count(of.storage) })
	if mine {
		objects, err := a.recollect(ctx, of, w.resource)
		c.keep(of, r, objects, err, ctx.Err() == nil)
		close(r.done)
	}
	select {
	case <-r.done:
		return r
	case <-ctx.Done():
		return nil
	}
}

// find returns a recollection, which the caller is to make if it is his. Known is of how many objects there is no need for one.
func (c *recollections) find(of recollectable, known func() int) (r *recollection, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[recollectable]*recollection)
	}
	r = c.all[of]
	if r == nil {
		r = &recollection{done: make(chan struct{}), worth: known() / 16}
		close(r.done)
		c.all[of] = r
	}
	select {
	case <-r.done:
	default:
		return r, false
	}
	if r.missed++; r.missed <= r.worth || r.err != nil && time.Since(r.at) < recollectionAge {
		return r, false
	}
	r.forget() // the new one has them
	r = &recollection{done: make(chan struct{})}
	c.all[of] = r
	return r, true
}

// recall is what there is to be known of an object.
func recall(manager, annotation string, m metav1.Object) recalled {
	r := recalled{uid: m.GetUID(), version: m.GetResourceVersion()}
	if m.GetDeletionTimestamp() == nil {
		r.sum, r.fields = m.GetAnnotations()[annotation], appliedAs(manager, m.GetManagedFields())
	}
	return r
}

// recollect lists the metadata of objects that were applied.
func (a *ownedApply) recollect(ctx context.Context, of recollectable, r accumulator.Resource) (map[accumulator.Key]recalled, error) {
	source := a.client.core.source(r, of.namespace, accumulator.Metadata)
	o := metav1.ListOptions{LabelSelector: of.label, Limit: pageSize}
	found := make(map[accumulator.Key]recalled)
	for {
		page, err := source.ListWithContext(ctx, o)
		if err != nil {
			return nil, err
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			m, ok := item.(metav1.Object)
			if !ok {
				return errors.New("a list of what is no object")
			}
			if strings.HasPrefix(m.GetLabels()[of.label], of.set+".") {
				found[accumulator.Key{Namespace: m.GetNamespace(), Name: m.GetName()}] = recall(of.manager, a.annotation, m)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		if o.Continue = m.GetContinue(); o.Continue == "" {
			return found, nil
		}
	}
}
