package validate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/validate"
)

// What programs know from Emissary's kates.
var (
	_ func(*kates.Client, []kates.Object) (*validate.Validator, error) = validate.NewValidator
	_ func(*validate.Validator, context.Context, any) error            = (*validate.Validator).Validate
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size, mode]
            x-kubernetes-validations:
            - rule: self.least <= self.size
              message: least must not be more than size
            properties:
              size: {type: integer, minimum: 1}
              least: {type: integer, default: 0}
              mode: {type: string, enum: [a, b], default: a}
              name: {type: string, pattern: "^[a-z]+$"}
              port: {x-kubernetes-int-or-string: true}
              when: {type: string, format: date-time}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id]
                items: {type: object, required: [id], properties: {id: {type: string}}}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              nothing: {type: string}
  - name: v0
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

// old is a definition as they were before structural schemas.
const old = `
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: olds.example.org}
spec:
  group: example.org
  version: v1
  preserveUnknownFields: true
  names: {kind: Old, plural: olds}
  validation:
    openAPIV3Schema:
      properties:
        spec: {required: [size], properties: {size: {type: integer}}}
`

func parse(t testing.TB, text string) *kates.Unstructured {
	t.Helper()
	objects, err := kates.ParseManifestsToUnstructured(text)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	return objects[0].(*kates.Unstructured)
}

func widget(t testing.TB, spec string) *kates.Unstructured {
	t.Helper()
	return parse(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: "+spec+"}")
}

func TestValidateFindsWhatTheServerWouldRefuse(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{parse(t, widgets), parse(t, old)})
	require.NoError(t, err)
	for spec, want := range map[string]string{
		"{size: 1}":                           "", // mode has a default
		"{size: 1, other: x}":                 "", // the server removes it
		"{size: 1, nothing: null}":            "", // as if it were not there
		"{size: 1, port: 80}":                 "",
		"{size: 1, port: http}":               "",
		"{}":                                  "spec.size: Required value",
		"{size: 0}":                           "spec.size: Invalid value: 0",
		"{size: x}":                           "spec.size: Invalid value",
		"{size: 1.5}":                         "spec.size: Invalid value",
		"{size: 1, mode: c}":                  `spec.mode: Unsupported value: "c"`,
		"{size: 1, name: A}":                  "spec.name: Invalid value",
		"{size: 1, port: 1.5}":                "spec.port: Invalid value",
		"{size: 1, when: yesterday}":          "spec.when: Invalid value",
		"{size: 1, set: [a, a]}":              "spec.set[1]: Duplicate value",
		"{size: 1, parts: [{id: a}, {}]}":     "spec.parts[1].id: Required value",
		"{size: 1, template: {a: b}}":         "spec.template.apiVersion: Required value",
		"{size: 1, least: 2}":                 "least must not be more than size",
		"{size: 1, parts: [{id: a},{id: a}]}": "spec.parts[1]: Duplicate value",
	} {
		o := widget(t, spec)
		before := o.DeepCopy()
		err := v.Validate(t.Context(), o)
		assert.Equal(t, before, o, "it is not modified")
		if want == "" {
			assert.NoError(t, err, spec)
			continue
		}
		assert.ErrorContains(t, err, `Widget "w" is invalid: `, spec)
		assert.ErrorContains(t, err, want, spec)
	}
	invalid := parse(t, "{apiVersion: example.org/v1, kind: Old, metadata: {name: o}, spec: {}}")
	assert.ErrorContains(t, v.Validate(t.Context(), invalid), "spec.size: Required value")
}

func TestAllErrorsComeInOrder(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{parse(t, widgets)})
	require.NoError(t, err)
	for range 20 {
		err = v.Validate(t.Context(), widget(t, "{size: 0, mode: c, name: A}"))
		var all utilerrors.Aggregate
		require.True(t, errors.As(err, &all))
		var fields []string
		for _, one := range all.Errors() {
			var e *field.Error
			require.True(t, errors.As(one, &e))
			fields = append(fields, e.Field)
		}
		require.Equal(t, []string{"spec.mode", "spec.name", "spec.size"}, fields)
	}
}

