package kates

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kates-go/kates/accumulator"
)

const (
	openAPIIndex  = "/openapi/v3"
	hostsDocument = "/openapi/v3/apis/getambassador.io/v3alpha1"
	hostsList     = "/apis/getambassador.io/v3alpha1/hosts"
)

var hostKind = schema.GroupVersionKind{Group: "getambassador.io", Version: "v3alpha1", Kind: "Host"}

// respond answers a path with JSON, or with a status code.
func (s *discoveryServer) respond(path string, code int, body string) {
	s.change(func() {
		s.others[path] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	})
}

// declare serves OpenAPI in which Hosts have these selectable fields.
func (s *discoveryServer) declare(paths ...string) {
	s.respond(openAPIIndex, http.StatusOK, `{"paths":{
		"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=1"},
		"apis/getambassador.io/v3alpha1":{"serverRelativeURL":"`+hostsDocument+`?hash=2"}}}`)
	declared := func(paths ...string) (all []map[string]string) {
		for _, path := range paths {
			all = append(all, map[string]string{"fieldPath": path})
		}
		return all
	}
	of := func(kind string, groups ...string) (all []metav1.GroupVersionKind) {
		for _, group := range groups {
			all = append(all, metav1.GroupVersionKind{Group: group, Version: "v3alpha1", Kind: kind})
		}
		return all
	}
	raw, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": map[string]any{
		"a": map[string]any{"x-kubernetes-group-version-kind": of("Host", "getambassador.io"), "x-kubernetes-selectable-fields": declared(paths...)},
		"b": map[string]any{"x-kubernetes-group-version-kind": of("HostList", "getambassador.io"), "x-kubernetes-selectable-fields": declared(paths...)},
		"c": map[string]any{"x-kubernetes-group-version-kind": of("Host", "example.io", "example.com"), "x-kubernetes-selectable-fields": declared("spec.foreign")},
		"d": map[string]any{"type": "object"},
	}}})
	if err != nil {
		panic(err)
	}
	s.respond(hostsDocument, http.StatusOK, string(raw))
}

func declaringServer(t *testing.T) (*discoveryServer, *resolver, *testclock.FakePassiveClock) {
	s, r, clock := backends["aggregated"](t)
	s.declare("spec.hostname", "spec.count")
	return s, r, clock
}

func TestDeclaredFieldsAreReadOnceUntilTheCacheIsInvalidated(t *testing.T) {
	s, r, clock := declaringServer(t)
	for range 3 {
		f, err := r.declared(t.Context(), hostKind, []string{"spec.hostname"})
		require.NoError(t, err)
		assert.Equal(t, []string{"spec.count", "spec.hostname"}, f.Names())
		clock.SetTime(clock.Now().Add(time.Hour))
	}
	assert.Equal(t, 1, s.requests()[openAPIIndex])
	assert.Equal(t, 1, s.requests()[hostsDocument])
	require.NoError(t, r.invalidate())
	s.declare("spec.hostname")
	f, err := r.declared(t.Context(), hostKind, []string{"spec.hostname"})
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.hostname"}, f.Names())
	assert.Equal(t, 2, s.requests()[hostsDocument])
}

func TestAFieldThatIsNotDeclaredYetIsLookedForAgainOnceASecond(t *testing.T) {
	s, r, clock := declaringServer(t)
	for range 3 {
		_, err := r.declared(t.Context(), hostKind, []string{"spec.late"})
		assert.ErrorContains(t, err, "spec.late")
	}
	assert.Equal(t, 1, s.requests()[hostsDocument])
	s.declare("spec.late")
	clock.SetTime(clock.Now().Add(resetInterval))
	f, err := r.declared(t.Context(), hostKind, []string{"spec.late"})
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.late"}, f.Names())
	assert.Equal(t, 2, s.requests()[hostsDocument])
}

func TestOpenAPIThatCannotBeReadDeclaresNothingUntilItCan(t *testing.T) {
	for name, broken := range map[string]func(*discoveryServer){
		"no index":        func(s *discoveryServer) { s.respond(openAPIIndex, http.StatusNotFound, "") },
		"forbidden":       func(s *discoveryServer) { s.respond(openAPIIndex, http.StatusForbidden, "{}") },
		"no such group":   func(s *discoveryServer) { s.respond(openAPIIndex, http.StatusOK, `{"paths":{}}`) },
		"odd index":       func(s *discoveryServer) { s.respond(openAPIIndex, http.StatusOK, `"`) },
		"no document":     func(s *discoveryServer) { s.respond(hostsDocument, http.StatusInternalServerError, "") },
		"odd document":    func(s *discoveryServer) { s.respond(hostsDocument, http.StatusOK, `{"components":7}`) },
		"another's field": func(s *discoveryServer) { s.declare() },
	} {
		t.Run(name, func(t *testing.T) {
			s, r, clock := declaringServer(t)
			broken(s)
			f, err := r.declared(t.Context(), hostKind, []string{"spec.hostname"})
			assert.Error(t, err)
			assert.Empty(t, f)
			s.declare("spec.hostname")
			clock.SetTime(clock.Now().Add(resetInterval))
			f, err = r.declared(t.Context(), hostKind, []string{"spec.hostname"})
			assert.NoError(t, err)
			assert.Len(t, f, 1)
		})
	}
}

