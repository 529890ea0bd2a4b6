package kates

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestParseManifestsPassesOverNoDocument: YAML and JSON readers take the first object of a text
// and ignore the rest without an error.
func TestParseManifestsPassesOverNoDocument(t *testing.T) {
	const a, b = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
	const flow = "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"
	const json = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`
	for _, text := range []string{
		a + "---\n" + b, a + "--- \n" + b, a + "---\t# comment\n" + b, a + "---\r\n" + b, a + "...\n" + b, a + "...\r\n" + b,
		a + "...\n---\n" + b, a + "... # over\n# between\n---\n" + b, "%YAML 1.1\n---\n" + a + "...\n%YAML 1.1\n# comment\n---\n" + b,
		a + "--- " + flow, a + "---\t" + json + "\n", a + "---\n# comment\n" + flow + "\n# comment", a + "--- !!map\n" + b,
		"\ufeff" + a + "\ufeff---\n" + b, "\ufeff---\n" + a + "---\n\ufeff" + b, a + "---\n\ufeff" + json,
		"apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: a}\r\n---\r\n" + b,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}` + json,
	} {
		objects, err := ParseManifests(text)
		if assert.NoError(t, err, "%q", text) && assert.Len(t, objects, 2, "%q", text) {
			assert.Equal(t, "a", objects[0].GetName())
			assert.Equal(t, "b", objects[1].GetName())
		}
	}
	for _, text := range []string{
		flow + " " + flow, flow + "," + flow, flow + "}", json + `{"kind":`, json + "\n" + flow, json + "}", json + " x", json + "[]",
		"# comment\n" + flow + " " + flow, a + "---x\n" + b, a + "----\n" + b,
	} {
		_, err := ParseManifests(text)
		assert.ErrorContains(t, err, "manifest document ", "%q", text)
	}
	const literal = "data:\n  text: |\n    ---\n    ...\n    # no comment\n"
	objects, err := ParseManifests(a + literal)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	assert.Equal(t, "---\n...\n# no comment\n", objects[0].(*ConfigMap).Data["text"])
	objects, err = ParseManifestsToUnstructured("apiVersion: v1\nkind: X\nspec: {i: 9007199254740993, f: 1.5}\n")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"i": int64(9007199254740993), "f": 1.5}, objects[0].(*Unstructured).Object["spec"])
}

// TestErrorsOfParseManifestsQuoteNothing: the faulty text in the manifest of a Secret is often its
// content.
func TestErrorsOfParseManifestsQuoteNothing(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	for _, rest := range []string{
		"stringData:\n  ~: hunter2\n", "stringData:\n  null: {a: hunter2}\n", "stringData:\n  a: *hunter2\n", "stringData:\n  a: !!int hunter2\n",
		"stringData:\n  a: !!float hunter2\n", "stringData:\n  a: !!binary hunter-2\n", "stringData:\n  ? [hunter2]\n  : hunter2\n",
		"stringData:\n  ? {a: hunter2}\n  : hunter2\n", "stringData:\n  <<: hunter2\n", "stringData:\n  a: \"hunter2\n", "stringData:\n  a: hunter2: x\n",
		"stringData:\n  a: %hunter2\n", "stringData:\n  a: `hunter2`\n", "stringData: hunter2\n", "data:\n  a: hunter-2\n", "immutable: hunter2\n",
		"--- {kind: Secret, stringData: {a: hunter2}\n", "--- {kind: hunter2} hunter2\n", "metadata: {creationTimestamp: hunter2}\n",
		"metadata: {generation: 27182818284590452353602874}\n", "metadata: hunter2\n", "metadata: {labels: hunter2}\n", "metadata: {namespace: 27182}\n",
	} {
		_, err := ParseManifests(secret + rest)
		if assert.ErrorContains(t, err, "manifest document ", "%q", rest) {
			assert.NotContains(t, err.Error(), "hunter", "%q", rest)
			assert.NotContains(t, err.Error(), "27182", "%q", rest)
		}
	}
}