func TestObjectsOfAnyFormAreValidated(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{parse(t, widgets)})
	require.NoError(t, err)
	type spec struct {
		Size int `json:"size"`
	}
	for _, o := range []any{
		widget(t, "{size: 0}").Object,
		map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"size": 0}},
		struct {
			kates.TypeMeta
			Spec spec `json:"spec"`
		}{kates.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}, spec{}},
	} {
		assert.ErrorContains(t, v.Validate(t.Context(), o), "spec.size: Invalid value: 0")
	}
	for _, o := range []any{nil, 1, "x", map[string]any{}, struct{}{}} {
		assert.Error(t, v.Validate(t.Context(), o), "%v", o)
	}
}

func TestMetadataIsChecked(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{parse(t, widgets)})
	require.NoError(t, err)
	o := widget(t, "{size: 1}")
	o.SetLabels(map[string]string{"a": "b c"})
	assert.ErrorContains(t, v.Validate(t.Context(), o), "metadata.labels")
	o.SetLabels(nil)
	o.SetName("")
	assert.NoError(t, v.Validate(t.Context(), o), "it may be generated")
}

func TestVersionsThatAreNotServedAreErrors(t *testing.T) {
	f := katestest.NewClient(t, parse(t, widgets))
	live, err := validate.NewValidator(f, nil)
	require.NoError(t, err)
	static, err := validate.NewValidator(nil, []kates.Object{parse(t, widgets)})
	require.NoError(t, err)
	for _, v := range []*validate.Validator{static, live} {
		for _, version := range []string{"v0", "v9"} {
			o := widget(t, "{size: 1}")
			o.SetAPIVersion("example.com/" + version)
			assert.ErrorContains(t, v.Validate(t.Context(), o), version)
		}
	}
}

func TestDefinitionsComeFromTheClusterAndAreReadAnewWhenTheyChange(t *testing.T) {
	ctx, c := t.Context(), katestest.NewClient(t, parse(t, widgets))
	v, err := validate.NewValidator(c, nil)
	require.NoError(t, err)
	o := widget(t, "{size: 0}")
	assert.ErrorContains(t, v.Validate(ctx, o), "spec.size: Invalid value: 0")
	assert.NoError(t, v.Validate(ctx, &kates.Pod{}), "it is built in")
	assert.NoError(t, v.Validate(ctx, &kates.Ingress{}), "it is built in, and its group has a domain")

	changed := parse(t, strings.Replace(widgets, "minimum: 1", "minimum: 0", 1))
	require.NoError(t, c.Update(ctx, changed, nil))
	assert.NoError(t, v.Validate(ctx, o), "own writes are seen at once")

	v.Close()
	assert.ErrorIs(t, v.Validate(ctx, o), kates.ErrClosed)
}

func TestOneCallsContextDoesNotFailAnother(t *testing.T) {
	c := katestest.NewClient(t, parse(t, widgets))
	v, err := validate.NewValidator(c, nil)
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan error)
	for range 8 {
		go func() { done <- v.Validate(t.Context(), widget(t, "{size: 1}")) }()
		go func() { done <- v.Validate(over, widget(t, "{size: 1}")) }()
	}
	for range 16 {
		if err := <-done; err != nil {
			assert.ErrorIs(t, err, context.Canceled)
		}
	}
	assert.NoError(t, v.Validate(t.Context(), widget(t, "{size: 1}")))
	v.Close()
}

func TestAValidatorNeedsDefinitions(t *testing.T) {
	_, err := validate.NewValidator(nil, nil)
	assert.Error(t, err)
	_, err = validate.NewValidator(nil, []kates.Object{nil})
	assert.Error(t, err)
	_, err = validate.NewValidator(nil, []kates.Object{&kates.Pod{}})
	assert.ErrorContains(t, err, "static definition 0")
	v, err := validate.NewValidator(nil, []kates.Object{parse(t, widgets)})
	require.NoError(t, err)
	assert.ErrorContains(t, v.Validate(t.Context(), &kates.Pod{}), "there is no definition")
}

func TestTheTypesOfDefinitionsAreThoseOfKubernetes(t *testing.T) {
	c := katestest.NewClient(t, parse(t, widgets))
	crd := &validate.CustomResourceDefinition{
		TypeMeta:   kates.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: "apiextensions.k8s.io/v1"},
		ObjectMeta: kates.ObjectMeta{Name: "widgets.example.com"},
	}
	require.NoError(t, c.Get(t.Context(), crd, crd))
	assert.Equal(t, "Widget", crd.Spec.Names.Kind)
	assert.EqualValues(t, "Established", validate.Established)
	assert.EqualValues(t, "NamesAccepted", validate.NamesAccepted)
	assert.EqualValues(t, "True", validate.ConditionTrue)
}
