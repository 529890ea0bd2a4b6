package steady

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kates-go/kates/bench/internal/replay"
	"github.com/kates-go/kates/kates"
)

// shown is the snapshot of the program under load.
type shown struct {
	Pods       []*kates.Pod
	Services   []*kates.Service
	ConfigMaps []*kates.ConfigMap
	Deltas     []*kates.Delta
}

// queries are the names of its fields, in the order of the server's kinds.
var queries = [replay.Kinds]string{"Pods", "Services", "ConfigMaps"}

// checker checks each snapshot: it shows each kind exactly as it was after some event, all objects
// and all of their content; no kind is older than in the snapshot before; the deltas name exactly
// the objects that differ from the snapshot before.
type checker struct {
	plan   replay.Schedule
	number [replay.Kinds]map[string]int  // of an object, by namespace/name
	want   [replay.Kinds][]replay.Object // the objects as they should be
	marks  [replay.Kinds][]int           // the last event that each object showed
	next   [replay.Kinds]int             // the first event of each kind that was not shown
	first  bool                          // nothing has been checked
	change map[string]replay.Object      // what differs from the snapshot before
}

func newChecker(plan replay.Schedule) *checker {
	c := &checker{plan: plan, want: plan.Sources(), first: true}
	for at, objects := range c.want {
		c.number[at], c.next[at] = make(map[string]int), at
		for j, o := range objects {
			c.number[at][key(o)] = j
			c.marks[at] = append(c.marks[at], -1)
		}
	}
	return c
}

func key(o interface {
	GetNamespace() string
	GetName() string
}) string {
	return o.GetNamespace() + "/" + o.GetName()
}

// missing returns the first event, of all kinds, that the last snapshot did not have.
func (c *checker) missing() int { return min(c.next[0], c.next[1], c.next[2]) }

// done says whether all events are shown.
func (c *checker) done() bool { return c.missing() >= c.plan.Total() }

// snapshot checks what an Update has filled. changed is what it has returned.
func (c *checker) snapshot(snap *shown, changed bool) error {
	c.change = make(map[string]replay.Object)
	for at, objects := range snap.kinds() {
		if err := c.kind(at, objects); err != nil {
			return fmt.Errorf("%s: %w", queries[at], err)
		}
	}
	if err := c.deltas(snap.Deltas); err != nil {
		return err
	}
	if differs := c.first || len(snap.Deltas) > 0; changed != differs {
		return fmt.Errorf("the Update returned %v with %d deltas", changed, len(snap.Deltas))
	}
	c.first = false
	return nil
}

// held checks that a snapshot, which was correct, is what it was.
func (c *checker) held(snap *shown) error {
	for at, objects := range snap.kinds() {
		_, positions, err := c.read(at, objects)
		if err != nil {
			return fmt.Errorf("%s, after the reconcile: %w", queries[at], err)
		}
		for j, n := range positions {
			if !equality.Semantic.DeepEqual(c.want[at][j], objects[n]) {
				return fmt.Errorf("%s, after the reconcile: %s is not as it was", queries[at], key(objects[n]))
			}
		}
	}
	return nil
}

// read returns the event that each object shows, by its number, and the position of each object.
func (c *checker) read(at int, objects []replay.Object) (marks, positions []int, err error) {
	if len(objects) != c.plan.Objects {
		return nil, nil, fmt.Errorf("%d objects are shown, not %d", len(objects), c.plan.Objects)
	}
	marks, positions = make([]int, len(objects)), make([]int, len(objects))
	seen := make([]bool, len(objects))
	for n, o := range objects {
		j, ok := c.number[at][key(o)]
		if !ok || seen[j] {
			return nil, nil, fmt.Errorf("%s is shown, and is not there or is shown twice", key(o))
		}
		i, ok := replay.EventOf(o)
		if !ok {
			return nil, nil, fmt.Errorf("%s has a mark that no event writes", key(o))
		}
		marks[j], positions[j], seen[j] = i, n, true
	}
	return marks, positions, nil
}

// kind checks the objects of a kind, and notes what has changed.
func (c *checker) kind(at int, objects []replay.Object) error {
	marks, positions, err := c.read(at, objects)
	if err != nil {
		return err
	}
	last := -1
	for _, i := range marks {
		last = max(last, i)
	}
	for j, i := range marks {
		if right := c.plan.Last(at, j, last+1); i != right {
			return fmt.Errorf("%s shows event %d and not %d, but another object shows event %d", key(c.want[at][j]), i, right, last)
		}
		if i < c.marks[at][j] {
			return fmt.Errorf("%s shows event %d, and showed event %d before", key(c.want[at][j]), i, c.marks[at][j])
		}
		o := objects[positions[j]]
		if c.first || i > c.marks[at][j] {
			c.change[queries[at]+" "+key(o)] = o
			// the type is not compared: kates fills it in
			c.want[at][j].GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
		}
		if i > c.marks[at][j] {
			replay.Mend(c.want[at][j], i)
		}
		if !equality.Semantic.DeepEqual(c.want[at][j], o) {
			return fmt.Errorf("%s shows event %d, but it has another content", key(o), i)
		}
	}
	c.marks[at] = marks
	if last >= 0 {
		c.next[at] = last + replay.Kinds
	}
	return nil
}

// deltas checks that there is one for each change, and none else.
func (c *checker) deltas(all []*kates.Delta) error {
	kind := kates.ObjectUpdate
	if c.first {
		kind = kates.ObjectAdd
	}
	for _, d := range all {
		name := d.Query + " " + key(d)
		o, ok := c.change[name]
		if !ok {
			return fmt.Errorf("there is a delta of %s, which has not changed, or a second one", name)
		}
		if d.DeltaType != kind || d.ResourceVersion != o.GetResourceVersion() {
			return fmt.Errorf("the delta of %s at version %s is of another type, or at version %s", name, o.GetResourceVersion(), d.ResourceVersion)
		}
		delete(c.change, name)
	}
	if len(c.change) > 0 {
		for name := range c.change {
			return fmt.Errorf("%s has changed without a delta, one of %d", name, len(c.change))
		}
	}
	return nil
}

// kinds returns the objects of the snapshot.
func (s *shown) kinds() [replay.Kinds][]replay.Object {
	return [replay.Kinds][]replay.Object{objects(s.Pods), objects(s.Services), objects(s.ConfigMaps)}
}

func objects[T replay.Object](typed []T) []replay.Object {
	all := make([]replay.Object, len(typed))
	for i, o := range typed {
		all[i] = o
	}
	return all
}