func TestConcurrentReadersOfOpenAPIShareOneReadingAndKeepTheirContexts(t *testing.T) {
	s, r, _ := declaringServer(t)
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	s.change(func() {
		s.hook = func(request *http.Request) {
			if request.URL.Path == openAPIIndex {
				arrived <- struct{}{}
				select {
				case <-release:
				case <-request.Context().Done():
				}
			}
		}
	})
	errs := make(chan error, 10)
	ask := func(ctx context.Context) { _, err := r.declared(ctx, hostKind, []string{"spec.hostname"}); errs <- err }
	first, cut := context.WithCancel(t.Context())
	go ask(first)
	<-arrived
	impatient, leave := context.WithCancel(t.Context())
	leave()
	ask(impatient)
	require.ErrorIs(t, <-errs, context.Canceled, "whoever waits may leave")
	for range 5 {
		go ask(t.Context())
	}
	cut()
	require.ErrorIs(t, <-errs, context.Canceled)
	select {
	case <-arrived: // one of the others reads it in its place
	case err := <-errs:
		require.NoError(t, err, "it was not theirs that ended")
	}
	close(release)
	for range 5 {
		require.NoError(t, <-errs)
	}
	assert.Equal(t, 2, s.requests()[openAPIIndex])
}

func TestOnlyAQueryByACustomFieldReadsOpenAPIAndAnAbsentFieldIsNotReadable(t *testing.T) {
	s, _, _ := declaringServer(t)
	for _, list := range []string{hostsList, "/api/v1/pods"} {
		s.respond(list, http.StatusOK, `{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
	c, err := NewClientFromRESTConfig(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	host := NewUnstructured("Host", "getambassador.io/v3alpha1")
	host.Object["spec"] = map[string]any{"hostname": "h", "count": int64(3), "other": "o"}
	pod := NewUnstructured("Pod", "v1")
	field := func(q Query, o accumulator.Object, name string) (string, bool) {
		t.Helper()
		r, err := c.resolve(t.Context(), target{Query: q})
		require.NoError(t, err)
		if r.Field == nil {
			return "", false
		}
		return r.Field(o, name)
	}
	v, ok := field(Query{Kind: "pods", FieldSelector: "spec.restartPolicy=Never"}, pod, "spec.restartPolicy")
	assert.True(t, ok)
	assert.Equal(t, "Always", v)
	_, ok = field(Query{Kind: "hosts", FieldSelector: "metadata.name=x"}, host, "spec.hostname")
	assert.False(t, ok)
	_, ok = field(Query{Kind: "hosts"}, host, "spec.hostname")
	assert.False(t, ok)
	assert.Zero(t, s.requests()[openAPIIndex], "nobody needs it")

	v, ok = field(Query{Kind: "hosts", FieldSelector: "metadata.name=x,spec.count=3"}, host, "spec.count")
	assert.True(t, ok)
	assert.Equal(t, "3", v)
	_, ok = field(Query{Kind: "hosts", AnyOf: []Selection{{LabelSelector: "a=b"}, {FieldSelector: "spec.count=3"}}}, host, "spec.count")
	assert.True(t, ok, "one of a union")
	_, ok = field(Query{Kind: "hosts", FieldSelector: "spec.other=o"}, host, "spec.other")
	assert.False(t, ok, "a field that nobody declares")
	assert.Equal(t, 1, s.requests()[hostsDocument])
}

func TestAFieldThatTheServerRefusesIsAnError(t *testing.T) {
	s, _, _ := declaringServer(t)
	s.respond(hostsList, http.StatusBadRequest,
		`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"BadRequest","code":400,"message":"field label not supported: spec.hostname"}`)
	c, err := NewClientFromRESTConfig(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for _, selector := range []string{"spec.hostname=x", "metadata.namespace=x"} {
		_, err = c.Watch(t.Context(), Query{Name: "Q", Kind: "hosts", FieldSelector: selector})
		assert.ErrorContains(t, err, `query "Q"`, "though it is declared")
		assert.ErrorContains(t, err, "field label not supported")
	}
}
