package kates

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
)

// DeltaType is what happened to an object between two snapshots.
type DeltaType int

// The types of a [Delta]. In JSON they are "add", "update" and "delete".
const (
	ObjectAdd DeltaType = iota
	ObjectUpdate
	ObjectDelete
)

var deltaNames = [...]string{ObjectAdd: "add", ObjectUpdate: "update", ObjectDelete: "delete"}

// String returns "add", "update" or "delete".
func (t DeltaType) String() string {
	if t < 0 || int(t) >= len(deltaNames) {
		return fmt.Sprintf("DeltaType(%d)", int(t))
	}
	return deltaNames[t]
}

// MarshalJSON encodes the type as its name.
func (t DeltaType) MarshalJSON() ([]byte, error) {
	if t < 0 || int(t) >= len(deltaNames) {
		return nil, fmt.Errorf("invalid delta type %d", int(t))
	}
	return json.Marshal(deltaNames[t])
}

// UnmarshalJSON decodes a name that MarshalJSON wrote.
func (t *DeltaType) UnmarshalJSON(b []byte) error {
	var name string
	if err := json.Unmarshal(b, &name); err != nil {
		return err
	}
	for i, n := range deltaNames {
		if n == name {
			*t = DeltaType(i)
			return nil
		}
	}
	return fmt.Errorf("unknown delta type %q", name)
}

// A Delta reports that one object was added to, updated in, or deleted from a snapshot. The
// deltas of an Update, applied to the snapshot before, give the snapshot after it. There is one
// per object, but an object that is replaced by another of its name (with another UID) is a
// delete followed by an add. In a controller's struct the deltas are those of the key; see
// package controller.
//
// It identifies the object and does not contain it. Of the metadata it has name, namespace, UID,
// resource version and creation time: after the change, or before it for a delete.
type Delta struct {
	TypeMeta   `json:",inline"`
	ObjectMeta `json:"metadata,omitempty"`
	DeltaType  DeltaType `json:"deltaType"`
	// Query is the name of the query that the object belongs to.
	Query string `json:"query,omitempty"`
}

// NewDelta returns a delta of the given type for an object.
func NewDelta(deltaType DeltaType, obj *Unstructured) *Delta {
	d := deltaOf(deltaType, "", obj)
	return &d
}

// NewDeltaFromObject returns a delta of the given type for an object. Client-go's scheme, or that
// of [InScheme], must know its Go type, or the object must carry its kind.
func NewDeltaFromObject(deltaType DeltaType, obj Object, in ...SchemeOption) (*Delta, error) {
	un, err := NewUnstructuredFromObject(obj, in...)
	if err != nil {
		return nil, err
	}
	return NewDelta(deltaType, un), nil
}

func deltaOf(deltaType DeltaType, query string, obj objects.Object) Delta {
	return Delta{
		TypeMeta: typeOf(obj),
		ObjectMeta: ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
		},
		DeltaType: deltaType,
		Query:     query,
	}
}

// deltasTogether is how many deltas share one allocation. Keeping one of them keeps all.
const deltasTogether = 16

// deltasOf turns differences into deltas.
func deltasOf(diffs []tables.Difference) []*Delta {
	if len(diffs) == 0 {
		return nil
	}
	deltas := make([]*Delta, len(diffs))
	var piece []Delta
	for i, d := range diffs {
		if len(piece) == 0 {
			piece = make([]Delta, min(len(diffs)-i, deltasTogether))
		}
		kind, obj := changeOf(d)
		piece[0] = deltaOf(kind, d.Query, obj)
		deltas[i], piece = &piece[0], piece[1:]
	}
	return deltas
}

// changeOf returns what happened to an object: the object is the old one of a deletion, else the
// new one.
func changeOf(d tables.Difference) (DeltaType, objects.Object) {
	switch {
	case d.Old == nil:
		return ObjectAdd, d.New
	case d.New == nil:
		return ObjectDelete, d.Old
	}
	return ObjectUpdate, d.New
}

func typeOf(obj runtime.Object) TypeMeta {
	if u, ok := obj.(*Unstructured); ok { // its own strings, without parsing and joining them
		return TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()}
	}
	version, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return TypeMeta{APIVersion: version, Kind: kind}
}

// changes joins the deltas of several successive snapshots into one list (G7). Applied to the
// snapshot before the first, they give the last one. The list is bounded by the objects of those
// two snapshots.
type changes struct {
	order map[string]int // of the queries, by name
	of    map[place]*change
}

type place struct {
	query string
	types.NamespacedName
}

// change is what happened to the objects of one name.
type change struct {
	before bool   // an object existed before the first snapshot
	uid    string // its UID
	gone   *Delta // its deletion
	after  *Delta // the latest delta of the object that exists now, nil if there is none
}

// newChanges returns those of snapshots of a struct type, which orders its queries.
func newChanges(t reflect.Type) *changes {
	c := &changes{order: map[string]int{}, of: map[place]*change{}}
	for i, sf := range reflect.VisibleFields(t) {
		c.order[sf.Name] = i
	}
	return c
}

func (c *changes) clear() { clear(c.of) }

// add adds the deltas of one Update.
func (c *changes) add(deltas []*Delta) {
	for _, d := range deltas {
		at := place{d.Query, types.NamespacedName{Namespace: d.Namespace, Name: d.Name}}
		now := c.of[at]
		if now == nil {
			now = &change{}
			if d.DeltaType != ObjectAdd {
				now.before, now.uid = true, string(d.UID)
			}
			c.of[at] = now
		}
		if d.DeltaType != ObjectDelete {
			now.after = d
			continue
		}
		now.after = nil
		if now.before && string(d.UID) == now.uid {
			now.gone = d
		}
		if !now.before {
			delete(c.of, at)
		}
	}
}

// deltas returns the list in copies, ordered by query, namespace and name.
func (c *changes) deltas() (all []*Delta) {
	for _, now := range c.of {
		switch {
		case now.after == nil:
			all = append(all, now.gone.as(ObjectDelete))
		case !now.before:
			all = append(all, now.after.as(ObjectAdd))
		case string(now.after.UID) == now.uid:
			all = append(all, now.after.as(ObjectUpdate))
		default:
			all = append(all, now.gone.as(ObjectDelete), now.after.as(ObjectAdd))
		}
	}
	slices.SortStableFunc(all, func(a, b *Delta) int {
		return cmp.Or(cmp.Compare(c.order[a.Query], c.order[b.Query]),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// as returns a copy with another type.
func (d *Delta) as(t DeltaType) *Delta {
	other := *d
	other.DeltaType = t
	return &other
}
