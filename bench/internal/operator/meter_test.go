package operator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestVerbsAreReadFromRequests(t *testing.T) {
	for _, c := range []struct{ method, path, contentType, want string }{
		{http.MethodGet, "/api", "", VerbDiscover},
		{http.MethodGet, "/apis/apps/v1", "", VerbDiscover},
		{http.MethodGet, "/openapi/v3", "", VerbDiscover},
		{http.MethodGet, "/api/v1/pods", "", VerbList},
		{http.MethodGet, "/api/v1/namespaces", "", VerbList},
		{http.MethodGet, "/api/v1/namespaces/a", "", VerbGet},
		{http.MethodGet, "/api/v1/namespaces/a/pods", "", VerbList},
		{http.MethodGet, "/api/v1/namespaces/a/pods/b", "", VerbGet},
		{http.MethodGet, "/apis/apps/v1/deployments?watch=true", "", VerbWatch},
		{http.MethodGet, "/apis/apps/v1/deployments?watch=1", "", VerbWatch},
		{http.MethodPost, "/apis/apps/v1/namespaces/a/deployments", "", VerbCreate},
		{http.MethodPut, "/api/v1/namespaces/a/configmaps/b", "", VerbUpdate},
		{http.MethodPatch, "/api/v1/namespaces/a/configmaps/b", "application/merge-patch+json", VerbPatch},
		{http.MethodPatch, "/api/v1/namespaces/a/configmaps/b", "application/apply-patch+yaml", VerbApply},
		{http.MethodPatch, "/apis/x/v1/namespaces/a/apps/b/status", "application/merge-patch+json", VerbStatus},
		{http.MethodPut, "/apis/x/v1/apps/b/status", "", VerbStatus},
		{http.MethodGet, "/apis/x/v1/apps/b/status", "", VerbGet},
		{http.MethodDelete, "/api/v1/namespaces/a/configmaps/b", "", VerbDelete},
	} {
		q := httptest.NewRequest(c.method, c.path, nil)
		q.Header.Set("Content-Type", c.contentType)
		assert.Equal(t, c.want, verbOf(q), c.path)
		assert.Contains(t, Verbs, c.want)
	}
}

func TestReconcilesAreCountedWithTheirRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodDelete {
			w.WriteHeader(http.StatusConflict)
		}
	}))
	defer server.Close()
	var m Meter
	config := m.Through(&rest.Config{Host: server.URL})
	assert.Negative(t, config.QPS)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	ask := func(ctx context.Context, method string) error {
		q, err := http.NewRequestWithContext(ctx, method, server.URL+"/api/v1/pods", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(q)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	begun := time.Now()
	require.NoError(t, ask(t.Context(), http.MethodGet))
	before := m.Counts()
	broken := errors.New("broken")
	for _, f := range []func(context.Context) error{
		func(context.Context) error { return nil },
		func(context.Context) error { return broken },
		func(ctx context.Context) error {
			assert.Equal(t, 1, m.Counts().Busy)
			return errors.Join(ask(ctx, http.MethodDelete), ask(ctx, http.MethodGet))
		},
	} {
		if err := m.Reconcile(t.Context(), f); err != nil {
			require.ErrorIs(t, err, broken)
		}
	}
	assert.Panics(t, func() { _ = m.Reconcile(t.Context(), func(context.Context) error { panic("broken") }) })
	c := m.Counts()
	assert.False(t, time.Unix(0, c.UnixNano).Before(begun))
	assert.Equal(t, map[string]int{VerbList: 2, VerbDelete: 1}, c.Requests)
	c = c.Less(before)
	c.UnixNano = 0
	assert.Equal(t, Counts{Reconciles: 4, Idle: 3, Errors: 2, Refused: 1, Requests: map[string]int{VerbList: 1, VerbDelete: 1}}, c)
	assert.Equal(t, 2, c.Total())
	assert.Equal(t, map[string]int{VerbList: 1}, before.Requests, "it stays as it was")
}
