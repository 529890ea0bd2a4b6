package validate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	networkingv1 "k8s.io/api/networking/v1"
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

func widgetsText(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/validate/crd.yaml")
	require.NoError(t, err)
	return string(text)
}

func widgets(t testing.TB) *kates.Unstructured {
	t.Helper()
	return parse(t, widgetsText(t))
}

func parse(t testing.TB, text string) *kates.Unstructured {
	t.Helper()
	objects, err := kates.ParseManifestsToUnstructured(text)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	return objects[0].(*kates.Unstructured)
}

func widget(t testing.TB, spec string) *kates.Unstructured {
	t.Helper()
	return parse(t, "{apiVersion: validate.kates.io/v1, kind: Widget, metadata: {name: w}, spec: "+spec+"}")
}

// TestValidateSaysWhatARealServerSays takes the cases from a file. An end-to-end test holds the
// same file against a real server.
func TestValidateSaysWhatARealServerSays(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{widgets(t)})
	require.NoError(t, err)
	var cases []struct {
		Spec   json.RawMessage
		Causes []string
	}
	text, err := os.ReadFile("../../testdata/validate/cases.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &cases))
	for _, c := range cases {
		o := widget(t, string(c.Spec))
		before := o.DeepCopy()
		err := v.Validate(t.Context(), o)
		assert.Equal(t, before, o, "it is not modified")
		var causes []string
		for _, e := range fieldErrors(err) {
			causes = append(causes, string(e.Type)+" "+e.Field)
		}
		assert.ElementsMatch(t, c.Causes, causes, "%s: %v", c.Spec, err)
	}
}

// fieldErrors are the errors that the error of Validate wraps.
func fieldErrors(err error) (found []*field.Error) {
	var all utilerrors.Aggregate
	if errors.As(err, &all) {
		for _, one := range all.Errors() {
			var e *field.Error
			if errors.As(one, &e) {
				found = append(found, e)
			}
		}
	}
	return found
}

func TestADefinitionWithoutAStructuralSchemaIsUsedAsItIs(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{parse(t, old)})
	require.NoError(t, err)
	invalid := parse(t, "{apiVersion: example.org/v1, kind: Old, metadata: {name: o}, spec: {}}")
	err = v.Validate(t.Context(), invalid)
	assert.ErrorContains(t, err, `Old "o" is invalid: spec.size: Required value`)
}

func TestAllErrorsComeInOrder(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{widgets(t)})
	require.NoError(t, err)
	for range 20 {
		err = v.Validate(t.Context(), widget(t, "{size: 0, mode: c, name: A}"))
		var fields []string
		for _, e := range fieldErrors(err) {
			fields = append(fields, e.Field)
		}
		require.Equal(t, []string{"<nil>", "spec.mode", "spec.name", "spec.size"}, fields)
	}
}

func TestObjectsOfAnyFormAreValidated(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{widgets(t)})
	require.NoError(t, err)
	type spec struct {
		Size int `json:"size"`
	}
	for _, o := range []any{
		widget(t, "{size: 0}").Object,
		map[string]any{"apiVersion": "validate.kates.io/v1", "kind": "Widget", "spec": map[string]any{"size": 0}},
		struct {
			kates.TypeMeta
			Spec spec `json:"spec"`
		}{kates.TypeMeta{APIVersion: "validate.kates.io/v1", Kind: "Widget"}, spec{}},
	} {
		assert.ErrorContains(t, v.Validate(t.Context(), o), "spec.size: Invalid value: 0")
	}
	for _, o := range []any{nil, 1, "x", map[string]any{}, struct{}{}} {
		assert.Error(t, v.Validate(t.Context(), o), "%v", o)
	}
}

func TestMetadataIsChecked(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{widgets(t)})
	require.NoError(t, err)
	o := widget(t, "{size: 1}")
	o.SetLabels(map[string]string{"a": "b c"})
	assert.ErrorContains(t, v.Validate(t.Context(), o), "metadata.labels")
	o.SetLabels(nil)
	o.SetName("")
	assert.NoError(t, v.Validate(t.Context(), o), "it may be generated")
}

