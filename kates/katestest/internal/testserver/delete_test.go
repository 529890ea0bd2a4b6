package testserver

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

func TestACollectionLeavesObjectsThatAreMadeAgain(t *testing.T) {
	inBubble(t, func(s tested) {
		s.made(configMaps, "a", "")
		old, _ := s.item(store.Key{Resource: "configmaps", Namespace: "default", Name: "a"})
		s.do(http.MethodDelete, configMaps+"/a", "")
		s.made(configMaps, "a", "")
		q := &request{kind: old.kind, namespace: "default", query: map[string][]string{}}
		page := []store.Change{{Key: old.key, New: store.Object{Content: old.object.Object, RV: 1}}}
		assert.NoError(t, s.deletePage(q, page, metav1.DeleteOptions{}, false))
		assert.True(t, s.there(configMaps+"/a"), "it is another object of that name")
	})
}

func TestADeletionThatIsOvertakenBeginsAgain(t *testing.T) {
	inBubble(t, func(s tested) {
		s.made(configMaps, "a", ", finalizers: [example.com/x]")
		key := store.Key{Resource: "configmaps", Namespace: "default", Name: "a"}
		o, _ := s.item(key)
		made := outcome{content: o.object.Object, rv: 1}
		done, err := s.end(&request{kind: o.kind, namespace: "default", name: "a"}, &made)
		assert.NoError(t, err)
		assert.False(t, done, "somebody has changed it since")
		left, _ := s.store.Get(key)
		assert.NotNil(t, (&unstructured.Unstructured{Object: left.Content}).GetFinalizers())
	})
}
