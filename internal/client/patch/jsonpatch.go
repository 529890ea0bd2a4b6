package patch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op   string `json:"op"`
	From string `json:"from,omitempty"`
	Path string `json:"path"`
	// Value is a pointer so that a null can be told from no value, which is left out.
	Value *any `json:"value,omitempty"`
}

// maxOperations limits a JSON patch. Reading the object costs less than a longer one. The server
// takes 10,000.
const maxOperations = 500

// jsonPatch returns the operations that repeat on an object a change that was made in a view of
// it. From is the view: what a Go type shows of that version of the object. To is the changed
// view. The operations touch only what changed, so fields that the view does not show stay, also
// in the elements of lists, which [pairs] finds. The result is not ok if the view cannot tell the
// operations:
//
//   - Something changed in an object that the Go type may have made up: it writes "status": {} for
//     no status. Nothing can be added to an object that does not exist (see proven).
//   - An object was added where the view shows none. There may be one that the view does not show.
//   - There are more than maxOperations.
//
// It modifies neither argument; the operations share their memory.
func jsonPatch(from, to map[string]any) (patch []operation, ok bool) {
	var p patcher
	p.object("", from, to)
	return p.operations, !p.unknown && len(p.operations) <= maxOperations
}

type patcher struct {
	operations []operation
	unknown    bool // the view cannot tell the operations
}

func (p *patcher) add(op, path string, value any) {
	p.operations = append(p.operations, operation{Op: op, Path: path, Value: &value})
}

func (p *patcher) remove(path string) {
	p.operations = append(p.operations, operation{Op: "remove", Path: path})
}

// object turns from, which exists, into to. As in a merge patch, a null counts as absent.
func (p *patcher) object(path string, from, to map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if old, value := from[key], to[key]; value != nil && !reflect.DeepEqual(old, value) {
			// "add" replaces a member, too
			p.value("add", path+"/"+escape.Replace(key), old, value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if old := from[key]; old != nil && to[key] == nil {
			p.unknown = p.unknown || !proven(old)
			p.remove(path + "/" + escape.Replace(key))
		}
	}
}

// value turns an old value into a new one. Op is the operation that sets it as a whole.
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

// list turns from, which is not empty, into to. First it puts the elements into their places,
// then it changes their content.
func (p *patcher) list(path string, from, to []any) {
	at := func(i int) string { return fmt.Sprintf("%s/%d", path, i) }
	of := pairs(from, to)
	var now []int // the element of from at each place
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

// escape writes a member's name as a segment of a path (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// proven reports whether the object must have a value that the view shows. Go types write zero
// values for fields that the object does not have: {}, 0, a quantity's "0", a duration's "0s".
// For a type that writes other zero values this is wrong, and the server refuses the patch.
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

// withoutNulls returns a value as a merge patch would have set it.
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
