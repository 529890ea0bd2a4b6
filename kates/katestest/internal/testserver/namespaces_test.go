package testserver

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const inTeam = "/api/v1/namespaces/team/configmaps"

func (s tested) team() {
	s.Helper()
	s.made("/api/v1/namespaces", "team", "")
	for _, o := range []string{"a", "b, finalizers: [example.com/x]"} {
		s.do(http.MethodPost, inTeam, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+o+"}}")
	}
}

func TestANamespaceThatTerminatesIsEmptiedAndGoes(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		s.team()
		s.made(configMaps, "a", "")
		s.do(http.MethodDelete, "/api/v1/namespaces/team", "")
		s.settle()
		assert.False(t, s.there(inTeam+"/a"))
		require.True(t, s.there("/api/v1/namespaces/team"), "an object in it has a finalizer")

		s.do(http.MethodPatch, inTeam+"/b", "{metadata: {finalizers: null}}")
		s.settle()
		assert.False(t, s.there("/api/v1/namespaces/team"))
		assert.True(t, s.there(configMaps+"/a"), "it is in another namespace")
		s.made("/api/v1/namespaces", "team", "")
	})
}

func TestAFinalizerOfANamespacesSpecKeepsIt(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		s.do(http.MethodPost, "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: team}, spec: {finalizers: [example.com/x]}}")
		s.do(http.MethodDelete, "/api/v1/namespaces/team", "")
		s.settle()
		left, _, _ := unstructured.NestedStringSlice(s.do(http.MethodGet, "/api/v1/namespaces/team", "").Object, "spec", "finalizers")
		assert.Equal(t, []string{"example.com/x"}, left, "the server takes away its own alone")
		s.do(http.MethodPut, "/api/v1/namespaces/team/finalize", "{apiVersion: v1, kind: Namespace, metadata: {name: team}, spec: {}}")
		s.settle()
		assert.False(t, s.there("/api/v1/namespaces/team"))
	})
}

func TestANamespaceInForegroundIsEmptiedAndGoes(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		s.team()
		s.do(http.MethodPatch, inTeam+"/b", "{metadata: {finalizers: null}}")
		s.do(http.MethodDelete, "/api/v1/namespaces/team?propagationPolicy=Foreground", "")
		s.settle()
		assert.False(t, s.there("/api/v1/namespaces/team"))
	})
}

func TestWithoutControllersANamespaceStaysAsItIs(t *testing.T) {
	inBubble(t, func(s tested) {
		s.team()
		s.do(http.MethodDelete, "/api/v1/namespaces/team", "")
		s.settle()
		assert.True(t, s.there(inTeam+"/a"))
		assert.True(t, s.there("/api/v1/namespaces/team"))
	})
}
