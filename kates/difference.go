package kates

import (
	"maps"
	"reflect"
)

// mergePatch returns the JSON merge patch (RFC 7396) that makes to of from; it is empty if they
// are alike. A null in an object counts as absent: a merge patch cannot set one.
func mergePatch(from, to map[string]any) map[string]any {
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
		if p := mergePatch(oldObject, newObject); len(p) > 0 {
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

// carry makes of base what a change made of a partial view of it: before is the view (base in the
// form of a Go type that may not know all fields, written out again), after the changed view. What
// the view does not show stays as it is in base, inside of lists too. None of them is modified; the
// result shares their memory.
func carry(base, before, after any) any {
	switch after := after.(type) {
	case map[string]any:
		b, ok1 := objectOrNil(base)
		f, ok2 := objectOrNil(before)
		if ok1 && ok2 {
			return carryObject(b, f, after)
		}
	case []any:
		b, ok1 := base.([]any)
		f, ok2 := before.([]any)
		if ok1 && ok2 && len(b) == len(f) {
			return carryList(b, f, after)
		}
	}
	return after
}

// objectOrNil takes what is absent for an empty object.
func objectOrNil(v any) (map[string]any, bool) {
	if v == nil {
		return nil, true
	}
	o, ok := v.(map[string]any)
	return o, ok
}

func carryObject(base, before, after map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(out, key)
		}
	}
	for key, value := range after {
		if old, had := before[key]; !had || !reflect.DeepEqual(old, value) {
			out[key] = carry(base[key], old, value)
		}
	}
	return out
}

func carryList(base, before, after []any) []any {
	out := make([]any, len(after))
	for j, i := range pairs(before, after) {
		switch {
		case i < 0:
			out[j] = after[j]
		case reflect.DeepEqual(before[i], after[j]):
			out[j] = base[i]
		default:
			out[j] = carry(base[i], before[i], after[j])
		}
	}
	return out
}

// pairs tells for each element of after which one of before it was, -1 if none: one that is
// equal, in the order of both lists; else the one with the same key; else, in a list without keys
// that is as long as it was, the one at the same place.
func pairs(before, after []any) []int {
	of := make([]int, len(after))
	used := make([]bool, len(before))
	take := func(j, i int) { of[j], used[i] = i, true }
	same := len(before) == len(after)
	for j := range after {
		if of[j] = -1; same && reflect.DeepEqual(before[j], after[j]) {
			take(j, j)
		}
	}
	next := 0
	for j := range after {
		for n := 0; n < len(before) && of[j] < 0; n++ {
			if i := (next + n) % len(before); !used[i] && reflect.DeepEqual(before[i], after[j]) {
				take(j, i)
			}
		}
		if of[j] >= 0 {
			next = of[j] + 1
		}
	}
	key := listKey(before, after)
	places := make(map[any]int, len(before))
	for i := range before {
		if key != "" {
			places[elementKey(before[i], key)] = i
		} else if same {
			places[i] = i
		}
	}
	for j := range after {
		id := any(j)
		if key != "" {
			id = elementKey(after[j], key)
		}
		if i, ok := places[id]; ok && of[j] < 0 && !used[i] {
			take(j, i)
		}
	}
	return of
}

// listKeys are the fields by which the API's lists are merged (patchMergeKey,
// x-kubernetes-list-map-keys), the more telling ones first.
var listKeys = []string{"uid", "name", "key", "type", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey"}

// listKey is the field that tells the elements of both lists apart, "" if there is none.
func listKey(lists ...[]any) string {
	for _, key := range listKeys {
		if !hasDuplicates(key, lists[0]) && !hasDuplicates(key, lists[1]) {
			return key
		}
	}
	return ""
}

// hasDuplicates reports whether key does not tell the elements of a list apart.
func hasDuplicates(key string, list []any) bool {
	seen := make(map[any]bool, len(list))
	for _, element := range list {
		id := elementKey(element, key)
		if id == nil || seen[id] {
			return true
		}
		seen[id] = true
	}
	return false
}

// elementKey is the value of an element's key, nil if it has none that can be compared.
func elementKey(element any, key string) any {
	o, _ := element.(map[string]any)
	switch id := o[key].(type) {
	case string, int64:
		return id
	}
	return nil
}
