package kates

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/coherence"
)

// To apply again what was applied already changes nothing, as long as nobody has changed what was applied. Two things of
// an object tell that, whoever reads it, also after a restart:
//
//   - the AppliedAnnotation says what was applied last: it is applied with the rest, so it changes whenever that does;
//   - the managedFields say of which fields the applier is an owner still: who gives one another value takes it away
//     from him.
//
// So where the annotation is that of what is to be applied, and the applier owns every part of it and nothing else, the
// server would find nothing to do but to put the items of lists into their order, which nobody owns, and what a change of the
// schema has lost into its place, which nobody is told of: these are compared.
// Which parts are owned as a whole, the kind's OpenAPI document says where the managedFields cannot (shape). Where a watch drops the managedFields, what counts is that the object is at a version of which
// that was known: because it is that of the server's answer (applyMarks), or since it was among those that were asked
// for (recollections).

// AppliedAnnotation is the annotation by which [Client.ApplyOwned] knows what it has applied: a digest of that. For an [OwnedSet] of
// another Label a dash and a digest of that label follow: sets by different labels may have an object in common.
const AppliedAnnotation = "kates.io/applied"

// appliedAnnotation is that of sets by a label.
func appliedAnnotation(label string) string {
	if label == OwnedSetLabel {
		return AppliedAnnotation
	}
	sum := sha256.Sum256([]byte(label))
	return AppliedAnnotation + "-" + hex.EncodeToString(sum[:8])
}

// digest makes the annotation's value of what is applied.
func digest(parts ...any) (string, error) {
	h := sha256.New()
	for enc, i := json.NewEncoder(h), 0; i < len(parts); i++ {
		if err := enc.Encode(parts[i]); err != nil {
			return "", err
		}
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]), nil
}

// appliedAs is the part of the managedFields that says what a manager has applied; nil if there is none.
func appliedAs(manager string, entries []metav1.ManagedFieldsEntry) []byte {
	for _, entry := range entries {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawBytes()
		}
	}
	return nil
}

// ownsJust reports whether fields, as the managedFields have them, are those of what is applied: every part of it, and
// nothing else. Lists by items are to be in their order besides, which nobody owns.
func (o *owning) ownsJust(fields []byte, applied *Unstructured) bool {
	var set fieldpath.Set
	if len(fields) == 0 || set.FromJSON(bytes.NewReader(fields)) != nil {
		return false
	}
	object := maps.Clone(applied.Object)
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return false
	}
	metadata = maps.Clone(metadata)
	object["metadata"] = metadata
	for _, name := range []string{"apiVersion", "kind"} { // which nobody owns
		delete(object, name)
	}
	for _, name := range []string{"name", "namespace", "uid"} {
		delete(metadata, name)
	}
	return o.covers(&set, object)
}

// owning compares a set of fields with an object, part by part.
type owning struct {
	whole  func(path fieldpath.Path, part any) bool // whether a map or a list is owned as a whole alone
	live   func() map[string]any                    // the object that is there, as far as it is known
	detail detail                                   // how far that is
	path   fieldpath.Path                           // of the part
}

// covers reports whether a set of fields has every part of a value, and nothing else. A part is had as a whole, where it is a
// scalar or atomic, or by its parts.
func (o *owning) covers(set *fieldpath.Set, part any) bool {
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
	return false // which has no parts
}

// has reports whether a set has an element, whose value is part, whole or by just its parts.
func (o *owning) has(set *fieldpath.Set, e fieldpath.PathElement, part any) bool {
	o.path = append(o.path, e)
	defer func() { o.path = o.path[:len(o.path)-1] }()
	if children, ok := set.Children.Get(e); ok {
		return o.covers(children, part)
	}
	return set.Members.Has(e) && o.hasWhole(e, part) && o.kept(part)
}

// inOrder reports whether the live list has these items in this order. An apply would put them into it.
func (o *owning) inOrder(items []*fieldpath.PathElement) bool {
	if len(items) < 2 {
		return true
	}
	list, _ := partAt(o.live(), o.path).([]any)
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

// partAt is a part of a value; nil if there is none.
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

// hasWhole reports whether a part, of which a set has none of the parts, is had nevertheless. One by a key, of a map or of a list, may
// be in a set beside its own parts, and is left there alone when others have changed all of these.
func (o *owning) hasWhole(e fieldpath.PathElement, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		if e.Key != nil {
			return slices.ContainsFunc(*e.Key, func(key value.Field) bool { _, given := part[key.Name]; return given }) // which nobody can change
		}
		return len(part) == 0 || o.whole(o.path, part)
	case []any:
		return len(part) == 0 || o.whole(o.path, part)
	}
	return true
}

// all reports whether something holds for each element of a set.
func all(set *fieldpath.Set, holds func(fieldpath.PathElement) bool) bool {
	for e := range set.Members.All() {
		if !holds(e) {
			return false
		}
	}
	for e := range set.Children.All() {
		if !holds(e) {
			return false
		}
	}
	return true
}

// itemOf is the place of the item of a list that an element of a path means; -1 if there is none, or nobody can tell. A key that
// an item leaves out has its default there, whatever that is.
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

// means reports whether an element of a path may mean an item; whole, that the item has all of the key.
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

// sameScalar compares a value of a path with one of an object.
func sameScalar(a, b any) bool {
	switch b.(type) {
	case string, bool, int64, float64:
		return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b)) // numbers by what they are
	}
	return false
}

// applyMarks remembers of which objects it is known what was applied to them, as of which version.
//
// It holds some hundred bytes for each object that streams of this client show; what they do not show any more is
// forgotten from time to time. The zero value is empty.
type applyMarks struct {
	mu    sync.Mutex
	marks map[storedKey]applied
	sweep int // the number of marks at which to look for those that are no longer needed
}

// applied is one apply that has succeeded.
type applied struct {
	resource accumulator.Resource
	manager  string
	sum      string
	uid      types.UID
	version  string
}

// at reports whether the object is at a version as of which that was applied, and nothing else since.
func (a *applyMarks) at(w *wanted, manager string, now Object) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, ok := a.marks[w.stored()]
	return ok && was.sum == w.sum && was.manager == manager && was.uid == now.GetUID() && was.version == now.GetResourceVersion()
}

// put remembers that something is applied as of a version.
func (a *applyMarks) put(streams *accumulator.Streams, w *wanted, manager string, uid types.UID, version string) {
	if !coherence.Comparable(version) || uid == "" {
		return
	}
	done := applied{resource: w.resource, manager: manager, sum: w.sum, uid: uid, version: version}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.marks == nil {
		a.marks = make(map[storedKey]applied)
	}
	a.marks[w.stored()] = done
	if len(a.marks) < max(a.sweep, 1024) {
		return
	}
	maps.DeleteFunc(a.marks, func(key storedKey, m applied) bool { return !streams.Holds(m.resource, key.Key, m.uid) })
	a.sweep = 2 * len(a.marks)
}

// count is of how many objects of a kind something is remembered.
func (a *applyMarks) count(storage string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.marks {
		if key.storage == storage {
			n++
		}
	}
	return n
}

func (a *applyMarks) forget(key storedKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.marks, key)
}
