package kinds

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Custom is what a definition says of one version of a custom kind.
type Custom struct {
	// Schema is the structural schema, nil if there is none: then any content is fine.
	Schema *spec.Schema
	// PreserveUnknown: the definition says so for all of the object, in the old way.
	PreserveUnknown bool
	// StoredVersion is the version in which objects are stored, and Stored its kind, nil if there is
	// one version alone.
	StoredVersion string
	Stored        *Kind
	// Versions are all versions of the kind, also those that are not served.
	Versions []*Kind
	// Served says that the version is served.
	Served bool
	// Deprecated is the warning of a deprecated version.
	Deprecated string
	// Scale has the paths of the scale subresource, nil if there is none.
	Scale *ScalePaths
	// Columns are those of a table, beside the name.
	Columns []Column

	checked *spec.Schema // as objects are checked by it
}

// ScalePaths are the paths of a scale subresource in the object.
type ScalePaths struct {
	Spec     string `json:"specReplicasPath"`
	Status   string `json:"statusReplicasPath"`
	Selector string `json:"labelSelectorPath"`
}

// Column is a column of a table.
type Column struct {
	Name, Type, Format, Description, JSONPath string
	Priority                                  int32
}

// definition is a CustomResourceDefinition, as far as it is read here.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			Kind       string   `json:"kind"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		PreserveUnknownFields bool          `json:"preserveUnknownFields"`
		Versions              []versionSpec `json:"versions"`
	} `json:"spec"`
}

type versionSpec struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPI json.RawMessage `json:"openAPIV3Schema"`
	} `json:"schema"`
	Subresources struct {
		Status *struct{}   `json:"status"`
		Scale  *ScalePaths `json:"scale"`
	} `json:"subresources"`
	SelectableFields []struct {
		JSONPath string `json:"jsonPath"`
	} `json:"selectableFields"`
	Columns    []Column `json:"additionalPrinterColumns"`
	Deprecated bool     `json:"deprecated"`
	Warning    string   `json:"deprecationWarning"`
}

// Define returns the kinds of a CustomResourceDefinition: one for each version, also for those
// that are not served.
func Define(content map[string]any) ([]*Kind, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("the definition: %w", err)
	}
	var all []*Kind
	var stored *Kind
	for _, v := range d.Spec.Versions {
		k, err := d.kind(v)
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", v.Name, err)
		}
		if all = append(all, k); v.Storage {
			stored = k
		}
	}
	for _, k := range all {
		k.Custom.Stored, k.Custom.Versions = stored, all
		if stored != nil {
			k.Custom.StoredVersion = stored.Version
		}
	}
	d.warn(all)
	return all, nil
}

func (d *definition) kind(v versionSpec) (*Kind, error) {
	names := d.Spec.Names
	if names.Singular == "" {
		names.Singular = strings.ToLower(names.Kind)
	}
	k := &Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: names.Kind},
		Resource:         names.Plural, Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced: d.Spec.Scope != "Cluster", Storage: names.Plural + "." + d.Spec.Group,
		Rules:  Rules{Generation: true, KeepsStatus: v.Subresources.Status == nil, Versioned: true, Name: validation.NameIsDNSSubdomain},
		Custom: &Custom{PreserveUnknown: d.Spec.PreserveUnknownFields, Served: v.Served, Scale: v.Subresources.Scale, Columns: v.Columns},
	}
	for _, f := range v.SelectableFields {
		k.Rules.Fields = append(k.Rules.Fields, strings.TrimPrefix(f.JSONPath, "."))
	}
	if v.Subresources.Status != nil {
		k.Subresources = append(k.Subresources, "status")
	}
	if v.Subresources.Scale != nil {
		k.Subresources = append(k.Subresources, "scale")
	}
	if len(v.Schema.OpenAPI) > 0 {
		k.Custom.Schema = &spec.Schema{}
		if err := json.Unmarshal(v.Schema.OpenAPI, k.Custom.Schema); err != nil {
			return nil, fmt.Errorf("the schema: %w", err)
		}
		k.Custom.checked = checked(k.Custom.Schema)
	}
	return k, nil
}

// Free returns a custom kind without a schema: it takes any content, and has a status.
func Free(gvk schema.GroupVersionKind, plural string, namespaced bool, shortNames []string) *Kind {
	return &Kind{
		GroupVersionKind: gvk, Resource: plural, Singular: strings.ToLower(gvk.Kind), ShortNames: shortNames, Namespaced: namespaced,
		Storage: plural + "." + gvk.Group, Subresources: []string{"status"},
		Rules:  Rules{Generation: true, Versioned: true, Name: validation.NameIsDNSSubdomain},
		Custom: &Custom{StoredVersion: gvk.Version},
	}
}
