package words

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestElementsAreTheSameAsWords(t *testing.T) {
	if !OK {
		return // a build without words
	}
	content := map[string]any{"a": "b"}
	slice := append(make([]map[string]any, 0, 4), content)
	elements := append(Slice(reflect.ValueOf(slice)), Of(reflect.ValueOf(content)))
	again := SliceOf(reflect.TypeOf(slice), elements).Interface().([]map[string]any)
	assert.Equal(t, []map[string]any{content, content}, again)
	assert.Same(t, &slice[0], &again[0])
	assert.Empty(t, Slice(reflect.ValueOf([]*int{})))
	m := map[int]map[string]any{1: content}
	clone := CloneMap[int](reflect.ValueOf(m)).Interface().(map[int]map[string]any)
	clone[1] = nil
	assert.NotNil(t, m[1])
}
