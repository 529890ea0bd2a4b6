package patch

import "reflect"

// Merge returns the JSON merge patch (RFC 7396) that turns from into to. It is empty if they are
// equal. A null in an object counts as absent, since a merge patch cannot set one.
func Merge(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key, value := range to {
		old := from[key]
		if value == nil || reflect.DeepEqual(old, value) {
			continue
		}
		oldObject, ok1 := old.(map[string]any)
		newObject, ok2 := value.(map[string]any)
		if !ok1 || !ok2 {
			patch[key] = value
			continue
		}
		if p := Merge(oldObject, newObject); len(p) > 0 {
			patch[key] = p
		}
	}
	for key, old := range from {
		if old != nil && to[key] == nil {
			patch[key] = nil
		}
	}
	return patch
}
