package applied

import (
	"context"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// Recollections hold what lists of metadata have told: who owns which fields of many objects,
// where the watches do not tell and there are no [Entries]: with another field manager than the
// client's, for example. A program that starts among thousands of objects that it has applied
// before needs a few lists, in place of an apply of each, to find that nothing is to be done. A
// list is made once enough objects would need it. The zero value is empty.
type Recollections struct {
	mu     lockorder.Mutex[lockorder.Recollections]
	all    map[Recollectable]*Recollection
	closed bool
}

// Recollectable names what is listed: by label, the objects of the sets of a name, as one manager
// applies them.
type Recollectable struct{ Storage, Namespace, Manager, Label, Set string }

// Recollection is the result of one list.
type Recollection struct {
	done chan struct{} // closed when the list is complete
	err  error         // set before
	at   time.Time     // set before

	// Guarded by Recollections.mu:
	objects map[object.Key]Recalled
	timer   *time.Timer // drops the objects
	missed  int         // how many looked for an object in vain
	worth   int         // how many of them justify another list
}

// Err is the error of the list. It is valid once [Recollections.Of] has returned.
func (r *Recollection) Err() error { return r.err }

// Recalled is what a list has told about an object. It is handed out once: who takes it, marks
// it.
type Recalled struct {
	UID    types.UID
	RV     string
	Sum    string // the annotation's value
	Fields []byte // what the manager has applied
}

// recollectionAge is how long objects are kept that nobody asks for.
const recollectionAge = 10 * time.Minute

// Take returns and drops an object, if the list has shown it no older than now.
func (c *Recollections) Take(r *Recollection, key object.Key, now metav1.Object) (Recalled, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := r.objects[key]
	delete(r.objects, key)
	if !ok || o.UID != now.GetUID() || coherence.Newer(now.GetResourceVersion(), o.RV) {
		return Recalled{}, false
	}
	r.missed--
	return o, true
}

// keep stores the result of a list for a while. An unfinished list is dropped: its error says
// nothing about the next.
func (c *Recollections) keep(of Recollectable, r *Recollection, objects map[object.Key]Recalled, err error, finished bool) {
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

// Close drops all objects and stops the timers.
func (c *Recollections) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, r := range c.all {
		r.forget()
	}
}

// forget drops the listed objects. The lock is held.
func (r *Recollection) forget() {
	if r.objects = nil; r.timer != nil {
		r.timer.Stop()
	}
}

// drop drops objects that nobody has asked for: those of other shards, for example.
func (c *Recollections) drop(r *Recollection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.forget()
}

// Of returns the newest recollection, or makes a new one by list once that is worth it: a list
// should save at least a sixteenth as many applies as it has objects. Known is the number of
// objects that need no list. The result is nil if ctx ends.
func (c *Recollections) Of(ctx context.Context, of Recollectable, known func() int,
	list func(context.Context) (map[object.Key]Recalled, error),
) *Recollection {
	r, mine := c.find(of, known)
	if mine {
		objects, err := list(ctx)
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

// find returns a recollection. If it is mine, the caller makes it.
func (c *Recollections) find(of Recollectable, known func() int) (r *Recollection, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[Recollectable]*Recollection)
	}
	r = c.all[of]
	if r == nil {
		r = &Recollection{done: make(chan struct{}), worth: known() / 16}
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
	r = &Recollection{done: make(chan struct{})}
	c.all[of] = r
	return r, true
}

// recall reads what there is to be known of an object.
func recall(manager, annotation string, m metav1.Object) Recalled {
	r := Recalled{UID: m.GetUID(), RV: m.GetResourceVersion()}
	if m.GetDeletionTimestamp() == nil {
		r.Sum, r.Fields = m.GetAnnotations()[annotation], FieldsOf(manager, m.GetManagedFields())
	}
	return r
}

// List lists the metadata of the objects that were applied, page by page.
func List(
	ctx context.Context, of Recollectable, annotation string, pageSize int64, list source.ListOnce,
) (map[object.Key]Recalled, error) {
	var found map[object.Key]Recalled
	o := metav1.ListOptions{LabelSelector: of.Label, Limit: pageSize}
	_, err := source.Pages(ctx, list, o, func() func(runtime.Object) error {
		found = make(map[object.Key]Recalled)
		return func(item runtime.Object) error {
			m, ok := item.(metav1.Object)
			if !ok {
				return errors.New("a list of what is no object")
			}
			if strings.HasPrefix(m.GetLabels()[of.Label], of.Set+".") {
				found[object.Key{Namespace: m.GetNamespace(), Name: m.GetName()}] = recall(of.Manager, annotation, m)
			}
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}
