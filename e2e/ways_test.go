package e2e

import (
	"context"
	"maps"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// way is what a reader asks for: a selector for each kind, in one namespace or in several, in
// some form.
type way struct {
	labels string
	fields map[string]string
	anyOf  []kates.Selection // with fields as one more alternative

	allNamespaces  bool
	bothNamespaces bool
	// team is a label on namespaces with the world's value. The first namespace always has it.
	// The second has it now and then, if the run flips it.
	team  string
	flips bool

	target    func() any // the struct to read; nil: untyped
	transform kates.Transform
	predicate func(*kates.Unstructured) bool
	passing   string // what the predicate accepts, as a selector
	lookUp    bool   // uses kates.Reader
	chaos     bool   // in the chaos run only
}

// ways are what readers ask for.
var ways = map[string]way{
	"everything":                      {},
	"everything, typed":               {target: typed},
	"by label":                        {labels: "in=1"},
	"by label, typed":                 {labels: "in=1", target: typed},
	"all namespaces":                  {allNamespaces: true},
	"by field":                        {fields: map[string]string{"pods": "spec.nodeName=n1", "hosts": "spec.hostname=yes"}},
	"by label and field, typed":       {target: typed, labels: "in!=0", fields: map[string]string{"pods": "status.phase=Running", "hosts": "spec.hostname!=yes"}},
	"all namespaces, by field, typed": {target: typed, allNamespaces: true, fields: map[string]string{"pods": "spec.nodeName=", "configmaps": "metadata.namespace!=default"}},

	"a set of namespaces":           {chaos: true, bothNamespaces: true},
	"a set of namespaces, by label": {chaos: true, bothNamespaces: true, labels: "in=1", target: typed},
	"selected namespaces":           {chaos: true, team: "stays"},
	"namespaces that come and go":   {chaos: true, team: "flips", flips: true},
	"a union":                       {chaos: true, anyOf: union, fields: map[string]string{"pods": "spec.nodeName=n1", "hosts": "spec.hostname=yes"}},
	"a union in both, typed":        {chaos: true, anyOf: union, bothNamespaces: true, target: typed},
	"metadata":                      {chaos: true, target: brief, labels: inProtobuf + "!=no"},
	"metadata, by label":            {chaos: true, target: brief, labels: "in=1," + inProtobuf + "!=no"},
	"transformed":                   {chaos: true, transform: strip},
	"transformed, by label":         {chaos: true, transform: strip, labels: "in=1", fields: map[string]string{"hosts": "spec.hostname=yes"}},
	"a predicate":                   {chaos: true, predicate: passes, passing: "in=1"},
	"looked up":                     {chaos: true, lookUp: true},
	"looked up, by label":           {chaos: true, lookUp: true, labels: "in=1"},
	"looked up, a union":            {chaos: true, lookUp: true, anyOf: union},
}

var union = []kates.Selection{{LabelSelector: "in=1"}, {LabelSelector: "updated in (1,2)"}}

// strip also drops what selectors use.
var strip = kates.Transforms(kates.DropManagedFields, kates.DropFields("data", "spec", "status", "metadata.labels"))

func passes(u *kates.Unstructured) bool { return u.GetLabels()["in"] == "1" }

// untypedWorld, typedWorld and briefWorld are the structs that witnesses read.
type untypedWorld struct{ Pods, ConfigMaps, Hosts []*kates.Unstructured }

type typedWorld struct {
	Pods       []*kates.Pod
	ConfigMaps map[types.NamespacedName]kates.ConfigMap
	Hosts      []hostType
}

type briefWorld struct {
	Pods, ConfigMaps, Hosts []*kates.PartialObjectMetadata
}

func typed() any { return &typedWorld{} }
func brief() any { return &briefWorld{} }

// hostType is the program's own struct for a custom kind.
type hostType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// open opens a reader for each query, in place of an accumulator.
func (j *witness) open(ctx context.Context, queries []kates.Query) error {
	j.readers = map[string]*kates.Lister[*kates.Unstructured]{}
	for _, q := range queries {
		r, err := kates.NewLister[*kates.Unstructured](ctx, j.w.client, q)
		if err != nil {
			j.close()
			return err
		}
		j.readers[q.Kind] = r
	}
	return nil
}

// lookUp is update for readers.
func (j *witness) lookUp(known int, unserved map[string]bool) bool {
	var all untypedWorld
	for resource, into := range map[string]*[]*kates.Unstructured{"pods": &all.Pods, "configmaps": &all.ConfigMaps, "hosts": &all.Hosts} {
		var err error
		*into, err = j.readers[resource].List("", nil)
		if !assert.NoError(j.t, err) {
			return false
		}
	}
	j.target = &all
	now, absent := j.now(nil)
	named := map[id]bool{}
	for k, s := range now {
		named[k] = s != j.shown[k]
	}
	for k := range j.shown {
		_, still := now[k]
		named[k] = named[k] || !still
	}
	maps.DeleteFunc(named, func(_ id, changed bool) bool { return !changed })
	j.looked(known, named, now, absent, unserved)
	return true
}
