package e2e

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// seen is one shown object. The zero value is none.
type seen struct {
	uid      types.UID
	objectRV uint64
	content  uint64 // 0: not looked at
}

// look is one Update: how many own writes had returned before it, and what it changed.
type look struct {
	known  int
	now    map[id]seen
	absent map[string]bool // kinds that are not in the snapshot
	at     time.Time
	// unserved are kinds that the client says are not served, before the Update or after it.
	unserved map[string]bool
}

// query is a query with what it selects, in any of its selections.
type query struct {
	kates.Query
	selects []selection
	in      []string // namespaces; "" is all
	// stripped says that strip transforms its objects.
	stripped bool
	// lenient says in which namespaces the reader may have reasons not to show an object; nil: in
	// none.
	lenient func(ns string) bool
}

// selection is one list request that the server can answer.
type selection struct {
	options metav1.ListOptions
	labels  labels.Selector
	fields  fields.Selector
}

func (q query) has(s state) bool {
	return !s.gone && slices.ContainsFunc(q.selects, func(one selection) bool {
		return one.labels.Matches(s.labels) && one.fields.Matches(s.fields)
	})
}

func (q query) covers(ns string) bool { return slices.Contains(q.in, "") || slices.Contains(q.in, ns) }

// selecting adds what these selectors select.
func (q *query) selecting(t *testing.T, labelSelectors []string, fieldSelector string) {
	var s selection
	var err error
	s.options.LabelSelector = strings.Join(slices.DeleteFunc(labelSelectors, func(l string) bool { return l == "" }), ",")
	s.options.FieldSelector = fieldSelector
	s.labels, err = labels.Parse(s.options.LabelSelector)
	require.NoError(t, err)
	s.fields, err = fields.ParseSelector(fieldSelector)
	require.NoError(t, err)
	q.selects = append(q.selects, s)
}

// witness reads one accumulator and records what it has seen. The history judges it.
type witness struct {
	t       *testing.T
	w       *world
	name    string
	way     way
	queries []query
	acc     *kates.Accumulator
	readers map[string]*kates.Lister[*kates.Unstructured] // used in place of acc
	target  any
	shown   map[id]seen
	looks   []look
}

// witness opens a watch in one of the ways.
func (w *world) witness(ctx context.Context, t *testing.T, name string, ns string) (*witness, error) {
	how := ways[name]
	j := &witness{t: t, w: w, name: name, way: how, target: &untypedWorld{}, shown: map[id]seen{}}
	if how.target != nil {
		j.target = how.target()
	}
	var queries []kates.Query
	for _, resource := range []string{"pods", "configmaps", "hosts"} {
		q := w.query(t, how, resource, ns)
		j.queries, queries = append(j.queries, q), append(queries, q.Query)
	}
	if how.lookUp {
		return j, j.open(ctx, queries)
	}
	var err error
	j.acc, err = w.client.Watch(ctx, queries...)
	return j, err
}

// fieldNames are those of the worlds' structs.
var fieldNames = map[string]string{"pods": "Pods", "configmaps": "ConfigMaps", "hosts": "Hosts"}

func (w *world) query(t *testing.T, how way, resource, ns string) query {
	q := query{in: []string{ns}, stripped: !how.transform.IsZero(), Query: kates.Query{
		Name: fieldNames[resource], Kind: resource, Namespace: ns, LabelSelector: how.labels, Transform: how.transform,
	}}
	switch {
	case how.allNamespaces:
		q.Namespace, q.in = "", []string{""}
		q.LabelSelector = strings.Trim(q.LabelSelector+",run="+w.label, ",")
	case how.bothNamespaces:
		q.Namespace, q.Namespaces, q.in = "", w.namespaces, w.namespaces
	case how.team != "":
		q.Namespace, q.NamespaceSelector = "", how.team+"="+w.label
		q.in = []string{w.namespaces[0]}
		if how.flips {
			q.in = w.namespaces
			q.lenient = func(ns string) bool { return ns != w.namespaces[0] }
		}
	}
	if how.anyOf == nil {
		q.FieldSelector = how.fields[resource]
		q.selecting(t, []string{q.LabelSelector, how.passing}, q.FieldSelector)
		return q
	}
	q.AnyOf = slices.Clone(how.anyOf)
	if f := how.fields[resource]; f != "" {
		q.AnyOf = append(q.AnyOf, kates.Selection{FieldSelector: f})
	}
	for _, s := range q.AnyOf {
		q.selecting(t, []string{q.LabelSelector, s.LabelSelector, how.passing}, s.FieldSelector)
	}
	return q
}

