package fake_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/object"
)

func TestFieldsAreJudgedByTheirPath(t *testing.T) {
	u := thing("x", "1")
	u.SetLabels(map[string]string{"in": "yes"})
	_ = unstructured.SetNestedField(u.Object, "n1", "spec", "nodeName")
	_ = unstructured.SetNestedField(u.Object, true, "spec", "paused")
	known := object.Resource{Field: func(_ object.Object, field string) (string, bool) {
		return "read", field == "status.phase"
	}}
	for text, want := range map[string]bool{
		"spec.nodeName=n1": true, "spec.nodeName!=n1": false, "metadata.name=x": true, "metadata.namespace=other": false,
		"metadata.namespace=ns,spec.paused=true": true, "spec.missing=": true, "spec.missing=x": false, "status.phase=read": true,
	} {
		f, err := fields.ParseSelector(text)
		require.NoError(t, err)
		assert.Equal(t, want, fake.Selects(known, object.Selection{Fields: f}, u), text)
		assert.Equal(t, want, fake.Selects(known, object.Selection{Fields: f}, object.Stamp(u, "uid", "1")), text)
	}
	for text, want := range map[string]bool{"": true, "in=yes": true, "in!=yes": false, "other": false} {
		l, err := labels.Parse(text)
		require.NoError(t, err)
		assert.Equal(t, want, fake.Selects(known, object.Selection{Labels: l}, u), text)
	}
}
