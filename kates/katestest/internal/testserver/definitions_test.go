package testserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const anything = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"

func (s tested) define(plural, kind, versions string) {
	s.Helper()
	s.do(http.MethodPost, definedKinds, strings.ReplaceAll("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "+plural+".example.com}, "+
		"spec: {group: example.com, scope: Namespaced, names: {plural: "+plural+", kind: "+kind+"}, versions: ["+versions+"]}}", "\t", ""))
}

// opened opens a watch, which the test ends. It returns a channel that is closed when it has
// ended.
func (s tested) opened(path string) (ended <-chan struct{}, end func()) {
	ctx, end := context.WithCancel(s.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path+"?watch=1", nil).WithContext(ctx))
	}()
	s.settle()
	return over, end
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAChangedDefinitionEndsItsOwnWatchesAlone(t *testing.T) {
	inBubble(t, func(s tested) {
		s.define("things", "Thing", "{name: v1, served: true, storage: true, "+anything+"}")
		s.define("others", "Other", "{name: v1, served: true, storage: true, "+anything+"}")
		things, endThings := s.opened("/apis/example.com/v1/things")
		others, endOthers := s.opened("/apis/example.com/v1/others")
		defer endThings()
		defer endOthers()
		s.do(http.MethodPatch, definedKinds+"/things.example.com", "{metadata: {labels: {a: b}}}")
		s.settle()
		require.False(t, closed(things), "nothing that it serves has changed")

		s.do(http.MethodPatch, definedKinds+"/things.example.com", "{spec: {names: {shortNames: [th]}}}")
		s.settle()
		assert.True(t, closed(things))
		assert.False(t, closed(others))
	})
}

func TestADeletedDefinitionTakesObjectsOfAVersionThatIsNotServed(t *testing.T) {
	inBubble(t, func(s tested) {
		s.define("things", "Thing", "{name: v1, served: true, storage: true, "+anything+"}")
		s.do(http.MethodPost, "/apis/example.com/v1/namespaces/default/things", "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}")
		s.do(http.MethodPatch, definedKinds+"/things.example.com", "{spec: {versions: [{name: v1, served: false, storage: true, "+anything+"}]}}")
		s.do(http.MethodDelete, definedKinds+"/things.example.com", "")
		s.settle()
		assert.False(t, s.there(definedKinds+"/things.example.com"))
		s.define("things", "Thing", "{name: v1, served: true, storage: true, "+anything+"}")
		assert.False(t, s.there("/apis/example.com/v1/namespaces/default/things/a"))
	})
}
