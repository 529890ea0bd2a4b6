package applied

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// FieldsOf returns the part of the managedFields that lists what a manager has applied, nil if
// there is none.
func FieldsOf(manager string, entries []metav1.ManagedFieldsEntry) []byte {
	for _, entry := range entries {
		applied := entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
		if entry.Manager == manager && applied && entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawBytes()
		}
	}
	return nil
}

// Check compares the fields that an applier owns with the object that it applies, part by part.
type Check struct {
	// Whole reports whether a map or a list can be owned only as a whole.
	Whole func(path fieldpath.Path, part any) bool
	// Now has the metadata of the live object, nil if they are not known. Owners are applied.
	Now    metav1.Object
	Owners []metav1.OwnerReference
	// Live returns the live object, as far as it is known.
	Live func() map[string]any
	// Shown returns the applied object as the server shows it: quantities and times have one form.
	// It is nil where that is not known.
	Shown func() map[string]any
	// Type is the Go type of the kind, nil if there is none.
	Type reflect.Type
	// Detail is how much of it is known.
	Detail Detail
	// AsGiven says that the live object has all applied values outside the metadata, and the items
	// of each list in their order: see [HasValues].
	AsGiven bool

	path fieldpath.Path // of the part that is compared
}

// OwnsJust reports whether fields, in the form of the managedFields, are those of the applied
// object: every part of it, and nothing else. Lists with items must also be in their order, which
// has no owner.
func (o *Check) OwnsJust(fields []byte, applied *unstructured.Unstructured) bool {
	var set fieldpath.Set
	return len(fields) > 0 && set.FromJSON(bytes.NewReader(fields)) == nil && o.ownsJust(&set, applied, nil)
}

// OwnsEntry is OwnsJust for what a stream has told.
func (o *Check) OwnsEntry(e Entry, applied *unstructured.Unstructured) bool {
	if metadata, ok := applied.Object["metadata"].(map[string]any); ok {
		owner := only(metadata["ownerReferences"])
		if set := e.shared(); set != nil && owner != nil && owner["uid"] == string(e.owners[0].UID) {
			owner = maps.Clone(owner)
			owner["uid"] = theOwner
			return o.ownsJust(set, applied, owner)
		}
	}
	return o.OwnsJust(e.Fields(), applied)
}

// only returns the only item of a list.
func only(list any) map[string]any {
	if items, ok := list.([]any); ok && len(items) == 1 {
		item, _ := items[0].(map[string]any)
		return item
	}
	return nil
}

// ownsJust is OwnsJust for a set. Owner is the object's only owner reference, if it is not to be
// taken from the object.
func (o *Check) ownsJust(set *fieldpath.Set, applied *unstructured.Unstructured, owner map[string]any) bool {
	object := maps.Clone(applied.Object)
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return false
	}
	if !o.keepsMetadata(metadata) {
		return false
	}
	metadata = maps.Clone(metadata)
	object["metadata"] = metadata
	for _, name := range []string{"apiVersion", "kind"} { // nobody owns these
		delete(object, name)
	}
	for _, name := range []string{"name", "namespace", "uid"} {
		delete(metadata, name)
	}
	if owner != nil {
		metadata["ownerReferences"] = []any{owner}
	}
	return o.covers(set, object)
}

// covers reports whether a set of fields has every part of a value, and nothing else. The set has
// a scalar or an atomic part as a whole, any other by its parts.
func (o *Check) covers(set *fieldpath.Set, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		for name, part := range part {
			if !o.has(set, fieldpath.PathElement{FieldName: &name}, part) {
				return false
			}
		}
		return all(set, func(e fieldpath.PathElement) bool {
			if e.FieldName == nil {
				return false
			}
			_, ok := part[*e.FieldName]
			return ok
		})
	case []any:
		found := make([]*fieldpath.PathElement, len(part))
		one := func(e fieldpath.PathElement) bool {
			i := itemOf(part, e)
			if i < 0 || found[i] != nil && !found[i].Equals(e) {
				return false
			}
			found[i] = &e
			return o.has(set, e, part[i])
		}
		return all(set, one) && !slices.Contains(found, nil) && o.inOrder(found)
	}
	return false // a scalar has no parts
}