func (j *witness) queryOf(k id) (query, bool) {
	for _, q := range j.queries {
		if q.Kind == k.resource && q.covers(k.ns) {
			return q, true
		}
	}
	return query{}, false
}

// objects calls f with each object in the target, and returns the absent kinds.
func (j *witness) objects(f func(resource string, o metav1.Object)) (absent map[string]bool) {
	absent = map[string]bool{}
	v := reflect.ValueOf(j.target).Elem()
	for resource, name := range fieldNames {
		field := v.FieldByName(name)
		absent[resource] = field.IsNil()
		for _, e := range field.Seq2() {
			if e.Kind() != reflect.Pointer {
				copied := reflect.New(e.Type())
				copied.Elem().Set(e)
				e = copied
			}
			f(resource, e.Interface().(metav1.Object))
		}
	}
	return absent
}

// now returns what the snapshot shows. It adds the contents of the objects that the deltas name.
func (j *witness) now(changed map[id]bool) (all map[id]seen, absent map[string]bool) {
	all = map[id]seen{}
	absent = j.objects(func(resource string, o metav1.Object) {
		k := id{resource, o.GetNamespace(), o.GetName()}
		s := seen{uid: o.GetUID(), objectRV: number(o.GetResourceVersion())}
		if u, ok := o.(*kates.Unstructured); ok && changed[k] {
			s.content = contentAs(j.w.plain, u)
		}
		all[k] = s
	})
	return all, absent
}

// update reads a snapshot. It returns false after a failure.
func (j *witness) update() bool {
	known, _ := j.w.known()
	unserved := j.unserved(nil)
	if j.readers != nil {
		return j.lookUp(known, unserved)
	}
	var deltas []*kates.Delta
	var changed bool
	var err error
	if j.way.predicate != nil {
		changed, err = j.acc.FilteredUpdate(context.Background(), j.target, &deltas, j.way.predicate)
	} else {
		changed, err = j.acc.UpdateWithDeltas(context.Background(), j.target, &deltas)
	}
	if !assert.NoError(j.t, err) {
		return false
	}
	// most Updates change nothing; some are looked at anyway
	if !changed && len(deltas) == 0 && len(j.looks)%8 != 0 {
		j.looks = append(j.looks, look{known: known, absent: j.looks[len(j.looks)-1].absent, at: time.Now(), unserved: j.unserved(unserved)})
		return true
	}
	named := map[id]bool{}
	for _, d := range deltas {
		named[j.idOf(d)] = true
	}
	now, absent := j.now(named)
	if !assert.True(j.t, changed || len(deltas) == 0 && len(j.looks) > 0, "G7: %s: deltas are a change", j.name) ||
		!assert.True(j.t, !changed || len(deltas) > 0 || len(j.looks) == 0 || j.way.predicate != nil || !maps.Equal(absent, j.looks[len(j.looks)-1].absent),
			"G7: %s: a change has deltas", j.name) || !j.replay(deltas, now) {
		return false
	}
	j.looked(known, named, now, absent, unserved)
	return true
}

// unserved adds the kinds that the client says are not served, or not known for certain.
func (j *witness) unserved(to map[string]bool) map[string]bool {
	if j.w.plain == nil {
		return nil // the run has one server, whose kinds stay
	}
	for _, q := range j.status().Queries {
		if q.State == kates.StateMissing || q.State == kates.StateWaiting || q.State == kates.StateListing {
			if to == nil {
				to = map[string]bool{}
			}
			to[q.Kind[:strings.IndexByte(q.Kind+".", '.')]] = true
		}
	}
	return to
}

// looked records what an Update has shown.
func (j *witness) looked(known int, named map[id]bool, now map[id]seen, absent, unserved map[string]bool) {
	l := look{known: known, now: map[id]seen{}, absent: absent, at: time.Now(), unserved: j.unserved(unserved)}
	for k := range named {
		l.now[k] = now[k]
	}
	j.looks = append(j.looks, l)
	for k, s := range now {
		s.content = 0
		now[k] = s
	}
	j.shown = now
}

func (j *witness) idOf(d *kates.Delta) id { return id{strings.ToLower(d.Query), d.Namespace, d.Name} }

