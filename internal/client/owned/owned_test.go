package owned

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/internal/client/applied"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/client/write"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	objects "github.com/kates-go/kates/internal/object"
)

// TestAPartOfWhichOthersHaveChangedEverythingIsNotOwned: an entry by key stays in the managed
// fields after others have changed all of its parts. It then looks like a part that has an owner
// as a whole.
func TestAPartOfWhichOthersHaveChangedEverythingIsNotOwned(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	known, err := kinds.ReadSchemas(gv, []byte(`{"components": {"schemas": {
		"other": {"x-kubernetes-map-type": "atomic", "properties": {"a": {}}},
		"thing": {"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}], "properties": {
			"metadata": {"properties": {"labels": {"additionalProperties": {"type": "string"}}}}, "whole": {"x-kubernetes-map-type": "atomic", "additionalProperties": true}, "reference": {"allOf": [{"$ref": "#/components/schemas/other"}]},
			"objects": {"additionalProperties": {"properties": {"a": {"type": "string"}}}},
			"wholes": {"additionalProperties": {"$ref": "#/components/schemas/other"}},
			"sets": {"additionalProperties": {"type": "array", "x-kubernetes-list-type": "set"}},
			"lists": {"additionalProperties": {"type": "array"}}, "free": {"x-kubernetes-preserve-unknown-fields": true},
			"parts": {"items": {"properties": {"objects": {"additionalProperties": {"type": "object"}}}}},
			"itself": {"$ref": "#/components/schemas/itself"}
		}},
		"itself": {"allOf": [{"$ref": "#/components/schemas/itself"}]}
	}}}`))
	require.NoError(t, err)
	whole := func(path fieldpath.Path, part any) bool { return known.Whole("Thing", path, part) }
	for _, test := range []struct {
		object, fields string
		want           bool
	}{
		{`"whole": {"a": 1}`, `"f:whole": {}`, true},
		{`"reference": {"a": 1}`, `"f:reference": {}`, true},
		{`"objects": {"o": {"a": "v"}}`, `"f:objects": {"f:o": {".": {}, "f:a": {}}}`, true},
		{`"objects": {"o": {"a": "v"}}`, `"f:objects": {"f:o": {}}`, false},
		{`"objects": {"o": {}}`, `"f:objects": {"f:o": {}}`, true},
		{`"wholes": {"o": {"a": "v"}}`, `"f:wholes": {"f:o": {}}`, true},
		{`"sets": {"o": ["a"]}`, `"f:sets": {"f:o": {}}`, false},
		{`"sets": {"o": []}`, `"f:sets": {"f:o": {}}`, true},
		{`"lists": {"o": ["a"]}`, `"f:lists": {"f:o": {}}`, true},
		{`"free": {"o": ["a"], "p": {"q": [1], "r": 1}}`, `"f:free": {"f:o": {}, "f:p": {".": {}, "f:q": {}, "f:r": {}}}`, true},
		{`"free": {"o": {"a": 1}}`, `"f:free": {"f:o": {}}`, false},
		{`"parts": [{"name": "x", "objects": {"o": {"a": 1}}}]`, `"f:parts": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:objects": {"f:o": {}}}}`, false},
		{`"parts": [{"name": "x", "a": 1}]`, `"f:parts": {"k:{\"name\":\"x\"}": {}}`, true},
		{`"parts": [{"a": 1}]`, `"f:parts": {"k:{\"name\":\"default\"}": {}}`, false},
		{`"undeclared": {"a": 1}`, `"f:undeclared": {}`, false},
		{`"itself": {"a": 1}`, `"f:itself": {}`, false},
	} {
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON([]byte(`{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"labels": {"a": "b"}}, `+test.object+`}`)))
		fields := `{"f:metadata": {"f:labels": {"f:a": {}}}, ` + test.fields + `}`
		assert.Equal(t, test.want, (&applied.Check{Whole: whole}).OwnsJust([]byte(fields), u), "%s: %s", test.object, test.fields)
	}
	for kind, want := range map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "ConfigMap"}: true, {Group: "apps", Version: "v1", Kind: "Deployment"}: true,
		{Group: "apps", Version: "v1", Kind: "ControllerRevision"}: false, gv.WithKind("Thing"): false,
	} {
		assert.Equal(t, want, kinds.OwnedByFields(kind), kind)
	}
}

func TestAnApplyThatMetADeletionIsNotRemembered(t *testing.T) {
	streams := streamset.New(stream.Config{})
	defer streams.Close()
	w := &applied.Wanted{Resource: objects.Resource{Storage: "configmaps"}, Key: objects.Key{Name: "x"}, Sum: "sum"}
	for deleted, remembered := range map[bool]bool{false: true, true: false} {
		a := &call{Writer: write.Writer{Core: &core.Core{Streams: streams}}, options: write.Options{FieldManager: "m"}}
		got := &unstructured.Unstructured{}
		got.SetAPIVersion("v1")
		got.SetKind("ConfigMap")
		got.SetUID("u")
		got.SetResourceVersion("5")
		if deleted {
			now := metav1.Now()
			got.SetDeletionTimestamp(&now)
		}
		a.remember(w, nil, got, &outcome{})
		assert.Equal(t, remembered, a.Applied.Marks.At(w, "m", got), "to apply it again is ErrDeleting")
	}
}
