package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// scheme knows the versions of CustomResourceDefinition.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
}()

// internal converts a definition of any version, and fills in its defaults.
func internal(u *unstructured.Unstructured) (*apiextensions.CustomResourceDefinition, error) {
	kind := u.GroupVersionKind()
	if kind.GroupKind() != apiextensions.Kind("CustomResourceDefinition") {
		return nil, fmt.Errorf("a %s is no CustomResourceDefinition", kind)
	}
	versioned, err := scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, versioned); err != nil {
		return nil, err
	}
	scheme.Default(versioned)
	crd := &apiextensions.CustomResourceDefinition{}
	return crd, scheme.Convert(versioned, crd, nil)
}

// versionSchema is the compiled schema of one version of a custom kind.
type versionSchema struct {
	structural *structural.Structural // nil: the schema is not structural, as old ones are
	openAPI    validation.SchemaValidator
	rules      *cel.Validator // nil: it has none
}

// compile compiles the schema of a version. It is nil if the version has none.
func compile(
	crd *apiextensions.CustomResourceDefinition, version string,
) (*versionSchema, error) {
	served := func(v apiextensions.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Served
	}
	if !slices.ContainsFunc(crd.Spec.Versions, served) {
		return nil, fmt.Errorf("%s is not served in version %s", crd.Name, version)
	}
	definition, err := apiextensions.GetSchemaForVersion(crd, version)
	if err != nil || definition == nil || definition.OpenAPIV3Schema == nil {
		return nil, err
	}
	s := &versionSchema{}
	if s.openAPI, _, err = validation.NewSchemaValidator(definition.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("the schema of %s, version %s: %w", crd.Name, version, err)
	}
	s.structural, err = structural.NewStructural(definition.OpenAPIV3Schema)
	if err != nil {
		s.structural = nil
		return s, nil
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// validate validates an object, which it modifies: it fills in the defaults.
func (s *versionSchema) validate(ctx context.Context, o map[string]any) field.ErrorList {
	if s == nil {
		return nil
	}
	if s.structural == nil {
		return inOrder(validation.ValidateCustomResource(nil, o, s.openAPI))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(o, s.structural)
	if err := objectmeta.Coerce(nil, o, s.structural, true, false); err != nil {
		return field.ErrorList{err}
	}
	defaulting.Default(o, s.structural)
	errs := validation.ValidateCustomResource(nil, o, s.openAPI)
	errs = append(errs, objectmeta.Validate(ctx, nil, o, s.structural, true)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, o)...)
	return inOrder(append(errs, s.checkRules(ctx, o, errs)...))
}

// checkRules evaluates the rules of an object, unless the errors that were found before are of a
// sort that rules count on not to be there.
func (s *versionSchema) checkRules(
	ctx context.Context, o map[string]any, before field.ErrorList,
) field.ErrorList {
	if s.rules == nil {
		return nil
	}
	if slices.ContainsFunc(before, func(e *field.Error) bool {
		return slices.Contains(blocking, e.Type)
	}) {
		const says = "the rules were not checked, because of the other errors"
		return field.ErrorList{field.Invalid(nil, nil, says)}
	}
	errs, _ := s.rules.Validate(ctx, nil, s.structural, o, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

// blocking are the errors after which a server does not evaluate rules.
var blocking = []field.ErrorType{
	field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
	field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
}

// inOrder sorts errors: those of an object's fields come in the random order of a map.
func inOrder(errs field.ErrorList) field.ErrorList {
	byText := func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) }
	slices.SortStableFunc(errs, byText)
	return errs
}

// kindOf is what a version of a custom kind is called by its objects.
func kindOf(crd *apiextensions.CustomResourceDefinition, version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}
}
