package fleet

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/kates"
)

// field is a field of what belongs to a root in one cluster.
type field struct {
	name  string
	index []int
	key   kates.Key
	owned bool // by label and UID; else by the key alone
}

// index has the objects of a field in one cluster, by key.
type index struct {
	objects map[string]map[types.NamespacedName]kates.Object
	keys    map[types.NamespacedName][]string
}

func newIndex(fields []field) []index {
	all := make([]index, len(fields))
	for i := range all {
		all[i] = index{make(map[string]map[types.NamespacedName]kates.Object), make(map[types.NamespacedName][]string)}
	}
	return all
}

// read reads the struct type, and makes the queries of each cluster.
func (h *home) read(queries []kates.Query) error {
	if err := compile.CheckNoneLater(h.typ); err != nil {
		return err
	}
	for i := range h.typ.NumField() {
		sf := h.typ.Field(i)
		if !sf.IsExported() || sf.Tag.Get("kates") == "-" {
			continue
		}
		if sf.Type.Kind() != reflect.Slice || !sf.Type.Elem().Implements(reflect.TypeFor[kates.Object]()) {
			return fmt.Errorf("field %s: it is to be a slice of pointers to objects, not %s", sf.Name, sf.Type)
		}
		q := kates.Query{Name: sf.Name}
		if at := slices.IndexFunc(queries, func(q kates.Query) bool { return q.Name == sf.Name }); at >= 0 {
			q = queries[at]
		}
		f := field{name: sf.Name, index: sf.Index, key: q.Key, owned: q.Key.IsZero()}
		if f.owned {
			if !q.Where.IsZero() {
				return fmt.Errorf("field %s: its Where would hide objects that a root owns from their removal: choose in the reconcile", sf.Name)
			}
			f.key = kates.ByRemoteOwner("")
			if q.LabelSelector != "" {
				q.LabelSelector += ","
			}
			q.LabelSelector += kates.OwnerLabel
		}
		q.Key = f.key // a watch ignores it, and holds the fields that it needs
		h.fields, h.queries = append(h.fields, f), append(h.queries, q)
	}
	if len(h.fields) == 0 {
		return errors.New("no field says what belongs to a root in a cluster")
	}
	return nil
}

// sort puts the objects that have changed under their keys, and returns all keys that they had or
// have, in order.
func (h *home) sort(all []index, now reflect.Value, deltas []*kates.Delta) (keys []string) {
	for _, d := range deltas {
		i := slices.IndexFunc(h.fields, func(f field) bool { return f.name == d.Query })
		if i < 0 {
			continue
		}
		name := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
		object := find(now.FieldByIndex(h.fields[i].index), name)
		keys = append(keys, all[i].put(name, object, h.keysOf(i, object))...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// put puts an object, or none, under its keys. It returns those that it had or has.
func (x *index) put(name types.NamespacedName, object kates.Object, keys []string) (touched []string) {
	touched = slices.Concat(x.keys[name], keys)
	for _, key := range x.keys[name] {
		if delete(x.objects[key], name); len(x.objects[key]) == 0 {
			delete(x.objects, key)
		}
	}
	if delete(x.keys, name); len(keys) > 0 {
		x.keys[name] = keys
	}
	for _, key := range keys {
		if x.objects[key] == nil {
			x.objects[key] = make(map[types.NamespacedName]kates.Object)
		}
		x.objects[key][name] = object
	}
	return touched
}

// keysOf asks the field's key function. An object for which it panics belongs to no root.
func (h *home) keysOf(i int, o kates.Object) (keys []string) {
	if o == nil {
		return nil
	}
	keys, err := h.fields[i].key.Keys(o)
	if err == nil && slices.Contains(keys, kates.EveryPartition) {
		err = errors.New("its Key gives EveryPartition, and what belongs to every root is in no field of a home controller")
	}
	if err != nil {
		h.fleet.log.Error(err, "an object belongs to no root", "query", h.fields[i].name, "object", o.GetNamespace()+"/"+o.GetName())
		return nil
	}
	return keys
}

// find finds an object in a slice, which is in order; nil if it is not there.
func find(slice reflect.Value, name types.NamespacedName) kates.Object {
	low, high := 0, slice.Len()
	for low < high {
		middle := (low + high) / 2
		o := slice.Index(middle).Interface().(kates.Object)
		switch c := compareNames(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, name); {
		case c == 0:
			return o
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return nil
}

func compareNames(a, b types.NamespacedName) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// collect returns a struct with the objects of a root.
func (h *home) collect(all []index, key string, uid types.UID) reflect.Value {
	value := reflect.New(h.typ).Elem()
	for i, f := range h.fields {
		var names []types.NamespacedName
		objects := all[i].objects[key]
		for name, object := range objects {
			if !f.owned || object.GetLabels()[kates.OwnerLabel] == string(uid) {
				names = append(names, name)
			}
		}
		slices.SortFunc(names, compareNames)
		field := value.FieldByIndex(f.index)
		field.Set(reflect.MakeSlice(field.Type(), 0, len(names)))
		for _, name := range names {
			field.Set(reflect.Append(field, reflect.ValueOf(objects[name])))
		}
	}
	return value
}

// owned returns the objects of the fields that have what a root owns. It is not nil.
func (h *home) owned(value reflect.Value) []kates.Object {
	all := []kates.Object{}
	for _, f := range h.fields {
		if !f.owned {
			continue
		}
		for i, slice := 0, value.FieldByIndex(f.index); i < slice.Len(); i++ {
			all = append(all, slice.Index(i).Interface().(kates.Object))
		}
	}
	return all
}
