package patch

import (
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Patch is a change as it is sent.
type Patch struct {
	Type types.PatchType
	Body any // nil: see Unknown
}

// Unknown reports whether the object must be read before a patch of it can be made.
func (p *Patch) Unknown() bool { return p.Body == nil }

// Refused reports whether the server refused a JSON patch: the object is at another version (the
// test of it failed), a part of the object does not exist, or the server takes no such patches.
// Nothing was written.
func (p *Patch) Refused(err error) bool {
	return p.Type == types.JSONPatchType && (apierrors.IsInvalid(err) || apierrors.IsUnsupportedMediaType(err))
}

// Blind returns the patch for a change of an object of which only a Go type's view is known. Base
// is the view in JSON, before is what the change was given, after what the change made of it, and
// merge the merge patch from base. The result is Unknown unless it surely leaves alone what the
// view does not show. It holds for that version of the object only.
//
// A merge patch leaves alone what it does not name, except that it replaces lists. Where this
// would lose fields of elements, a JSON patch names the changes in the elements.
func Blind(base, before, after, merge map[string]any) *Patch {
	switch {
	case !sendsList(merge):
		return &Patch{types.MergePatchType, merge}
	case !reflect.DeepEqual(base, before): // the Go type does not read what it writes
		return &Patch{}
	case replaceable(base, merge):
		return &Patch{types.MergePatchType, merge}
	}
	if operations, ok := jsonPatch(base, after); ok {
		return &Patch{types.JSONPatchType, operations}
	}
	return &Patch{}
}

// sendsList reports whether a merge patch contains a list.
func sendsList(merge any) bool {
	switch merge := merge.(type) {
	case []any:
		return true
	case map[string]any:
		for _, value := range merge {
			if sendsList(value) {
				return true
			}
		}
	}
	return false
}

// replaceable reports whether the lists in a merge patch may replace those of the object: no
// element stays that may have more than the view shows. A Go type that knows a list shows all its
// elements, so a list that it shows as empty or absent is empty.
func replaceable(base, merge any) bool {
	switch merge := merge.(type) {
	case map[string]any:
		b, _ := base.(map[string]any)
		for key, value := range merge {
			if !replaceable(b[key], value) {
				return false
			}
		}
	case []any:
		b, _ := base.([]any)
		for j, i := range pairs(b, merge) {
			if i >= 0 && !plain(merge[j]) {
				return false
			}
		}
	}
	return true
}

// plain reports whether Go types write a value exactly as they read it. They may drop digits of
// numbers, times and quantities.
func plain(v any) bool {
	switch v := v.(type) {
	case bool:
		return true
	case string:
		return v == "" || v[0] >= 'A'
	}
	return false
}
