package kinds

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Validate says what is wrong with the content of a custom object, beside its metadata. The rules
// of the schema are not checked if something is wrong with either.
func (c *Custom) Validate(content map[string]any, metadata field.ErrorList) field.ErrorList {
	if c.Schema == nil {
		return nil
	}
	body := maps.Clone(content)
	delete(body, "metadata")
	schema := c.checked
	result := validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(body)
	var all field.ErrorList
	for _, err := range result.Errors {
		all = append(all, fieldError(err))
	}
	all = append(all, c.scaleErrors(body)...)
	all = append(all, listErrors(body, schema, nil)...)
	if (slices.ContainsFunc(all, blocks) || slices.ContainsFunc(metadata, blocks)) && hasRules(schema) {
		all = append(all, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	return all
}

// blocks reports whether rules are not checked because of an error.
func blocks(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// checked is a schema as objects are checked by it: their metadata is checked otherwise, and what
// is an integer or a string has these two types.
func checked(s *spec.Schema) *spec.Schema {
	c := typed(s)
	delete(c.Properties, "metadata")
	return c
}

func typed(s *spec.Schema) *spec.Schema {
	if s == nil {
		return nil
	}
	c := *s
	if extension(s, intOrText) {
		c.Type = spec.StringOrArray{"integer", "string"}
	}
	c.Properties = maps.Clone(s.Properties)
	for name, property := range c.Properties {
		c.Properties[name] = *typed(&property)
	}
	if s.Items != nil {
		c.Items = &spec.SchemaOrArray{Schema: typed(s.Items.Schema)}
	}
	if s.AdditionalProperties != nil {
		c.AdditionalProperties = &spec.SchemaOrBool{Allows: s.AdditionalProperties.Allows, Schema: typed(s.AdditionalProperties.Schema)}
	}
	return &c
}

// scaleErrors are the numbers of replicas that are none.
func (c *Custom) scaleErrors(body map[string]any) (all field.ErrorList) {
	if c.Scale == nil {
		return nil
	}
	for _, path := range []string{c.Scale.Spec, c.Scale.Status} {
		n, _, err := unstructured.NestedInt64(body, strings.Split(strings.TrimPrefix(path, "."), ".")...)
		if err != nil || n < 0 {
			all = append(all, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
		}
	}
	return all
}

// hasRules reports whether a schema has rules of its own (x-kubernetes-validations), which are not
// checked here.
func hasRules(s *spec.Schema) bool {
	if s == nil {
		return false
	}
	if _, there := s.Extensions["x-kubernetes-validations"]; there {
		return true
	}
	for _, property := range s.Properties {
		if hasRules(&property) {
			return true
		}
	}
	return s.Items != nil && hasRules(s.Items.Schema) || s.AdditionalProperties != nil && hasRules(s.AdditionalProperties.Schema)
}

func fieldError(err error) *field.Error {
	var v *openapierrors.Validation
	if !errors.As(err, &v) {
		return field.Invalid(nil, "", err.Error())
	}
	var path *field.Path
	if name := strings.TrimPrefix(v.Name, "."); name != "" {
		path = field.NewPath(name)
	}
	switch v.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "")
	case openapierrors.EnumFailCode:
		values := make([]string, len(v.Values))
		for i, allowed := range v.Values {
			if text, ok := allowed.(string); ok {
				values[i] = text
			} else {
				raw, _ := json.Marshal(allowed) // it comes from JSON
				values[i] = string(raw)
			}
		}
		return field.NotSupported(path, v.Value, values)
	case openapierrors.TooLongFailCode:
		most, _ := v.Valid.(int64)
		return field.TooLong(path, "", int(most))
	case openapierrors.MaxItemsFailCode:
		most, _ := v.Valid.(int64)
		return field.TooMany(path, -1, int(most))
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(path, v.Value, err.Error())
	}
	return field.Invalid(path, v.Value, err.Error())
}

// listErrors are the elements of sets and maps (x-kubernetes-list-type) that are there twice.
func listErrors(value any, s *spec.Schema, path *field.Path) (all field.ErrorList) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if property, known := s.Properties[name]; known {
				all = append(all, listErrors(member, &property, path.Child(name))...)
			} else if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
				all = append(all, listErrors(member, s.AdditionalProperties.Schema, path.Key(name))...)
			}
		}
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return nil
		}
		seen := map[string]bool{}
		for i, element := range v {
			if id, unique := identity(element, s); unique {
				if seen[id] {
					all = append(all, field.Duplicate(path.Index(i), shown(element, s)))
				}
				seen[id] = true
			}
			all = append(all, listErrors(element, s.Items.Schema, path.Index(i))...)
		}
	}
	return all
}

// identity is what must be unique of an element, if anything must.
func identity(element any, s *spec.Schema) (id string, unique bool) {
	kind, _ := s.Extensions.GetString("x-kubernetes-list-type")
	if kind != "set" && kind != "map" {
		return "", false
	}
	raw, err := json.Marshal(shown(element, s)) // sorts the keys
	return string(raw), err == nil
}

// shown is the part of an element that tells it apart.
func shown(element any, s *spec.Schema) any {
	keys, isMap := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	members, ok := element.(map[string]any)
	if !isMap || !ok {
		return element
	}
	part := map[string]any{}
	for _, key := range keys {
		value, there := members[key]
		if property, known := s.Items.Schema.Properties[key]; !there && known && property.Default != nil {
			value = whole(property.Default)
		}
		part[key] = value
	}
	return part
}
