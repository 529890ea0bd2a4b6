package secret

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func mask(any, bool) any { return "*" }

func TestValuesAndCopiesOfThemAreHiddenAndTheObjectStaysAsItIs(t *testing.T) {
	object := func() map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"k": "eA==", "n": []any{"a", nil}}, "stringData": "x",
			"metadata": map[string]any{"name": "s", "annotations": map[string]any{"copy": "x", "kubernetes.io/service-account.name": "sa"}},
			"parsed":   []any{"x"},
		}
	}
	of := object()
	hidden := Hide(of, mask)
	assert.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"k": "*", "n": []any{"*", nil}}, "stringData": "*",
		"metadata": map[string]any{"name": "s", "annotations": map[string]any{"copy": "*", "kubernetes.io/service-account.name": "sa"}},
		"parsed":   []any{"x"},
	}, hidden)
	assert.Equal(t, []any{"*"}, HideOwn(of, mask)["parsed"])
	assert.Equal(t, object(), of)
}

func TestWhatIsASecret(t *testing.T) {
	for _, of := range []map[string]any{{"kind": "Secret"}, {"kind": "Secret", "apiVersion": "v1"}} {
		assert.True(t, Is(of))
	}
	for _, of := range []map[string]any{nil, {"kind": "Secret", "apiVersion": "example.com/v1"}, {"kind": "ConfigMap", "apiVersion": "v1"}} {
		assert.False(t, Is(of))
	}
	assert.True(t, Resource("", "secrets"))
	assert.False(t, Resource("example.com", "secrets"))
}
