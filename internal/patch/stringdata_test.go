package patch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/jsonform"
)

func TestStringDataOfASecretIsData(t *testing.T) {
	for name, c := range map[string]struct{ given, want obj }{
		"alone":           {obj{"stringData": obj{"a": "b"}}, obj{"data": obj{"a": "Yg=="}}},
		"beside data":     {obj{"stringData": obj{"a": "b"}, "data": obj{"c": "ZA=="}}, obj{"data": obj{"a": "Yg==", "c": "ZA=="}}},
		"in both":         {obj{"stringData": obj{"a": "b"}, "data": obj{"a": "ZA=="}}, obj{"data": obj{"a": "Yg=="}}},
		"data is null":    {obj{"stringData": obj{"a": ""}, "data": nil}, obj{"data": obj{"a": ""}}},
		"empty":           {obj{"stringData": obj{}}, obj{}},
		"null":            {obj{"stringData": nil, "data": obj{"a": "Yg=="}}, obj{"data": obj{"a": "Yg=="}}},
		"none":            {obj{"data": obj{"a": "Yg=="}}, obj{"data": obj{"a": "Yg=="}}},
		"a number":        {obj{"stringData": obj{"a": int64(1)}}, obj{"stringData": obj{"a": int64(1)}}},
		"no map":          {obj{"stringData": "a"}, obj{"stringData": "a"}},
		"data is no map":  {obj{"stringData": obj{"a": "b"}, "data": "a"}, obj{"stringData": obj{"a": "b"}, "data": "a"}},
		"of other fields": {obj{"stringData": obj{"a": "b"}, "type": "x"}, obj{"data": obj{"a": "Yg=="}, "type": "x"}},
	} {
		before, err := jsonform.Copy(c.given)
		assert.NoError(t, err, name)
		assert.Equal(t, c.want, WithoutStringData(secretKind, c.given), name)
		assert.Equal(t, before, any(c.given), "%s: the content is modified", name)
		other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Secret"}
		assert.Equal(t, c.given, WithoutStringData(other, c.given), "%s: another kind", name)
	}
}
