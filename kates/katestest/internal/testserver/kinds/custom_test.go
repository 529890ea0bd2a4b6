package kinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// defined are the versions of a kind with a schema of v1.
func defined(t *testing.T, properties string) []*Kind {
	t.Helper()
	all, err := Define(parsed(t, `{spec: {group: example.com, scope: Namespaced, names: {plural: gadgets, kind: Gadget},
  versions: [
    {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {`+properties+`}}},
      subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}, selectableFields: [{jsonPath: .spec.color}]},
    {name: v1beta1, served: true, deprecated: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string}}}}}}},
    {name: v1alpha1, deprecated: true, deprecationWarning: old}]}}`))
	require.NoError(t, err)
	return all
}

func TestADefinitionSaysHowItsKindIsServed(t *testing.T) {
	all := defined(t, "")
	v1, beta, alpha := all[0], all[1], all[2]
	assert.Equal(t, "gadget", v1.Singular)
	assert.Equal(t, []string{"status", "scale"}, v1.Subresources)
	assert.Equal(t, []string{"spec.color"}, v1.Rules.Fields)
	assert.True(t, v1.Namespaced)
	assert.True(t, v1.Custom.Served)
	assert.False(t, v1.Rules.KeepsStatus)
	assert.True(t, beta.Rules.KeepsStatus, "it has no status")
	assert.False(t, alpha.Custom.Served)
	assert.Empty(t, v1.Custom.Deprecated)
	assert.Equal(t, "example.com/v1beta1 Gadget is deprecated; use example.com/v1 Gadget", beta.Custom.Deprecated)
	assert.Equal(t, "old", alpha.Custom.Deprecated)
	for _, k := range all {
		assert.Equal(t, v1, k.Custom.Stored)
		assert.Equal(t, "gadgets.example.com", k.Storage)
		assert.Equal(t, all, k.Custom.Versions)
	}
	_, err := Define(map[string]any{"spec": 5})
	require.ErrorContains(t, err, "the definition")
	_, err = Define(parsed(t, "{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: object, required: 5}}}]}}"))
	require.ErrorContains(t, err, "version v1: the schema")
}

func TestWhatASchemaDoesNotHaveIsPruned(t *testing.T) {
	k := defined(t, `spec: {type: object, properties: {list: {type: array, items: {type: object, properties: {a: {type: string}}}},
    map: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}},
    any: {type: object, x-kubernetes-preserve-unknown-fields: true},
    pod: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}}}`)[0]
	c := parsed(t, `{apiVersion: v, kind: k, metadata: {x: 1}, spec: {x: 1, list: [{a: a, b: b}, 5], map: {m: {a: a, b: b}}, any: {x: {y: 1}},
    pod: {apiVersion: v1, kind: Pod, metadata: {}, spec: {}, x: 1}}, x: 1}`)
	assert.Equal(t, []string{"spec.list[0].b", "spec.map.m.b", "spec.pod.x", "spec.x", "x"}, k.Custom.Prune(c))
	assert.Equal(t, parsed(t, `{apiVersion: v, kind: k, metadata: {x: 1}, spec: {list: [{a: a}, 5], map: {m: {a: a}}, any: {x: {y: 1}},
    pod: {apiVersion: v1, kind: Pod, metadata: {}, spec: {}}}}`), c)
	assert.Empty(t, Free(k.GroupVersionKind, "gadgets", true, nil).Custom.Prune(map[string]any{"x": 1}), "without a schema anything is fine")
}

func TestDefaultsOfASchemaAreFilledIn(t *testing.T) {
	k := defined(t, `spec: {type: object, default: {}, required: [must], properties: {must: {type: string}, n: {type: integer, default: 5}, half: {type: number, default: 0.5},
    nullable: {type: string, nullable: true, default: x}, o: {type: object, default: {a: [1, {b: 2}]}},
    list: {type: array, items: {type: object, properties: {d: {type: string, default: y}}}},
    map: {type: object, properties: {known: {type: object}}, additionalProperties: {type: object, properties: {d: {type: string, default: z}}}}}}`)[0]
	for sent, want := range map[string]string{
		"{}": "{spec: {n: 5, half: 0.5, nullable: x, o: {a: [1, {b: 2}]}}}",
		"{spec: {n: null, must: null, nullable: null, list: [{}, {d: own}], map: {known: {}, m: {}}, half: 1, o: {}}}": "{spec: {n: 5, must: null, nullable: null, list: [{d: y}, {d: own}], map: {known: {}, m: {d: z}}, half: 1, o: {}}}",
	} {
		c := parsed(t, sent)
		k.Custom.Default(c)
		assert.Equal(t, parsed(t, want), c, sent)
	}
}

