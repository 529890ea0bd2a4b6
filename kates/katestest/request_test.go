package katestest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parsed(t testing.TB, method, target string) Request {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	return requestOf(&http.Request{Method: method, URL: u})
}

func TestARequestIsReadAsTheAPIServerReadsIt(t *testing.T) {
	// The values are: verb group version resource subresource namespace name.
	for target, want := range map[string]string{
		"GET /api/v1/configmaps":                                                   "list||v1|configmaps|||",
		"GET /api/v1/configmaps?watch=true":                                        "watch||v1|configmaps|||",
		"GET /api/v1/configmaps?watch=1":                                           "watch||v1|configmaps|||",
		"GET /api/v1/configmaps?watch":                                             "watch||v1|configmaps|||",
		"GET /api/v1/configmaps?watch=false":                                       "list||v1|configmaps|||",
		"GET /api/v1/watch/namespaces/a/configmaps":                                "watch||v1|configmaps||a|",
		"GET /api/v1/watch/namespaces/a/configmaps/x":                              "watch||v1|configmaps||a|x",
		"GET /api/v1/namespaces/a/configmaps":                                      "list||v1|configmaps||a|",
		"GET /api/v1/namespaces/a/configmaps/x":                                    "get||v1|configmaps||a|x",
		"HEAD /api/v1/namespaces/a/configmaps/x":                                   "get||v1|configmaps||a|x",
		"GET /api/v1/namespaces/a/configmaps?fieldSelector=metadata.name=x":        "list||v1|configmaps||a|x",
		"GET /api/v1/configmaps?watch=true&fieldSelector=a=b,metadata.name%3D%3Dx": "watch||v1|configmaps|||x",
		"POST /api/v1/namespaces/a/configmaps":                                     "create||v1|configmaps||a|",
		"PUT /api/v1/namespaces/a/pods/x/status":                                   "update||v1|pods|status|a|x",
		"PATCH /apis/apps/v1/namespaces/a/deployments/x":                           "patch|apps|v1|deployments||a|x",
		"DELETE /apis/apps/v1/namespaces/a/deployments/x":                          "delete|apps|v1|deployments||a|x",
		"DELETE /apis/apps/v1/namespaces/a/deployments":                            "deletecollection|apps|v1|deployments||a|",
		"GET /api/v1/namespaces":                                                   "list||v1|namespaces|||",
		"GET /api/v1/namespaces/a":                                                 "get||v1|namespaces||a|a",
		"PUT /api/v1/namespaces/a/finalize":                                        "update||v1|namespaces|finalize|a|a",
		"POST /api/v1/namespaces/a/pods/x/eviction":                                "create||v1|pods|eviction|a|x",
		"GET /api/v1/namespaces/a/services/x/proxy/api/v1":                         "get||v1|services|proxy|a|x",
		"GET /k8s/clusters/c-1/api/v1/nodes":                                       "list||v1|nodes|||",
		"GET /apis/apps/v1":                                                        "get||||||",
		"GET /apis":                                                                "get||||||",
		"GET /api/v1/":                                                             "get||||||",
		"POST /readyz":                                                             "post||||||",
	} {
		method, rest, _ := strings.Cut(target, " ")
		r := parsed(t, method, rest)
		got := strings.Join([]string{r.Verb, r.Group, r.Version, r.Resource, r.Subresource, r.Namespace, r.Name}, "|")
		assert.Equal(t, want, got, target)
	}
}

func TestAMatchMeansWhatRBACMeans(t *testing.T) {
	pods, log := parsed(t, "GET", "/api/v1/namespaces/a/pods/x"), parsed(t, "GET", "/api/v1/namespaces/a/pods/x/log")
	deployments, discovery := parsed(t, "GET", "/apis/apps/v1/deployments"), parsed(t, "GET", "/apis")
	for _, c := range []struct {
		match Match
		means []Request
	}{
		{Match{}, []Request{pods, log, deployments, discovery}},
		{Match{Resource: "*"}, []Request{pods, deployments}},
		{Match{Resource: "pods"}, []Request{pods}},
		{Match{Resource: "pods/log"}, []Request{log}},
		{Match{Resource: "*/*"}, []Request{log}},
		{Match{Resource: "deployments"}, []Request{deployments}},
		{Match{Resource: "deployments.apps"}, []Request{deployments}},
		{Match{Resource: "deployments.extensions"}, nil},
		{Match{Verb: "list"}, []Request{deployments}},
		{Match{Namespace: "a", Name: "x", Resource: "pods"}, []Request{pods}},
		{Match{Namespace: "b"}, nil},
		{Match{Name: "y"}, nil},
		{Match{Where: func(r Request) bool { return r.Path == "/apis" }}, []Request{discovery}},
	} {
		var means []Request
		for _, r := range []Request{pods, log, deployments, discovery} {
			if c.match.matches(r) {
				means = append(means, r)
			}
		}
		assert.Equal(t, c.means, means, "%+v", c.match)
	}
}

func FuzzARequestOfAnyPathIsRead(f *testing.F) {
	for _, seed := range []string{"/api", "/apis/g/v1/watch", "/api/v1/namespaces", "//api//v1//x/", "/apis/a/b/c/d/e/f/g"} {
		f.Add("GET", seed, "watch=true")
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		r := requestOf(&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}})
		if r.Resource == "" && (r.Name != "" || r.Subresource != "" || r.Version != "") {
			t.Fatalf("%+v", r)
		}
	})
}
