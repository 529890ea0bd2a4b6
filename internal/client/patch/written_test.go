package patch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhatAPatchSets(t *testing.T) {
	for what, c := range map[string]struct {
		pt   types.PatchType
		data string
		want map[string]any
	}{
		"merge":     {types.MergePatchType, `{"status":{"a":"b","n":1,"gone":null}}`, obj{"status": obj{"a": "b", "n": int64(1), "gone": nil}}},
		"apply":     {types.ApplyYAMLPatchType, "status: {a: b}", obj{"status": obj{"a": "b"}}},
		"strategic": {types.StrategicMergePatchType, `{"status":{"l":[{"type":"A"},{"$patch":"delete","type":"B"}],"$setElementOrder/l":[{"type":"A"}]}}`, obj{"status": obj{"l": []any{obj{"type": "A"}}}}},
		"operations": {types.JSONPatchType, `[{"op":"add","path":"/status/a~1b","value":"c"},{"op":"replace","path":"/status/d","value":{"e":"f"}},
			{"op":"add","path":"/status/d/g","value":"h"},{"op":"remove","path":"/status/d/e"},{"op":"add","path":"/status/l/-","value":"x"},
			{"op":"test","path":"/status/t","value":"x"}]`, obj{"status": obj{"a/b": "c", "d": obj{"e": nil, "g": "h"}}}},
		"no JSON":       {types.MergePatchType, `{`, nil},
		"no operations": {types.JSONPatchType, `{}`, nil},
	} {
		assert.Equal(t, c.want, Written(c.pt, []byte(c.data)), what)
	}
}
