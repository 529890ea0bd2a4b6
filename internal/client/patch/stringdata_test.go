package patch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/jsonform"
)

func TestStringDataOfASecretIsData(t *testing.T) {
	for name, c := range map[string]struct {
		given, want obj
		keys        []string
	}{
		"alone":           {obj{"stringData": obj{"a": "b"}}, obj{"data": obj{"a": "Yg=="}}, []string{"a"}},
		"beside data":     {obj{"stringData": obj{"a": "b"}, "data": obj{"c": "ZA=="}}, obj{"data": obj{"a": "Yg==", "c": "ZA=="}}, []string{"a"}},
		"in both":         {obj{"stringData": obj{"a": "b"}, "data": obj{"a": "ZA=="}}, obj{"data": obj{"a": "Yg=="}}, []string{"a"}},
		"data is null":    {obj{"stringData": obj{"a": ""}, "data": nil}, obj{"data": obj{"a": ""}}, []string{"a"}},
		"empty":           {obj{"stringData": obj{}}, obj{}, nil},
		"null":            {obj{"stringData": nil, "data": obj{"a": "Yg=="}}, obj{"data": obj{"a": "Yg=="}}, nil},
		"none":            {obj{"data": obj{"a": "Yg=="}}, obj{"data": obj{"a": "Yg=="}}, nil},
		"a number":        {obj{"stringData": obj{"a": int64(1)}}, obj{"stringData": obj{"a": int64(1)}}, nil},
		"no map":          {obj{"stringData": "a"}, obj{"stringData": "a"}, nil},
		"data is no map":  {obj{"stringData": obj{"a": "b"}, "data": "a"}, obj{"stringData": obj{"a": "b"}, "data": "a"}, nil},
		"of other fields": {obj{"stringData": obj{"a": "b"}, "type": "x"}, obj{"data": obj{"a": "Yg=="}, "type": "x"}, []string{"a"}},
	} {
		before, err := jsonform.Copy(c.given)
		assert.NoError(t, err, name)
		got, keys := WithoutStringData(secretKind, c.given)
		assert.Equal(t, c.want, got, name)
		assert.ElementsMatch(t, c.keys, keys, name)
		assert.Equal(t, before, any(c.given), "%s: the content is modified", name)
		other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Secret"}
		got, keys = WithoutStringData(other, c.given)
		assert.Equal(t, c.given, got, "%s: another kind", name)
		assert.Empty(t, keys, name)
	}
}