func TestVersionsThatAreNotServedAreErrors(t *testing.T) {
	f := katestest.NewClient(t, widgets(t))
	live, err := validate.NewValidator(f, nil)
	require.NoError(t, err)
	static, err := validate.NewValidator(nil, []kates.Object{widgets(t)})
	require.NoError(t, err)
	for _, v := range []*validate.Validator{static, live} {
		for _, version := range []string{"v0", "v9"} {
			o := widget(t, "{size: 1}")
			o.SetAPIVersion("validate.kates.io/" + version)
			assert.ErrorContains(t, v.Validate(t.Context(), o), version)
		}
	}
}

func TestDefinitionsComeFromTheClusterAndAreReadAnewWhenTheyChange(t *testing.T) {
	ctx, c := t.Context(), katestest.NewClient(t, widgets(t))
	v, err := validate.NewValidator(c, nil)
	require.NoError(t, err)
	o := widget(t, "{size: 0}")
	assert.ErrorContains(t, v.Validate(ctx, o), "spec.size: Invalid value: 0")
	assert.NoError(t, v.Validate(ctx, &kates.Pod{}), "it is built in")
	assert.NoError(t, v.Validate(ctx, &networkingv1.Ingress{}), "it is built in, and its group has a domain")

	changed := parse(t, strings.Replace(widgetsText(t), "minimum: 1", "minimum: 0", 1))
	require.NoError(t, c.Update(ctx, changed, nil))
	assert.NoError(t, v.Validate(ctx, o), "own writes are seen at once")

	v.Close()
	assert.ErrorIs(t, v.Validate(ctx, o), kates.ErrClosed)
}

func TestOneCallsContextDoesNotFailAnother(t *testing.T) {
	c := katestest.NewClient(t, widgets(t))
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
}

// TestAnObjectWithoutADefinitionIsValid: a definition alone says what is wrong, whatever the group
// is called.
func TestAnObjectWithoutADefinitionIsValid(t *testing.T) {
	v, err := validate.NewValidator(nil, []kates.Object{widgets(t)})
	require.NoError(t, err)
	for _, kind := range []string{
		"v1 Service", "v1 Secret", "apps/v1 Deployment", "networking.k8s.io/v1 Ingress", "gateway.networking.k8s.io/v1 Gateway",
		"validate.kates.io/v1 Other", "other.kates.io/v1 Widget", "widgets/v1 Widget",
	} {
		apiVersion, kind, _ := strings.Cut(kind, " ")
		o := kates.NewUnstructured(kind, apiVersion)
		o.SetName("x")
		assert.NoError(t, v.Validate(t.Context(), o), apiVersion+" "+kind)
	}
	assert.NoError(t, v.Validate(t.Context(), &kates.Pod{}))
	assert.Error(t, v.Validate(t.Context(), widget(t, "{}")), "this kind has one")

	live, err := validate.NewValidator(katestest.NewClient(t), []kates.Object{widgets(t)})
	require.NoError(t, err)
	defer live.Close()
	assert.NoError(t, live.Validate(t.Context(), &kates.Pod{}))
	assert.Error(t, live.Validate(t.Context(), kates.NewUnstructured("Other", "other.kates.io/v1")), "the cluster does not know it")
}

func TestTheTypesOfDefinitionsAreThoseOfKubernetes(t *testing.T) {
	c := katestest.NewClient(t, widgets(t))
	crd := &validate.CustomResourceDefinition{
		TypeMeta:   kates.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: "apiextensions.k8s.io/v1"},
		ObjectMeta: kates.ObjectMeta{Name: "widgets.validate.kates.io"},
	}
	require.NoError(t, c.Get(t.Context(), crd, crd))
	assert.Equal(t, "Widget", crd.Spec.Names.Kind)
	assert.EqualValues(t, "Established", validate.Established)
	assert.EqualValues(t, "NamesAccepted", validate.NamesAccepted)
	assert.EqualValues(t, "True", validate.ConditionTrue)
}
