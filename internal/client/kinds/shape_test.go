package kinds

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

// The fields stand behind what does not decode, and before it.
func TestASchemaThatDoesNotDecodeLosesNothingButItsShape(t *testing.T) {
	const document = `{"components": {"schemas": {
		"bad": {
			"additionalProperties": {"properties": 7},
			"properties": {"spec": {"x-kubernetes-map-type": "atomic"}},
			"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Bad"}],
			"x-kubernetes-selectable-fields": [{"fieldPath": "spec.a"}, {"fieldPath": "spec.b"}]},
		"good": {
			"properties": {"spec": {"x-kubernetes-map-type": "atomic"}},
			"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Good"}],
			"x-kubernetes-selectable-fields": [{"fieldPath": "spec.c"}]},
		"none": true,
		"odd": {
			"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Odd"}],
			"x-kubernetes-selectable-fields": [7, {"fieldPath": 7}, {"fieldPath": "spec.d"}]}
	}}}`
	gv := schema.GroupVersion{Group: "g", Version: "v1"}
	found, err := ReadSchemas(gv, []byte(document))
	for _, name := range []string{"bad", "none", "odd"} {
		assert.ErrorContains(t, err, "the schema "+name+": ")
	}
	assert.NotContains(t, err.Error(), "good")
	for kind, want := range map[string][]string{"Bad": {"spec.a", "spec.b"}, "Good": {"spec.c"}, "Odd": {"spec.d"}} {
		assert.Equal(t, want, found.selectable[kind].Names(), kind)
	}
	spec := fieldpath.MakePathOrDie("spec")
	assert.True(t, found.Whole("Good", spec, map[string]any{}))
	assert.False(t, found.Whole("Bad", spec, map[string]any{}), "unknown")

	s, r, clock := declaringServer(t)
	s.Respond(kindstest.HostsDocument, http.StatusOK, `{"components": {"schemas": {"host": {
		"items": 7, "x-kubernetes-group-version-kind": [{"group": "`+kindstest.HostKind.Group+`", "version": "`+kindstest.HostKind.Version+`", "kind": "`+kindstest.HostKind.Kind+`"}],
		"x-kubernetes-selectable-fields": [{"fieldPath": "spec.hostname"}]}}}}`)
	f, err := r.Declared(t.Context(), kindstest.HostKind, []string{"spec.hostname"})
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.hostname"}, f.Names())
	clock.SetTime(clock.Now().Add(resetInterval))
	f, err = r.Declared(t.Context(), kindstest.HostKind, []string{"spec.hostname", "spec.other"})
	assert.ErrorContains(t, err, "the schema host: ")
	assert.Equal(t, []string{"spec.hostname"}, f.Names(), "beside the error")
}
