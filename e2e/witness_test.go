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

// seen is one shown object; the zero one is none.
type seen struct {
	uid     types.UID
	version uint64
	content uint64 // 0: not looked at
}

// look is one Update: how many own writes had returned before, and what it changed.
type look struct {
	known int
	now   map[id]seen
}

// query is a query, and what it selects.
type query struct {
	kates.Query
	labels labels.Selector
	fields fields.Selector
}

func (q query) has(s state) bool {
	return !s.gone && q.labels.Matches(s.labels) && q.fields.Matches(s.fields)
}

// ways are what readers ask for: a selector for each kind, in one namespace or in all.
var ways = map[string]struct {
	labels        string
	fields        map[string]string
	allNamespaces bool
	typed         bool
}{
	"everything":                      {},
	"everything, typed":               {typed: true},
	"by label":                        {labels: "in=1"},
	"by label, typed":                 {labels: "in=1", typed: true},
	"all namespaces":                  {allNamespaces: true},
	"by field":                        {fields: map[string]string{"pods": "spec.nodeName=n1", "hosts": "spec.hostname=yes"}},
	"by label and field, typed":       {typed: true, labels: "in!=0", fields: map[string]string{"pods": "status.phase=Running", "hosts": "spec.hostname!=yes"}},
	"all namespaces, by field, typed": {typed: true, allNamespaces: true, fields: map[string]string{"pods": "spec.nodeName=", "configmaps": "metadata.namespace!=default"}},
}

// untypedWorld and typedWorld are the structs that witnesses read.
type untypedWorld struct{ Pods, ConfigMaps, Hosts []*kates.Unstructured }

type typedWorld struct {
	Pods       []*kates.Pod
	ConfigMaps map[types.NamespacedName]kates.ConfigMap
	Hosts      []hostType
}

// hostType is a custom kind as a struct of the program's own.
type hostType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// witness reads one accumulator and keeps what it has seen, for the history to judge.
type witness struct {
	t       *testing.T
	w       *world
	name    string
	queries []query
	acc     *kates.Accumulator
	typed   bool
	untyped untypedWorld
	types   typedWorld
	shown   map[id]seen
	looks   []look
}

// witness opens a watch in one of the ways.
func (w *world) witness(ctx context.Context, t *testing.T, way string, ns string) (*witness, error) {
	j := &witness{t: t, w: w, name: way, typed: ways[way].typed, shown: map[id]seen{}}
	var queries []kates.Query
	for name, resource := range map[string]string{"Pods": "pods", "ConfigMaps": "configmaps", "Hosts": "hosts"} {
		q := query{Query: kates.Query{Name: name, Kind: resource, Namespace: ns, LabelSelector: ways[way].labels, FieldSelector: ways[way].fields[resource]}}
		if ways[way].allNamespaces {
			q.Namespace = ""
			q.LabelSelector = strings.Trim(q.LabelSelector+",run="+w.label, ",")
		}
		var err error
		q.labels, err = labels.Parse(q.LabelSelector)
		require.NoError(t, err)
		q.fields, err = fields.ParseSelector(q.FieldSelector)
		require.NoError(t, err)
		j.queries, queries = append(j.queries, q), append(queries, q.Query)
	}
	var err error
	j.acc, err = w.client.Watch(ctx, queries...)
	return j, err
}

func (j *witness) queryOf(k id) (query, bool) {
	for _, q := range j.queries {
		if q.Kind == k.resource && (q.Namespace == "" || q.Namespace == k.ns) {
			return q, true
		}
	}
	return query{}, false
}

// now is what the snapshot shows, with the contents of what the deltas name.
func (j *witness) now(changed map[id]bool) map[id]seen {
	all := map[id]seen{}
	add := func(resource string, o metav1.Object) {
		k := id{resource, o.GetNamespace(), o.GetName()}
		s := seen{uid: o.GetUID(), version: number(o.GetResourceVersion())}
		if u, ok := o.(*kates.Unstructured); ok && changed[k] {
			s.content = content(u)
		}
		all[k] = s
	}
	for resource, objects := range map[string][]*kates.Unstructured{"pods": j.untyped.Pods, "configmaps": j.untyped.ConfigMaps, "hosts": j.untyped.Hosts} {
		for _, o := range objects {
			add(resource, o)
		}
	}
	for _, o := range j.types.Pods {
		add("pods", o)
	}
	for _, o := range j.types.ConfigMaps {
		add("configmaps", &o)
	}
	for i := range j.types.Hosts {
		add("hosts", &j.types.Hosts[i])
	}
	return all
}

