package consumer

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/bench/internal/workload"
)

// fields counts the values in JSON that are no object and no list.
func fields(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			n += fields(member)
		}
	case []any:
		for _, element := range v {
			n += fields(element)
		}
	default:
		return 1
	}
	return n
}

// fieldsIn counts the fields that a type holds of an object.
func fieldsIn[T any](t *testing.T, text []byte) int {
	t.Helper()
	into := new(T)
	require.NoError(t, json.Unmarshal(text, into))
	held, err := json.Marshal(into)
	require.NoError(t, err)
	var all any
	require.NoError(t, json.Unmarshal(held, &all))
	return fields(all)
}

func TestAVariantSaysHowManyFieldsOfAPodItHolds(t *testing.T) {
	pod, err := workload.RunningPod(1)
	require.NoError(t, err)
	pod.ManagedFields = nil
	text, err := json.Marshal(pod)
	require.NoError(t, err)
	for name, want := range map[string]int{
		"kates-names": fieldsIn[NamedLite](t, text), "kates-lite": fieldsIn[PodLite](t, text),
		"kates-listed": fieldsIn[PodListed](t, text), "kates-scheduled": fieldsIn[PodScheduled](t, text),
		"kates": fieldsIn[any](t, text),
	} {
		v, err := ByName(name)
		require.NoError(t, err)
		assert.Equal(t, want, v.Fields, name)
	}
}

func TestAConsumerOfSomeFieldsHasNoMarks(t *testing.T) {
	c, is := newKatesLite[PodLite]().(*snapshotter[lite[PodLite]])
	require.True(t, is)
	view := c.view(&lite[PodLite]{Pods: make([]*PodLite, 3), Services: make([]*NamedLite, 2)})
	assert.Equal(t, 5, view.Objects)
	assert.Equal(t, 1, markSet{parseKey("a/b"): "1"}.missing(view))
}
