package kates

import (
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// patch is a change as it is sent.
type patch struct {
	of   PatchType
	body any // nil: see unknown
}

// unknown reports whether the object has to be read to know what to send.
func (p *patch) unknown() bool { return p.body == nil }

// refused reports whether the server does not take a JSON patch, whatever the reason: the version is not that one (the test
// for it fails), or a part of the object is not there, or it is a server that takes no such patches. Nothing was written.
func (p *patch) refused(err error) bool {
	return p.of == types.JSONPatchType && (apierrors.IsInvalid(err) || apierrors.IsUnsupportedMediaType(err))
}

// blindPatch is the patch by which a change of what a Go type knows of an object becomes one of the object, of which the
// rest is not known: base is what is known, in JSON, before and after what the change was given and made of it, and merge
// the merge patch from base. It is unknown where none surely leaves the rest alone. It is exact for that very version of the
// object, and no other.
//
// A merge patch leaves alone what it does not name, but for lists, which it replaces. Where that would lose something, a
// JSON patch names what changed in the elements.
func blindPatch(base, before, after, merge map[string]any) *patch {
	switch {
	case !sendsList(merge):
		return &patch{types.MergePatchType, merge}
	case !reflect.DeepEqual(base, before): // a Go type that does not read what it writes
		return &patch{}
	case replaceable(base, merge):
		return &patch{types.MergePatchType, merge}
	}
	if operations, ok := jsonPatch(base, after); ok {
		return &patch{types.JSONPatchType, operations}
	}
	return &patch{}
}

// sendsList reports whether a merge patch has a list in it.
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

// replaceable reports whether the lists in a merge patch may replace those that are there: no element stays that may be
// more than the Go type knows of it. What knows of a list knows how many elements it has, so one that it shows as empty,
// or not at all, is.
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

// plain reports whether Go types write a value as they read it. Of numbers, times and quantities they may have dropped
// digits.
func plain(v any) bool {
	switch v := v.(type) {
	case bool:
		return true
	case string:
		return v == "" || v[0] >= 'A'
	}
	return false
}