// update reads a snapshot. It reports false once something was wrong.
func (j *witness) update() bool {
	known, _ := j.w.known()
	var target any = &j.untyped
	if j.typed {
		target = &j.types
	}
	var deltas []*kates.Delta
	changed, err := j.acc.UpdateWithDeltas(context.Background(), target, &deltas)
	if !assert.NoError(j.t, err) {
		return false
	}
	named := map[id]bool{}
	for _, d := range deltas {
		named[j.idOf(d)] = true
	}
	now := j.now(named)
	if !assert.Equal(j.t, changed, len(deltas) > 0 || len(j.looks) == 0, "G7: %s: a change has deltas", j.name) || !j.replay(deltas, now) {
		return false
	}
	l := look{known: known, now: map[id]seen{}}
	for k := range named {
		l.now[k] = now[k]
	}
	j.looks = append(j.looks, l)
	for k, s := range now {
		s.content = 0
		now[k] = s
	}
	j.shown = now
	return true
}

func (j *witness) idOf(d *kates.Delta) id { return id{strings.ToLower(d.Query), d.Namespace, d.Name} }

// replay checks that the deltas, one by one, turn the last snapshot into this one: G7.
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
			replayed[k] = seen{uid: d.UID, version: number(d.ResourceVersion)}
		}
	}
	plain := maps.Clone(now)
	for k, s := range plain {
		s.content = 0
		plain[k] = s
	}
	return assert.True(j.t, maps.Equal(plain, replayed), "G7: %s: the deltas give the snapshot", j.name)
}

// read updates at every signal, or at its leisure, until ctx ends.
func (j *witness) read(ctx context.Context, leisure time.Duration, r *rand.Rand) {
	for ctx.Err() == nil {
		if leisure > 0 {
			pause(ctx, time.Duration(r.Int64N(int64(leisure))))
		} else {
			pause(ctx, time.Millisecond)
		}
		if j.acc.Ready() == nil && !j.update() {
			return
		}
	}
}

// settled checks that the snapshot becomes the server's list, with nothing held for writes: G6. Hurried writes may still be on
// their way to the server at first.
func (j *witness) settled() {
	var server map[id]seen
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if !assert.NoError(j.t, j.w.client.Sync(j.t.Context())) || !j.update() {
			return
		}
		if server = j.server(); maps.Equal(server, j.shown) {
			break
		}
	}
	assert.Equal(j.t, server, j.shown, "G6: %s: the snapshot is what the server has", j.name)
	for _, q := range j.acc.Status().Queries {
		assert.Zero(j.t, q.Pending+q.Unsettled, "G6: %s: %s", j.name, j.acc.Status())
	}
	inOrder := func(a, b *kates.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	}
	v := reflect.ValueOf(j.untyped)
	for i := range v.NumField() {
		assert.True(j.t, slices.IsSortedFunc(v.Field(i).Interface().([]*kates.Unstructured), inOrder), "G9: %s", j.name)
	}
}

// server is the server's own list of what the witness asks for.
func (j *witness) server() map[id]seen {
	all := map[id]seen{}
	for _, q := range j.queries {
		list, err := j.w.others.Resource(resourceOf(id{resource: q.Kind})).Namespace(q.Namespace).List(j.t.Context(),
			metav1.ListOptions{LabelSelector: q.LabelSelector, FieldSelector: q.FieldSelector})
		assert.NoError(j.t, err)
		if err == nil {
			for _, o := range list.Items {
				all[id{q.Kind, o.GetNamespace(), o.GetName()}] = seen{uid: o.GetUID(), version: number(o.GetResourceVersion())}
			}
		}
	}
	return all
}
