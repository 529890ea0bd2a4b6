package rules

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// definitionValid says what is wrong with a definition of a custom kind. Old is nil for a new one.
func definitionValid(k *kinds.Kind, old, c Content) field.ErrorList {
	if k.GroupKind().String() != definitionKind {
		return nil
	}
	spec := field.NewPath("spec")
	group, _, _ := unstructured.NestedString(c, "spec", "group")
	plural, _, _ := unstructured.NestedString(c, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(c, "spec", "scope")
	var errs field.ErrorList
	if name := object(c).GetName(); old == nil && name != plural+"."+group {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, `must be spec.names.plural+"."+spec.group`))
	}
	if was, _, _ := unstructured.NestedString(old, "spec", "group"); old != nil && was != group {
		return append(errs, field.Invalid(spec.Child("group"), group, "field is immutable"))
	}
	if group == "" {
		errs = append(errs, field.Required(spec.Child("group"), ""))
	} else if says := validation.IsDNS1123Subdomain(group); says != nil {
		errs = append(errs, field.Invalid(spec.Child("group"), group, strings.Join(says, ",")))
	}
	switch scope {
	case "Cluster", "Namespaced":
	case "":
		errs = append(errs, field.Required(spec.Child("scope"), ""))
	default:
		errs = append(errs, field.NotSupported(spec.Child("scope"), scope, []string{"Cluster", "Namespaced"}))
	}
	errs = slices.Concat(errs, namesValid(c, spec.Child("names")), versionsValid(c, spec.Child("versions")))
	if _, err := kinds.Define(c); err != nil && errs == nil {
		errs = append(errs, field.Invalid(spec, "", err.Error()))
	}
	return errs
}

// namesValid checks the names of a custom kind.
func namesValid(c Content, path *field.Path) (errs field.ErrorList) {
	names, _, _ := unstructured.NestedMap(c, "spec", "names")
	label := func(path *field.Path, name, says string) {
		if wrong := validation.IsDNS1035Label(strings.ToLower(name)); wrong != nil {
			errs = append(errs, field.Invalid(path, name, says+strings.Join(wrong, ",")))
		}
	}
	for _, f := range []string{"plural", "singular", "kind", "listKind"} {
		name, _ := names[f].(string)
		switch is := name == strings.ToLower(name); {
		case name == "":
			errs = append(errs, field.Required(path.Child(f), ""))
		case f == "kind" || f == "listKind":
			label(path.Child(f), name, "may have mixed case, but should otherwise match: ")
		case !is:
			errs = append(errs, field.Invalid(path.Child(f), name, strings.Join(validation.IsDNS1035Label(name), ",")))
		default:
			label(path.Child(f), name, "")
		}
	}
	for _, f := range []string{"shortNames", "categories"} {
		all, _, _ := unstructured.NestedStringSlice(names, f)
		for i, name := range all {
			if wrong := validation.IsDNS1035Label(name); wrong != nil {
				errs = append(errs, field.Invalid(path.Child(f).Index(i), name, strings.Join(wrong, ",")))
			}
		}
	}
	return errs
}

// versionsValid checks the versions of a custom kind: one of them is stored, and each has a
// schema.
func versionsValid(c Content, path *field.Path) (errs field.ErrorList) {
	versions, _, _ := unstructured.NestedSlice(c, "spec", "versions")
	seen, twice, storage := []string{}, false, 0
	for i, v := range versions {
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		twice = twice || slices.Contains(seen, name)
		seen = append(seen, name)
		if v["storage"] == true {
			storage++
		}
		if wrong := validation.IsDNS1035Label(name); wrong != nil {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), name, strings.Join(wrong, ",")))
			if i == 0 { // it has an old name, too
				errs = append(errs, field.Invalid(field.NewPath("spec", "version"), name, strings.Join(wrong, ",")))
			}
		}
		if schema, there, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema"); !there || len(schema) == 0 {
			errs = append(errs, field.Required(path.Index(i).Child("schema", "openAPIV3Schema"), "schemas are required"))
		}
	}
	if twice {
		errs = append(errs, field.Invalid(path, versions, "must contain unique version names"))
	}
	if storage != 1 {
		errs = append(errs, field.Invalid(path, versions, "must have exactly one version marked as storage version"))
	}
	stored, _, _ := unstructured.NestedStringSlice(c, "status", "storedVersions")
	at := field.NewPath("status", "storedVersions")
	if len(stored) == 0 {
		errs = append(errs, field.Invalid(at, stored, "must have at least one stored version"))
	}
	for i, name := range stored {
		if !slices.Contains(seen, name) {
			errs = append(errs, field.Invalid(at.Index(i), name, "missing from spec.versions: objects may still be stored in it"))
		}
	}
	return append(errs, schemasValid(versions, path)...)
}

// schemasValid checks that the schemas say of each field what it is. If all versions have the same
// schema, the server names it as one of the whole definition.
func schemasValid(versions []any, path *field.Path) (errs field.ErrorList) {
	var schemas []map[string]any
	same := true
	for _, v := range versions {
		v, _ := v.(map[string]any)
		s, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema")
		schemas = append(schemas, s)
		same = same && reflect.DeepEqual(s, schemas[0])
	}
	for i, s := range schemas {
		at := path.Index(i).Child("schema", "openAPIV3Schema")
		if same {
			at = field.NewPath("spec", "validation", "openAPIV3Schema")
		}
		if len(s) > 0 {
			if s["type"] != "object" {
				errs = append(errs, field.Invalid(at.Child("type"), s["type"], "must be object at the root"))
			}
			errs = append(errs, schemaValid(s, at)...)
		}
		if same {
			break
		}
	}
	return errs
}

func schemaValid(s map[string]any, path *field.Path) (errs field.ErrorList) {
	one := func(value any, path *field.Path, says string) {
		inner, ok := value.(map[string]any)
		if !ok {
			return
		}
		if inner["type"] == nil && inner["x-kubernetes-int-or-string"] != true && inner["x-kubernetes-preserve-unknown-fields"] != true {
			errs = append(errs, field.Required(path.Child("type"), "must not be empty for specified "+says))
		}
		errs = append(errs, schemaValid(inner, path)...)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		one(properties[name], path.Child("properties").Key(name), "object fields")
	}
	one(s["items"], path.Child("items"), "array items")
	one(s["additionalProperties"], path.Child("additionalProperties"), "object fields")
	return errs
}