func TestWhatASchemaForbidsIsSaid(t *testing.T) {
	k := defined(t, `spec: {type: object, required: [name], properties: {name: {type: string, maxLength: 3, pattern: "^a"}, color: {type: string, enum: [red, blue]},
    level: {type: integer, enum: [1, 2]}, port: {x-kubernetes-int-or-string: true}, few: {type: array, maxItems: 1, items: {type: integer}}, replicas: {type: integer},
    set: {type: array, x-kubernetes-list-type: set, items: {type: string}},
    map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol],
      items: {type: object, properties: {port: {type: integer}, protocol: {type: string, default: TCP}}}},
    more: {type: object, additionalProperties: {type: array, x-kubernetes-list-type: set, items: {type: string}}},
    ruled: {type: array, items: {type: object, additionalProperties: {type: string, x-kubernetes-validations: [{rule: "true"}]}}}}}`)[0]
	for sent, want := range map[string]string{
		"name: abc, port: 5":                "",
		"name: abc, port: x":                "",
		"name: abc, port: true, color: red": "spec.port: Invalid value",
		"color: red":                        "spec.name: Required value",
		"name: abcd":                        "spec.name: Too long: may not be more than 3 bytes",
		"name: b":                           "spec.name in body should match '^a'",
		"name: 5":                           "spec.name in body must be of type string",
		"name: a, color: green":             `spec.color: Unsupported value: "green": supported values: "red", "blue"`,
		"name: a, level: 3":                 `spec.level: Unsupported value: 3: supported values: "1", "2"`,
		"name: a, few: [1, 2]":              "spec.few: Too many",
		"name: a, replicas: -1":             ".spec.replicas: Invalid value: -1: should be a non-negative integer",
		"name: a, set: [x, z, x]":           `spec.set[2]: Duplicate value: "x"`,
		"name: a, more: {m: [x, x]}":        `spec.more[m][1]: Duplicate value: "x"`,
		"name: a, map: [{port: 1}, {port: 1, protocol: UDP}]":                                    "",
		"name: a, map: [{port: 1}, {port: 1, protocol: TCP}]":                                    `spec.map[1]: Duplicate value: {"port":1,"protocol":"TCP"}`,
		"name: a, set: [x], few: [1]":                                                            "",
		"name: a, color: green, ruled: []":                                                       "some validation rules were not checked because the object was invalid",
		"name: a, ruled: [{x: z}], metadata: {anything: 1}, status: {more: 1}, few: [], map: []": "",
	} {
		errs := k.Custom.Validate(parsed(t, "{metadata: {x: 1}, spec: {"+sent+"}}"), nil)
		if want == "" {
			assert.Empty(t, errs, sent)
			continue
		}
		require.NotEmpty(t, errs, sent)
		assert.ErrorContains(t, errs.ToAggregate(), want, sent)
	}
	assert.Empty(t, Free(k.GroupVersionKind, "gadgets", true, nil).Custom.Validate(map[string]any{"x": 1}, nil))
}

func TestACustomObjectIsShownInTheVersionThatIsAsked(t *testing.T) {
	all := defined(t, "spec: {type: object, properties: {color: {type: string, default: red}, size: {type: integer, default: 3}}}")
	v1, beta := all[0], all[1]
	stored := beta.Stored(parsed(t, "{apiVersion: example.com/v1beta1, spec: {}, x: 1}"))
	assert.Equal(t, parsed(t, "{apiVersion: example.com/v1, spec: {color: red, size: 3}}"), stored)
	assert.Equal(t, parsed(t, "{apiVersion: example.com/v1, spec: {color: red}}"), beta.Shown(stored), "this version has no size")
	assert.Equal(t, stored, v1.Shown(parsed(t, "{apiVersion: example.com/v1, spec: {}}")), "a default that has come since is shown")
	assert.Nil(t, v1.Shown(nil))
	assert.Nil(t, v1.Stored(nil))
	free := Free(v1.GroupVersionKind, "gadgets", true, nil)
	c := parsed(t, "{x: 1}")
	assert.Equal(t, c, free.Shown(free.Stored(c)))
}

func TestASetHasThePreferredVersionFirst(t *testing.T) {
	all := defined(t, "")
	again := Free(all[0].GroupVersionKind, "gadgets", false, nil)
	set := NewSet(all[2], all[0], all[1], again)
	assert.Equal(t, []*Kind{again, all[1], all[2]}, set.All(), "of two kinds of one resource the last counts")
	assert.Equal(t, set.All(), set.Stored("gadgets.example.com"))
	assert.Equal(t, all[1], set.Find(schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "gadgets"}))
	assert.Equal(t, all[2], set.OfKind(all[2].GroupVersionKind))
	assert.Nil(t, set.OfKind(schema.GroupVersionKind{Kind: "Other"}))
	assert.Equal(t, schema.GroupResource{Group: "example.com", Resource: "gadgets"}, again.GR())
}

func TestBuiltInKindsAreServedByTheirStableVersions(t *testing.T) {
	all := BuiltIn(scheme.Scheme, slices.Concat(OfScheme(scheme.Scheme), Unschemed()))
	names := map[string]*Kind{}
	for _, k := range all {
		assert.False(t, strings.Contains(k.Version, "alpha") || strings.Contains(k.Version, "beta"), k)
		names[k.GroupVersion().String()+" "+k.Kind] = k
	}
	assert.NotContains(t, names, "v1 Binding", "a request that stores nothing")
	assert.Equal(t, "events", names["events.k8s.io/v1 Event"].Storage, "both kinds of events are one")
	assert.Equal(t, "deployments.apps", names["apps/v1 Deployment"].Storage)
	assert.True(t, names["apps/v1 Deployment"].Has("status"))
	assert.True(t, names["apps/v1 Deployment"].Has("scale"))
	assert.False(t, names["v1 ConfigMap"].Has("status"))
	assert.True(t, names["v1 ConfigMap"].Strict())
	assert.False(t, names["apiextensions.k8s.io/v1 CustomResourceDefinition"].Strict())
	assert.True(t, names["apiregistration.k8s.io/v1 APIService"].Has("status"), "its Go type is not known")
	assert.True(t, names["v1 Namespace"].IsNamespace())
	role := names["rbac.authorization.k8s.io/v1 ClusterRole"].Rules
	assert.Empty(t, role.Name("system:a", false))
	assert.NotEmpty(t, role.Name("a/b", true))
}
