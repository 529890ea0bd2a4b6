package kinds

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var groupOne = schema.GroupVersion{Group: "g", Version: "v1"}

// isKind is what makes a schema that of kind K.
const isKind = `"x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"K"}]`

// schemas returns a document.
func schemas(all ...string) []byte {
	return []byte(`{"openapi":"3.0.0","components":{"schemas":{` + strings.Join(all, ",") + `}}}`)
}

// nested returns so many schemas, one in another.
func nested(in string, levels int, last string) string {
	open, end, _ := strings.Cut(in, "%")
	return strings.Repeat(open, levels) + last + strings.Repeat(end, levels)
}

// TestADocumentOfManyLevelsIsReadInOnePass: each level was read again for each one around it. A
// megabyte with 2,000 of them took a minute.
func TestADocumentOfManyLevelsIsReadInOnePass(t *testing.T) {
	pad := `{"description":"` + strings.Repeat("a", 1<<20) + `"}`
	for what, in := range map[string]string{
		"other properties": `{"additionalProperties":%}`, "items": `{"items":%}`, "properties": `{"properties":{"a":%}}`, "all of": `{"allOf":[%]}`,
	} {
		good := `"good":{` + isKind + `,"properties":{"a":{"x-kubernetes-map-type":"atomic"}}}`
		for _, levels := range []int{100, 2000, 4000} {
			found, err := ReadSchemas(groupOne, schemas(`"deep":`+nested(in, levels, pad), good))
			assert.Equal(t, levels > 100, err != nil, "%s %d: %v", what, levels, err)
			if err != nil {
				assert.ErrorContains(t, err, "the schema deep: it has more than 256 levels")
			}
			a := "a"
			assert.True(t, found.Whole("K", fieldpath.Path{{FieldName: &a}}, map[string]any{}), "another schema is read")
		}
	}
}

func TestADocumentWithoutEndInDepthOrNumberHasNoSchemas(t *testing.T) {
	many := func(one string) string { return strings.TrimSuffix(strings.Repeat(one+",", partsMost), ",") }
	for what, document := range map[string][]byte{
		"levels elsewhere":    []byte(`{"x":` + nested(`[%]`, depthMost+10, "")),
		"levels in a schema":  schemas(`"a":` + nested(`{"x":%}`, depthMost+10, "1")),
		"levels that are cut": []byte(strings.Repeat("[", 5*depthMost)),
		"shapes":              schemas(`"a":{"allOf":[` + many("{}") + `]}`),
		"kinds":               schemas(`"a":{"x-kubernetes-group-version-kind":[` + many("{}") + `]}`),
		"selectable fields":   schemas(`"a":{"x-kubernetes-selectable-fields":[` + many("{}") + `]}`),
	} {
		found, err := ReadSchemas(groupOne, document)
		assert.ErrorContains(t, err, "the OpenAPI document of the server has more than", what)
		assert.Empty(t, found, what)
	}
}

func TestWhatASchemaSaysIsRead(t *testing.T) {
	found, err := ReadSchemas(groupOne, schemas(
		`"K":{`+isKind+`,"x-kubernetes-selectable-fields":[{"fieldPath":"spec.a"},{"fieldPath":""},null],"properties":{
			"ref":{"allOf":[{"$ref":"#/components/schemas/part"}],"description":"d","default":{}},
			"any":{"additionalProperties":true,"maximum":1e999},"none":{"additionalProperties":false},"null":null,
			"map":{"additionalProperties":{"x-kubernetes-map-type":"atomic"}},
			"list":{"items":{"properties":{"x":{"x-kubernetes-list-type":"set"}}},"x-kubernetes-list-type":"map"},
			"free":{"x-kubernetes-preserve-unknown-fields":true,"enum":[1,{"a":[2]}]}}}`,
		`"part":{"x-kubernetes-map-type":"atomic"}`, `"nothing":null`,
		`"other":{"x-kubernetes-group-version-kind":[{"group":"h","version":"v1","kind":"O"}]}`,
	))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"K": "K"}, found.kinds)
	assert.Equal(t, []string{"spec.a"}, found.selectable["K"].Names())
	assert.Len(t, found.named, 4)
	k := found.named["K"].Properties
	assert.Equal(t, "#/components/schemas/part", k["ref"].AllOf[0].Ref)
	assert.Equal(t, "atomic", k["map"].Others.Map)
	assert.Equal(t, "set", k["list"].Items.Properties["x"].List)
	assert.Equal(t, "map", k["list"].List)
	assert.True(t, k["free"].Unknown)
	assert.Nil(t, k["null"])
	assert.Equal(t, &shape{}, k["any"])
	assert.Equal(t, &shape{}, found.named["nothing"])
}

func TestASchemaThatIsWrongIsNamedAndHarmsNoOther(t *testing.T) {
	for _, wrong := range []string{
		`true`, `[]`, `"x"`, `{"properties":[{"a":1}]}`, `{"items":[{}]}`, `{"allOf":{"a":{}}}`, `{"$ref":{"a":[]}}`,
		`{"x-kubernetes-list-type":7}`, `{"x-kubernetes-preserve-unknown-fields":"yes"}`, `{"properties":{"a":{"items":3}}}`,
	} {
		open := strings.TrimSuffix(wrong, "}")
		if open != wrong {
			wrong = open + `,` + isKind + `,"x-kubernetes-selectable-fields":[{"fieldPath":"a"}]}`
		}
		found, err := ReadSchemas(groupOne, schemas(`"bad":`+wrong, `"good":{}`))
		assert.ErrorContains(t, err, "the schema bad: ", wrong)
		assert.NotNil(t, found.named["good"], wrong)
		assert.Nil(t, found.named["bad"], wrong)
		assert.Equal(t, open != wrong, found.kinds["K"] == "bad", "what else it declares is known: %s", wrong)
	}
	for _, document := range []string{``, `[]`, `{`, `{"components":{"schemas":[]}}`, `{"components":7}`, `{}x`, `{}{}`, `{"components":{"schemas":{"a":{}}`} {
		_, err := ReadSchemas(groupOne, []byte(document))
		assert.Error(t, err, document)
	}
	for _, document := range []string{`{}`, `null`, `{"components":null}`, `{"components":{"schemas":null}} `} {
		found, err := ReadSchemas(groupOne, []byte(document))
		assert.NoError(t, err, document)
		assert.Empty(t, found.named)
	}
}

// FuzzADocumentIsReadToTheSameWhateverIsAroundIt: a schema means the same alone, and behind others.
func FuzzADocumentIsReadToTheSameWhateverIsAroundIt(f *testing.F) {
	for _, one := range []string{`{}`, `null`, `{"additionalProperties":{"items":null}}`, `{"properties":{"a":{"allOf":[null,{}]}}}`, nested(`{"additionalProperties":%}`, 300, `1`), `{"$ref":[{}]}`} {
		f.Add(one)
	}
	f.Fuzz(func(t *testing.T, one string) {
		if !json.Valid([]byte(one)) {
			return // it might end the document
		}
		alone, err := ReadSchemas(groupOne, schemas(`"a":`+one))
		both, errs := ReadSchemas(groupOne, schemas(`"0":{"properties":7}`, `"a":`+one, `"z":{}`))
		if err == nil && (errs == nil || both.named["z"] == nil) {
			t.Fatalf("%s: alone %v, and with others %v", one, err, errs)
		}
		if len(alone.named) > 0 && alone.named["a"] != nil && len(both.named) > 0 && both.named["a"] == nil {
			t.Fatalf("%s: it is missing beside others: %v", one, errs)
		}
	})
}
