package patch

import (
	"maps"
	"reflect"
)

// carry applies to base a change that was made in a partial view of it. Before is the view: base
// decoded into a Go type that may lack fields, and encoded again. After is the changed view. What
// the view does not show stays as it is in base, also in the elements of lists. The arguments are
// not modified; the result shares their memory.
func carry(base, before, after any) any {
	switch after := after.(type) {
	case map[string]any:
		b, ok1 := objectOrNil(base)
		f, ok2 := objectOrNil(before)
		if ok1 && ok2 {
			return CarryObject(b, f, after)
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

// objectOrNil reads an absent value as an empty object.
func objectOrNil(v any) (map[string]any, bool) {
	if v == nil {
		return nil, true
	}
	o, ok := v.(map[string]any)
	return o, ok
}

// CarryObject is carry for an object:
//
//	base   {image: a, hidden: h}     the object
//	before {image: a}                what the view shows of it
//	after  {image: b}                the changed view
//	result {image: b, hidden: h}
func CarryObject(base, before, after map[string]any) map[string]any {
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

// pairs returns for each element of after the index of its origin in before, -1 if it is new. The
// origin is an equal element, in the order of both lists; else the element with the same key;
// else, if the list has no keys and its length did not change, the element at the same place.
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

// listKeys are the fields by which the API merges lists (patchMergeKey,
// x-kubernetes-list-map-keys), the more specific ones first.
var listKeys = []string{
	"uid", "name", "key", "type", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey",
}

// listKey returns the field that is unique in each of the two lists, "" if there is none.
func listKey(lists ...[]any) string {
	for _, key := range listKeys {
		if !hasDuplicates(key, lists[0]) && !hasDuplicates(key, lists[1]) {
			return key
		}
	}
	return ""
}

// hasDuplicates reports whether some element lacks the key, or two have the same.
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

// elementKey returns the value of an element's key, nil if it has none that can be compared.
func elementKey(element any, key string) any {
	o, _ := element.(map[string]any)
	switch id := o[key].(type) {
	case string, int64:
		return id
	}
	return nil
}