// replay checks that the deltas, one by one, turn the last snapshot into this one (G7).
func (j *witness) replay(deltas []*kates.Delta, now map[id]seen) bool {
	replayed, twice := maps.Clone(j.shown), map[id]*kates.Delta{}
	for _, d := range deltas {
		k := j.idOf(d)
		before, had := replayed[k]
		ok := assert.Equal(j.t, had, d.DeltaType != kates.ObjectAdd, "G7: %s: %s %v", j.name, d.DeltaType, k)
		if d.DeltaType != kates.ObjectAdd {
			ok = ok && assert.Equal(j.t, before.uid, d.UID, "G7: %s: %s %v, of another UID", j.name, d.DeltaType, k)
		}
		if first := twice[k]; first != nil {
			ok = ok && assert.True(j.t, first.DeltaType == kates.ObjectDelete && d.DeltaType == kates.ObjectAdd && first.UID != d.UID,
				"G7: %s: %v: two deltas are a delete and an add of another UID", j.name, k)
		}
		if !ok {
			return false
		}
		twice[k] = d
		if d.DeltaType == kates.ObjectDelete {
			delete(replayed, k)
		} else {
			replayed[k] = seen{uid: d.UID, objectRV: number(d.ResourceVersion)}
		}
	}
	plain := maps.Clone(now)
	for k, s := range plain {
		s.content = 0
		plain[k] = s
	}
	return assert.True(j.t, maps.Equal(plain, replayed), "G7: %s: the deltas give the snapshot", j.name)
}

// read updates at every signal, or at intervals, until ctx ends.
func (j *witness) read(ctx context.Context, leisure time.Duration, r *rand.Rand) {
	for ctx.Err() == nil {
		if leisure > 0 {
			pause(ctx, time.Duration(r.Int64N(int64(leisure))))
		} else {
			pause(ctx, time.Millisecond)
		}
		if j.ready() && !j.update() {
			return
		}
	}
}

// settled checks that the snapshot becomes the server's list, with nothing held for writes (G6).
// Cancelled writes may still be under way to the server at first.
func (j *witness) settled() {
	var server map[id]seen
	ctx, cancel := context.WithTimeout(j.t.Context(), patience)
	defer cancel()
	for deadline := time.Now().Add(patience / 2); time.Now().Before(deadline); {
		if !assert.NoError(j.t, j.w.client.Sync(ctx), "%s", j.w.client.Status()) || !j.update() {
			return
		}
		if server = j.server(); maps.Equal(server, j.shown) {
			break
		}
	}
	assert.Equal(j.t, server, j.shown, "G6: %s: the snapshot is what the server has", j.name)
	for _, q := range j.status().Queries {
		assert.Zero(j.t, q.Pending+q.Unsettled, "G6: %s: %s", j.name, j.status())
	}
	var last string
	j.objects(func(resource string, o metav1.Object) {
		if _, isMap := o.(*kates.ConfigMap); isMap {
			return
		}
		now := resource + "/" + o.GetNamespace() + "/" + o.GetName()
		assert.True(j.t, !strings.HasPrefix(last, resource+"/") || last < now, "G9: %s: %s, then %s", j.name, last, now)
		last = now
	})
}

func (j *witness) status() (s kates.Status) {
	if j.readers == nil {
		return j.acc.Status()
	}
	for _, r := range j.readers {
		s.Queries = append(s.Queries, r.Status().Queries...)
	}
	return s
}

// server returns the server's own list for the witness's queries.
func (j *witness) server() map[id]seen {
	all := map[id]seen{}
	for _, q := range j.queries {
		for _, ns := range q.in {
			for _, s := range q.selects {
				list, err := j.w.others.Resource(resourceOf(id{resource: q.Kind})).Namespace(ns).List(j.t.Context(), s.options)
				if !assert.NoError(j.t, err) {
					return nil
				}
				for _, o := range list.Items {
					all[id{q.Kind, o.GetNamespace(), o.GetName()}] = seen{uid: o.GetUID(), objectRV: number(o.GetResourceVersion())}
				}
			}
		}
	}
	return all
}

// ready reports whether there is a first snapshot.
func (j *witness) ready() bool { return j.readers != nil || j.acc.Ready() == nil }

func (j *witness) close() {
	if j.readers == nil {
		j.acc.Close()
	}
	for _, r := range j.readers {
		r.Close()
	}
}
