package kates

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op   string `json:"op"`
	From string `json:"from,omitempty"`
	Path string `json:"path"`
	// Value may be null: it is left out where the operation has none.
	Value *any `json:"value,omitempty"`
}

// maxOperations is how many of them are worth more than a reading of the object. The server takes 10000.
const maxOperations = 500

// jsonPatch returns operations that do to an object what was done to a view of it: from is the view (what a Go type shows
// of the very object that the patch is applied to), to the changed view. What was not changed is not touched, so that what
// the view does not show stays, in the elements of lists too, which are found as [carry] finds them. It is not ok where a
// view cannot tell which operations these are:
//
//   - where something changed in an object that the view may have made up ("status": {} is what a Go type writes for no
//     status), since nothing can be put into what is not there (see proven);
//   - where an object was put to where the view shows none, since there may be one of which it shows nothing;
//   - where there are too many.
//
// It modifies neither; the operations share their memory.
func jsonPatch(from, to map[string]any) (patch []operation, ok bool) {
	var p patcher
	p.object("", from, to)
	return p.operations, !p.unknown && len(p.operations) <= maxOperations
}

type patcher struct {
	operations []operation
	unknown    bool // there is something that the view cannot tell
}

func (p *patcher) add(op, path string, value any) {
	p.operations = append(p.operations, operation{Op: op, Path: path, Value: &value})
}

func (p *patcher) remove(path string) {
	p.operations = append(p.operations, operation{Op: "remove", Path: path})
}

// object makes to of from, which is there. As in a merge patch, a null counts as absent.
func (p *patcher) object(path string, from, to map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if old, value := from[key], to[key]; value != nil && !reflect.DeepEqual(old, value) {
			p.value("add", path+"/"+escape.Replace(key), old, value) // which replaces a member that is there
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if old := from[key]; old != nil && to[key] == nil {
			p.unknown = p.unknown || !proven(old)
			p.remove(path + "/" + escape.Replace(key))
		}
	}
}

// value makes a value of an old one. The operation is one that puts it there whole.
func (p *patcher) value(op, path string, old, value any) {
	switch value := value.(type) {
	case map[string]any:
		o, _ := old.(map[string]any)
		p.unknown = p.unknown || !proven(o)
		p.object(path, o, value)
		return
	case []any:
		if o, _ := old.([]any); len(o) > 0 {
			p.list(path, o, value)
			return
		}
	}
	p.add(op, path, withoutNulls(value))
}

// list makes to of from, which has elements: first those that are to be there in their places, then what is in them.
func (p *patcher) list(path string, from, to []any) {
	at := func(i int) string { return fmt.Sprintf("%s/%d", path, i) }
	of := pairs(from, to)
	var now []int // which one of from is at which place
	for i := range from {
		now = append(now, i)
	}
	for i := len(from) - 1; i >= 0; i-- {
		if !slices.Contains(of, i) {
			p.remove(at(i))
			now = slices.Delete(now, i, i+1)
		}
	}
	for j, i := range of {
		switch {
		case i < 0:
			p.add("add", at(j), withoutNulls(to[j]))
			now = slices.Insert(now, j, i)
		case now[j] != i:
			k := slices.Index(now, i)
			p.operations = append(p.operations, operation{Op: "move", From: at(k), Path: at(j)})
			now = slices.Insert(slices.Delete(now, k, k+1), j, i)
		}
	}
	for j, i := range of {
		if i >= 0 && !reflect.DeepEqual(from[i], to[j]) {
			p.value("replace", at(j), from[i], to[j])
		}
	}
}

// escape writes a member's name as a part of a path (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// proven reports whether a value of a view is one that the object must have. Go types write zero values of what it has
// not, some of which do not look like it: a quantity's is "0", a duration's "0s". A type that writes others deceives this,
// and the server refuses the patch.
func proven(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if proven(member) {
				return true
			}
		}
		return false
	case []any:
		return len(v) > 0
	case string:
		return v != "" && v != "0" && v != "0s"
	case bool:
		return v
	}
	return v != nil && !reflect.ValueOf(v).IsZero()
}

// withoutNulls is a value as a merge patch would have put it there.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if value != nil {
				out[key] = withoutNulls(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutNulls(v[i])
		}
		return out
	}
	return v
}
