package conformance

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// compared is what of an answer's body is compared, by the rules of the case and the modifiers of
// the step. It changes body.
func compared(s *step, r rules, body any) any {
	object, is := body.(map[string]any)
	if !is {
		return body
	}
	for _, path := range s.after("drop") {
		remove(object, strings.Split(path, "."))
	}
	if object["kind"] == "Status" && object["apiVersion"] == "v1" {
		return status(object, r.messages || s.has("messages"))
	}
	if keep := s.after("keep"); keep != nil {
		object = only(object, keep)
	}
	if resources, is := object["resources"].([]any); is && object["kind"] == "APIResourceList" {
		// The server lists custom kinds in any order.
		slices.SortFunc(resources, func(a, b any) int { return cmp.Compare(flow(a), flow(b)) })
	}
	items, isList := object["items"].([]any)
	if !isList {
		return r.of(object)
	}
	for i, item := range items {
		if each, is := item.(map[string]any); is {
			items[i] = r.of(each)
		}
	}
	return object
}

// of is what of an object is compared.
func (r rules) of(object map[string]any) map[string]any {
	if len(r.only) > 0 {
		object = only(object, r.only)
	}
	for _, path := range r.ignore {
		remove(object, strings.Split(path, "."))
	}
	return object
}

// status is a Status without what is no promise: its messages. The order of its causes is none,
// either.
func status(s map[string]any, messages bool) any {
	details, _ := s["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	text := func(cause any, key string) string {
		c, _ := cause.(map[string]any)
		value, _ := c[key].(string)
		return value
	}
	slices.SortStableFunc(causes, func(a, b any) int {
		return cmp.Or(cmp.Compare(text(a, "field"), text(b, "field")), cmp.Compare(text(a, "reason"), text(b, "reason")),
			cmp.Compare(text(a, "message"), text(b, "message")))
	})
	if messages {
		if len(causes) > 1 { // it joins theirs, in any order
			delete(s, "message")
		}
		return s
	}
	delete(s, "message")
	for _, cause := range causes {
		if c, is := cause.(map[string]any); is {
			delete(c, "message")
		}
	}
	return s
}

// only is the object with these fields alone, its kind, and its version.
func only(object map[string]any, paths []string) map[string]any {
	out := map[string]any{}
	for _, path := range append([]string{"apiVersion", "kind"}, paths...) {
		take(object, out, strings.Split(path, "."))
	}
	return out
}

func take(from, to map[string]any, path []string) {
	value, has := from[path[0]]
	if !has {
		return
	}
	inner, isObject := value.(map[string]any)
	if len(path) == 1 || !isObject {
		to[path[0]] = value
		return
	}
	next, _ := to[path[0]].(map[string]any)
	if next == nil {
		next = map[string]any{}
		to[path[0]] = next
	}
	take(inner, next, path[1:])
}

// remove removes a field, from each object of a list if the path leads through one.
func remove(at any, path []string) {
	switch at := at.(type) {
	case []any:
		for _, each := range at {
			remove(each, path)
		}
	case map[string]any:
		if len(path) == 1 {
			delete(at, path[0])
			return
		}
		remove(at[path[0]], path[1:])
	}
}

// keys of an object, those first that say what it is.
func keys(object map[string]any) []string {
	first := func(key string) int {
		if i := slices.Index([]string{"apiVersion", "kind", "metadata"}, key); i >= 0 {
			return i
		}
		return 9
	}
	return slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a, b))
	})
}
