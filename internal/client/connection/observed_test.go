package connection

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestARequestIsReadFromItsPath(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         Asked
	}{
		{"GET", "/api/v1/pods", Asked{Verb: "list", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=true", Asked{Verb: "watch", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=1", Asked{Verb: "watch", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=false", Asked{Verb: "list", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/namespaces", Asked{Verb: "list", Version: "v1", Resource: "namespaces"}},
		{"GET", "/api/v1/namespaces/a", Asked{Verb: "get", Version: "v1", Resource: "namespaces", Namespace: "a", Name: "a"}},
		{"PUT", "/api/v1/namespaces/a/finalize", Asked{Verb: "update", Version: "v1", Resource: "namespaces", Subresource: "finalize", Namespace: "a", Name: "a"}},
		{"PATCH", "/api/v1/namespaces/a/status", Asked{Verb: "patch", Version: "v1", Resource: "namespaces", Subresource: "status", Namespace: "a", Name: "a"}},
		{"POST", "/api/v1/namespaces/a/pods", Asked{Verb: "create", Version: "v1", Resource: "pods", Namespace: "a"}},
		{"POST", "/api/v1/namespaces/a/pods/p/eviction", Asked{Verb: "create", Version: "v1", Resource: "pods", Subresource: "eviction", Namespace: "a", Name: "p"}},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments/d", Asked{Verb: "delete", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a", Name: "d"}},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments", Asked{Verb: "deletecollection", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a"}},
		{"GET", "/version", Asked{Verb: "get"}},
		{"GET", "/apis/apps/v1", Asked{Verb: "get"}},
		{"GET", "/api/v1", Asked{Verb: "get"}},
		{"GET", "/", Asked{Verb: "get"}},
		{"OPTIONS", "/api/v1/pods", Asked{Verb: "options", Version: "v1", Resource: "pods"}},
	} {
		for _, base := range []string{"", "/k8s/clusters/c-1"} {
			u, err := url.Parse("https://server" + base + c.path)
			require.NoError(t, err)
			require.Equal(t, c.want, AskedBy(c.method, u, base), "%s %s", c.method, u)
		}
	}
}

func TestAnObserverIsToldOfTheAnswerAndGivesTheContext(t *testing.T) {
	type key struct{}
	var asked []Asked
	var answers []Answered
	wrap := Observed(&rest.Config{Host: "https://server/base"}, func(ctx context.Context, a Asked) (context.Context, func(Answered)) {
		asked = append(asked, a)
		return context.WithValue(ctx, key{}, true), func(a Answered) { answers = append(answers, a) }
	})
	lost := errors.New("lost")
	answer := &http.Response{StatusCode: http.StatusConflict}
	next := wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
		require.Equal(t, true, r.Context().Value(key{}))
		if r.Method == http.MethodGet {
			return nil, lost
		}
		return answer, nil
	}))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://server/base/api/v1/nodes", nil)
		require.NoError(t, err)
		_, _ = next.RoundTrip(r)
	}
	require.Equal(t, []Asked{{Verb: "list", Version: "v1", Resource: "nodes"}, {Verb: "create", Version: "v1", Resource: "nodes"}}, asked)
	require.Len(t, answers, 2)
	require.ErrorIs(t, answers[0].Err, lost)
	require.Zero(t, answers[0].Code)
	require.NoError(t, answers[1].Err)
	require.Equal(t, http.StatusConflict, answers[1].Code)
}