// has reports whether a set has an element with the value part, as a whole or by exactly its
// parts.
func (o *Check) has(set *fieldpath.Set, e fieldpath.PathElement, part any) bool {
	o.path = append(o.path, e)
	defer func() { o.path = o.path[:len(o.path)-1] }()
	if children, ok := set.Children.Get(e); ok {
		return o.covers(children, part)
	}
	return set.Members.Has(e) && o.hasWhole(e, part) && o.kept(part)
}

// inOrder reports whether the live list has these items in this order. An apply would restore it.
func (o *Check) inOrder(items []*fieldpath.PathElement) bool {
	if len(items) < 2 || o.AsGiven && !o.inMetadata() {
		return true
	}
	list, _ := partAt(o.Live(), o.path).([]any)
	last := -1
	for _, item := range items {
		i := itemOf(list, *item)
		if i <= last {
			return false
		}
		last = i
	}
	return true
}

// partAt returns a part of a value, nil if there is none. unstructured.NestedFieldNoCopy does not
// find items of lists.
func partAt(value any, path fieldpath.Path) any {
	for _, e := range path {
		switch here := value.(type) {
		case map[string]any:
			if e.FieldName == nil {
				return nil
			}
			value = here[*e.FieldName]
		case []any:
			i := itemOf(here, e)
			if i < 0 {
				return nil
			}
			value = here[i]
		default:
			return nil
		}
	}
	return value
}

// hasWhole reports whether a set that has a part, but none of its parts, owns the part as a
// whole. The entry of a map or the item of a list by key may be in the set beside its own parts.
// It is left alone in the set after others have changed all of these.
func (o *Check) hasWhole(e fieldpath.PathElement, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		if e.Key != nil { // nobody can change the fields of the key
			return slices.ContainsFunc(*e.Key, func(key value.Field) bool { _, given := part[key.Name]; return given })
		}
		return len(part) == 0 || o.Whole(o.path, part)
	case []any:
		return len(part) == 0 || o.Whole(o.path, part)
	}
	return true
}

// all reports whether holds is true for each element of a set. Not every iterator of sets can be
// left before its end.
func all(set *fieldpath.Set, holds func(fieldpath.PathElement) bool) bool {
	every := true
	each := func(e fieldpath.PathElement) { every = every && holds(e) }
	set.Members.Iterate(each)
	set.Children.Iterate(each)
	return every
}

// itemOf returns the index of the list item that an element of a path names, -1 if there is none
// or it is ambiguous. A key field that an item omits has a default, which is not known here.
func itemOf(list []any, e fieldpath.PathElement) int {
	var exact, other []int
	for i, item := range list {
		switch means, whole := means(e, item); {
		case means && whole:
			exact = append(exact, i)
		case means:
			other = append(other, i)
		}
	}
	if len(exact) == 0 {
		exact = other
	}
	if len(exact) != 1 {
		return -1
	}
	return exact[0]
}

// means reports whether an element of a path may name an item, and whether the item has all
// fields of the key.
func means(e fieldpath.PathElement, item any) (means, whole bool) {
	switch {
	case e.Value != nil:
		same := sameScalar((*e.Value).Unstructured(), item)
		return same, same
	case e.Key != nil:
		object, ok := item.(map[string]any)
		whole = true
		for _, key := range *e.Key {
			given, has := object[key.Name]
			if has && !sameScalar(key.Value.Unstructured(), given) {
				return false, false
			}
			whole = whole && has
		}
		return ok, whole
	}
	return false, false
}

// sameScalar compares a value of a path with a value of an object.
func sameScalar(a, b any) bool {
	switch b.(type) {
	case string, bool, int64, float64:
		// compares numbers by their value
		return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b))
	}
	return false
}
