package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/bench/internal/operator/api"
)

func TestEveryChangeOfAnAppIsAnotherSpecWithFiveObjects(t *testing.T) {
	for changes := range 8 {
		spec := AppSpec(3, changes)
		assert.Equal(t, spec, AppSpec(3, changes))
		assert.NotEqual(t, spec, AppSpec(3, changes+1))
		assert.Len(t, api.Listed[api.Object](api.Wanted(&api.App{Spec: spec})), 5)
	}
	settings := func(changes int) string { return api.Wanted(&api.App{Spec: AppSpec(3, changes)}).Settings[0].Name }
	assert.Equal(t, settings(0), settings(1))
	assert.NotEqual(t, settings(1), settings(2), "the second change replaces a ConfigMap")
}
