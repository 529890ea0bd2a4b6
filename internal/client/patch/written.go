package patch

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Written returns what a patch sets, as a part of the object: what it removes is null, or is not
// there. It is nil for a patch that cannot be read. Of a JSON patch it has what is set in fields
// of fields, and nothing within lists: where they begin is not known.
func Written(pt types.PatchType, data []byte) map[string]any {
	switch pt {
	case types.JSONPatchType:
		return writtenByOperations(data)
	case types.ApplyYAMLPatchType:
		encoded, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil
		}
		data = encoded
	}
	var set map[string]any
	if utiljson.Unmarshal(data, &set) != nil {
		return nil
	}
	if pt == types.StrategicMergePatchType {
		set, _ = withoutDirectives(set).(map[string]any)
	}
	return set
}

// withoutDirectives returns what a strategic merge patch sets. See
// https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/.
func withoutDirectives(value any) any {
	switch value := value.(type) {
	case map[string]any:
		set := map[string]any{}
		for key, v := range value {
			if !strings.HasPrefix(key, "$") {
				set[key] = withoutDirectives(v)
			}
		}
		return set
	case []any:
		var set []any
		for _, v := range value {
			element, ok := v.(map[string]any)
			if _, directive := element["$patch"]; !ok || !directive {
				set = append(set, withoutDirectives(v))
			}
		}
		return set
	}
	return value
}

func writtenByOperations(data []byte) map[string]any {
	var operations []struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if json.Unmarshal(data, &operations) != nil {
		return nil
	}
	set := map[string]any{}
	for _, o := range operations {
		fields, ok := pointer(o.Path)
		if !ok {
			continue
		}
		switch o.Op {
		case "add", "replace":
			var value any
			if utiljson.Unmarshal(o.Value, &value) == nil {
				set = with(set, fields, value)
			}
		case "remove", "move", "copy":
			set = with(set, fields, nil)
		}
	}
	return set
}

// pointer splits a JSON pointer (RFC 6901). ok is false if it may point into a list, or points to
// the whole.
func pointer(path string) (fields []string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return nil, false
	}
	for field := range strings.SplitSeq(rest, "/") {
		if _, err := strconv.Atoi(field); err == nil || field == "-" {
			return nil, false
		}
		field = strings.ReplaceAll(strings.ReplaceAll(field, "~1", "/"), "~0", "~")
		fields = append(fields, field)
	}
	return fields, true
}

// with returns a copy with a field of a field set. What is no object on the way becomes one.
func with(object map[string]any, fields []string, value any) map[string]any {
	set := maps.Clone(object)
	if len(fields) == 1 {
		set[fields[0]] = value
		return set
	}
	inner, _ := object[fields[0]].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
	}
	set[fields[0]] = with(inner, fields[1:], value)
	return set
}
