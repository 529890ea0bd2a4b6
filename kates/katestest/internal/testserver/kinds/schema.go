package kinds

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// extension reports whether a schema has an extension that is true.
func extension(s *spec.Schema, name string) bool {
	is, _ := s.Extensions.GetBool(name)
	return is
}

const (
	preserve  = "x-kubernetes-preserve-unknown-fields"
	embedded  = "x-kubernetes-embedded-resource"
	intOrText = "x-kubernetes-int-or-string"
)

// Prune removes what the schema of a custom kind does not have, and returns the paths of that, in
// order. The metadata, apiVersion and kind stay.
func (c *Custom) Prune(content map[string]any) (unknown []string) {
	if c.Schema == nil || c.PreserveUnknown {
		return nil
	}
	pruneObject(content, c.Schema, "", true, &unknown)
	slices.Sort(unknown)
	return unknown
}

func prune(value any, s *spec.Schema, path string, unknown *[]string) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		pruneObject(v, s, path, extension(s, embedded), unknown)
	case []any:
		if s.Items == nil {
			return
		}
		for i, element := range v {
			prune(element, s.Items.Schema, path+"["+strconv.Itoa(i)+"]", unknown)
		}
	}
}

func pruneObject(content map[string]any, s *spec.Schema, path string, resource bool, unknown *[]string) {
	for name, member := range content {
		if resource && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		at := name
		if path != "" {
			at = path + "." + name
		}
		property, known := s.Properties[name]
		switch {
		case known:
			prune(member, &property, at, unknown)
		case s.AdditionalProperties != nil:
			prune(member, s.AdditionalProperties.Schema, at, unknown)
		case !extension(s, preserve):
			delete(content, name)
			*unknown = append(*unknown, at)
		}
	}
}

// Default fills in the defaults of the schema of a custom kind. A null where none is allowed is
// taken for nothing if there is a default, or the field is not required.
func (c *Custom) Default(content map[string]any) {
	if c.Schema != nil {
		defaultObject(content, c.Schema)
	}
}

func fill(value any, s *spec.Schema) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		defaultObject(v, s)
	case []any:
		if s.Items != nil {
			for _, element := range v {
				fill(element, s.Items.Schema)
			}
		}
	}
}

func defaultObject(content map[string]any, s *spec.Schema) {
	for name, property := range s.Properties {
		member, there := content[name]
		if there && member == nil && !property.Nullable && (property.Default != nil || !slices.Contains(s.Required, name)) {
			delete(content, name)
			there = false
		}
		if !there && property.Default != nil {
			content[name] = whole(property.Default)
		}
		fill(content[name], &property)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		for _, name := range slices.Collect(maps.Keys(content)) {
			if _, known := s.Properties[name]; !known {
				fill(content[name], s.AdditionalProperties.Schema)
			}
		}
	}
}

// whole copies a default, with integers as content has them.
func whole(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		copied := make(map[string]any, len(v))
		for name, member := range v {
			copied[name] = whole(member)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, element := range v {
			copied[i] = whole(element)
		}
		return copied
	}
	return runtime.DeepCopyJSONValue(value)
}
