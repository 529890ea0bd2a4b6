package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/object"
)

// TestNamesakesWhoseStandInIsGoneAreTakenIn: own writes that are given up leave none.
func TestNamesakesWhoseStandInIsGoneAreTakenIn(t *testing.T) {
	key := object.Key{Name: "a\uFFFD"}
	object := func(uid, rv string) object.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: types.UID(uid), ResourceVersion: rv}}
	}
	n := &namesakes{}
	held := n.add(key, n.add(key, nil, object("u1", "1")), object("u2", "2"))
	assert.True(t, StandsForSeveral(held))
	assert.Equal(t, 1, n.more)
	assert.True(t, StandsForSeveral(n.add(key, nil, object("u2", "3"))))
	assert.Nil(t, n.drop(key, held, nil))
	assert.Zero(t, n.more)
	assert.Empty(t, n.of)
}
