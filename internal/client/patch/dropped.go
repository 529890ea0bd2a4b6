package patch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Dropped returns the paths, in order, of what a change has added or altered and what the answer
// to its patch does not have. Before and after are the object as the change was given it and as
// the change made it; the answer is the object as the server then stores it.
//
// A server drops what its schema does not know, without an error. A value that the answer has
// otherwise is not dropped: defaults and webhooks alter values. Nor is an empty value, because
// many Go types leave those out.
func Dropped(before, after, answer any) []string { return dropped(nil, "", before, after, answer) }

func dropped(to []string, path string, before, after, answer any) []string {
	if empty(after) || reflect.DeepEqual(before, after) {
		return to
	}
	if answer == nil {
		return append(to, path)
	}
	switch after := after.(type) {
	case map[string]any:
		b, _ := before.(map[string]any)
		if a, ok := answer.(map[string]any); ok {
			for _, key := range slices.Sorted(maps.Keys(after)) {
				to = dropped(to, join(path, key), b[key], after[key], a[key])
			}
		}
	case []any:
		b, _ := before.([]any)
		if a, ok := answer.([]any); ok {
			to = droppedElements(to, path, b, after, a)
		}
	}
	return to
}

// droppedElements is dropped for lists. An element that has no counterpart is dropped if the
// list's elements have a key, or if the answer has fewer elements: else it may have become another
// one.
func droppedElements(to []string, path string, before, after, answer []any) []string {
	origins, results := pairs(before, after), pairs(answer, after)
	certain := len(answer) < len(after) || listKey(after, answer) != ""
	for j := range after {
		at, old := fmt.Sprintf("%s[%d]", path, j), any(nil)
		if i := origins[j]; i >= 0 {
			old = before[i]
		}
		equal := func(v any) bool { return reflect.DeepEqual(v, after[j]) }
		switch i := results[j]; {
		case i >= 0:
			to = dropped(to, at, old, after[j], answer[i])
		case certain && !slices.ContainsFunc(answer, equal):
			to = dropped(to, at, old, after[j], nil)
		}
	}
	return to
}

// Kept returns what is left of a value if a server drops what it does not know. Known is the value
// after a round trip through the Go type that says what the server knows.
func Kept(value, known any) any {
	switch value := value.(type) {
	case map[string]any:
		k, _ := known.(map[string]any)
		kept := make(map[string]any, len(value))
		for key, v := range value {
			if _, ok := k[key]; ok || empty(v) {
				kept[key] = Kept(v, k[key])
			}
		}
		return kept
	case []any:
		k, _ := known.([]any)
		kept := slices.Clone(value)
		for i := range min(len(k), len(kept)) {
			kept[i] = Kept(kept[i], k[i])
		}
		return kept
	}
	return value
}

// empty reports whether a value says nothing: Go types may leave it out.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, value := range v {
			if !empty(value) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return reflect.ValueOf(v).IsZero()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
