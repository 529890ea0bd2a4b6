package kates

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	_ Object = (*Service)(nil)
	_ Object = (*Unstructured)(nil)
)

func TestAliasesAreTheKubernetesTypes(t *testing.T) {
	var pod *Pod = &corev1.Pod{}
	assert.IsType(t, &corev1.Pod{}, pod)
	quantity := MustParseQuantity("1500m")
	assert.EqualValues(t, 1500, quantity.MilliValue())
	selector, err := ParseSelector("app in (web, api)")
	assert.NoError(t, err)
	assert.True(t, selector.Matches(LabelSet{"app": "web"}))
}

func TestErrorPredicatesSeeThroughWrapping(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	missing := fmt.Errorf("get pod: %w", apierrors.NewNotFound(pods, "web"))
	conflict := fmt.Errorf("update pod: %w", apierrors.NewConflict(pods, "web", errors.New("newer")))
	assert.True(t, IsNotFound(missing))
	assert.False(t, IsNotFound(conflict))
	assert.True(t, IsConflict(conflict))
}
