package patch

import (
	"encoding/base64"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// WithoutStringData returns the content of an object with the stringData of a Secret as data, and
// the keys that stringData had. The server stores it so. stringData is write-only: it is never
// read, and a field manager does not own its keys in data. So nothing compares with it, and an
// apply without a key leaves the key. Of a key in both, stringData wins, as on the server. The
// content is not modified. If it is malformed, it is returned as it is: the server says why.
//
// No other field of the built-in kinds is write-only.
func WithoutStringData(kind schema.GroupVersionKind, content map[string]any) (out map[string]any, keys []string) {
	given, there := content["stringData"]
	plain, ok := objectOrNil(given)
	stored, isMap := objectOrNil(content["data"])
	if !there || kind != secretKind || !ok || !isMap {
		return content, nil
	}
	data := maps.Clone(stored)
	for key, value := range plain {
		text, ok := value.(string)
		if !ok {
			return content, nil
		}
		if data == nil {
			data = make(map[string]any, len(plain))
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	out = maps.Clone(content)
	delete(out, "stringData")
	if data != nil {
		out["data"] = data
	}
	return out, slices.Collect(maps.Keys(plain))
}
