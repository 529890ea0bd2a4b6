package kates

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/accumulator/stream"
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

// NewDeltaFromObject returns a delta of the given type for an object. Client-go's scheme must
// know its Go type, or the object must carry its kind.
func NewDeltaFromObject(deltaType DeltaType, obj Object) (*Delta, error) {
	un, err := NewUnstructuredFromObject(obj)
	if err != nil {
		return nil, err
	}
	return NewDelta(deltaType, un), nil
}

func deltaOf(deltaType DeltaType, query string, obj stream.Object) Delta {
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
func deltasOf(diffs []accumulator.Difference) []*Delta {
	if len(diffs) == 0 {
		return nil
	}
	deltas := make([]*Delta, len(diffs))
	var piece []Delta
	for i, d := range diffs {
		if len(piece) == 0 {
			piece = make([]Delta, min(len(diffs)-i, deltasTogether))
		}
		kind, obj := ObjectUpdate, d.New
		switch {
		case d.Old == nil:
			kind = ObjectAdd
		case d.New == nil:
			kind, obj = ObjectDelete, d.Old
		}
		piece[0] = deltaOf(kind, d.Query, obj)
		deltas[i], piece = &piece[0], piece[1:]
	}
	return deltas
}

func typeOf(obj runtime.Object) TypeMeta {
	if u, ok := obj.(*Unstructured); ok { // its own strings, without parsing and joining them
		return TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()}
	}
	version, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return TypeMeta{APIVersion: version, Kind: kind}
}
