package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

const gadgets = `{metadata: {name: gadgets.example.com}, spec: {group: example.com, scope: Namespaced,
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList, shortNames: [gd]},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}]}}`

func TestADefinitionIsEstablishedAndWaitsForTheEndOfItsObjects(t *testing.T) {
	k := kind(t, definitionKind)
	c := created(t, k, gadgets)
	has(t, c, "status.storedVersions=[v1]", "status.acceptedNames={kind: '', plural: ''}")
	Establish(c, now)
	has(t, c, "status.acceptedNames.kind=Gadget")
	established := func(c Content) map[string]string {
		all := map[string]string{}
		for _, one := range c["status"].(map[string]any)["conditions"].([]any) {
			one := one.(map[string]any)
			all[one["type"].(string)] = one["reason"].(string) + " " + one["lastTransitionTime"].(string)
		}
		return all
	}
	want := map[string]string{"NamesAccepted": "NoConflicts 2026-01-02T03:04:05Z", "Established": "InitialNamesAccepted 2026-01-02T03:04:05Z"}
	assert.Equal(t, want, established(c))
	Establish(c, now.Add(1e9))
	assert.Equal(t, want, established(c), "nothing has changed")

	d, err := Delete(k, c, deleteOptions(""), now)
	require.NoError(t, err)
	assert.False(t, d.Gone)
	has(t, d.Next, "metadata.finalizers=["+Cleanup+"]", "metadata.deletionTimestamp='2026-01-02T03:04:05Z'")
	assert.Contains(t, established(d.Next)["Terminating"], "InstanceDeletionPending")
	Establish(d.Next, now)
	assert.Contains(t, established(d.Next)["Terminating"], "InstanceDeletionInProgress")
	object(d.Next).SetFinalizers(nil)
	assert.True(t, Ended(k, d.Next))
}

func TestTheVersionsInWhichObjectsWereStoredAreKept(t *testing.T) {
	k := kind(t, definitionKind)
	old := created(t, k, gadgets)
	next := runtime.DeepCopyJSON(old)
	more := content(t, k, strings.NewReplacer("name: v1,", "name: v2,").Replace(gadgets))
	versions := old["spec"].(map[string]any)["versions"].([]any)
	first := runtime.DeepCopyJSONValue(versions[0]).(map[string]any)
	first["storage"] = false
	next["spec"].(map[string]any)["versions"] = []any{first, more["spec"].(map[string]any)["versions"].([]any)[0]}
	require.NoError(t, Update(k, "", old, next))
	has(t, next, "status.storedVersions=[v1,v2]", "metadata.generation=2")

	without := runtime.DeepCopyJSON(next)
	without["spec"].(map[string]any)["versions"] = []any{more["spec"].(map[string]any)["versions"].([]any)[0]}
	says(t, Update(k, "", next, without), `status.storedVersions[0]: Invalid value: "v1": missing from spec.versions: objects may still be stored in it`)
}

func TestWhatIsWrongWithADefinitionIsSaid(t *testing.T) {
	k := kind(t, definitionKind)
	for _, c := range [][3]string{
		{"name: gadgets.example.com", "name: things.example.com", `metadata.name: Invalid value: "things.example.com": must be spec.names.plural+"."+spec.group`},
		{"group: example.com", "group: ''", "spec.group: Required value"},
		{"group: example.com", "group: Ex", "spec.group: Invalid value"},
		{"scope: Namespaced", "scope: ''", "spec.scope: Required value"},
		{"scope: Namespaced", "scope: Galaxy", `spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"`},
		{"kind: Gadget,", "kind: '',", "spec.names.kind: Required value"},
		{"kind: Gadget,", "kind: Gad.get,", "may have mixed case, but should otherwise match"},
		{"singular: gadget", "singular: Gadget", "spec.names.singular: Invalid value"},
		{"singular: gadget", "singular: g.t", "spec.names.singular: Invalid value"},
		{"[gd]", "[G.D]", "spec.names.shortNames[0]: Invalid value"},
		{"name: v1", "name: V1", "spec.versions[0].name: Invalid value"},
		{"storage: true", "storage: false", "must have exactly one version marked as storage version"},
		{"versions: [", "versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}, ", "must contain unique version names"},
		{"schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}", "served: true", "schemas are required"},
		{"{type: object, properties", "{type: string, properties", "must be object at the root"},
		{"spec: {type: object}", "spec: {}", `spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields`},
		{"spec: {type: object}", "spec: {type: array, items: {}}", "properties[spec].items.type: Required value: must not be empty for specified array items"},
		{"spec: {type: object}", "spec: {type: object, additionalProperties: {}}", "properties[spec].additionalProperties.type: Required value"},
		{"spec: {type: object}", "spec: {x-kubernetes-preserve-unknown-fields: true}", ""},
		{"spec: {type: object}", "spec: {x-kubernetes-int-or-string: true}", ""},
		{"spec: {type: object}", "spec: {type: object, required: 5}", "the schema"},
	} {
		require.Contains(t, gadgets, c[0])
		sent := content(t, k, strings.Replace(gadgets, c[0], c[1], 1))
		says(t, Create(k, sent, "uid-1", now), c[2])
	}
	other := content(t, k, strings.Replace(gadgets, "group: example.com", "group: other.com", 1))
	says(t, Update(k, "", created(t, k, gadgets), other), `spec.group: Invalid value: "other.com": field is immutable`)
}
