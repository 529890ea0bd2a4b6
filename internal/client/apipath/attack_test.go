package apipath

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// bases are paths of servers, as gateways and proxies have them.
var bases = []string{"", "/cluster", "/k8s/clusters/c-xyz", "/api", "/apis", "/apis/x", "/api/v1", "/apis/apps/v1", "/openapi", "/openapi/v3", "/api/v1/namespaces/x/services/y/proxy"}

var paths = map[string]Path{
	"/api":                                 {Sort: General},
	"/apis":                                {Sort: General},
	"/api/v1":                              {Sort: General, Version: "v1"},
	"/apis/apps":                           {Sort: General},
	"/apis/apps/v1":                        {Sort: General, Group: "apps", Version: "v1"},
	"/version":                             {Sort: General},
	"/openapi/v2":                          {Sort: General},
	"/openapi/v3":                          {Sort: General},
	"/openapi/v3/api/v1":                   {Sort: General},
	"/openapi/v3/apis/apps/v1":             {Sort: General},
	"/readyz/etcd":                         {Sort: General},
	"/api/v1/secrets":                      {Sort: Objects, Version: "v1", Resource: "secrets"},
	"/api/v1/secrets/":                     {Sort: Objects, Version: "v1", Resource: "secrets"},
	"/api/v1/namespaces":                   {Sort: Objects, Version: "v1", Resource: "namespaces"},
	"/api/v1/namespaces/n":                 {Sort: Objects, Version: "v1", Resource: "namespaces", Namespace: "n", Name: "n"},
	"/api/v1/namespaces/n/finalize":        {Sort: Objects, Version: "v1", Resource: "namespaces", Namespace: "n", Name: "n", Subresource: "finalize"},
	"/api/v1/namespaces/n/secrets":         {Sort: Objects, Version: "v1", Resource: "secrets", Namespace: "n"},
	"/api/v1/namespaces/n/secrets/s":       {Sort: Objects, Version: "v1", Resource: "secrets", Namespace: "n", Name: "s"},
	"/api/v1/namespaces/api/secrets/v1":    {Sort: Objects, Version: "v1", Resource: "secrets", Namespace: "api", Name: "v1"},
	"/api/v1/namespaces/n/pods/p/log":      {Sort: Objects, Version: "v1", Resource: "pods", Namespace: "n", Name: "p", Subresource: "log"},
	"/api/v1/watch/secrets":                {Sort: OldWatch, Version: "v1", Resource: "secrets"},
	"/api/v1/nodes/n/proxy/api/v1/secrets": {Sort: Objects, Version: "v1", Resource: "nodes", Name: "n", Subresource: "proxy", Below: "api/v1/secrets"},
	"/apis/apps/v1/deployments":            {Sort: Objects, Group: "apps", Version: "v1", Resource: "deployments"},
	"/apis/x.io/old/namespaces/n/ys/y":     {Sort: Objects, Group: "x.io", Version: "old", Resource: "ys", Namespace: "n", Name: "y"},
	"/openapi/v3/api/v1/secrets":           {},
	"/openapi/v4":                          {},
	"/openapi/x/api/v1/secrets":            {},
	"/openapi":                             {},
	"/metrics":                             {},
	"/api/v1//secrets":                     {},
	"/api/v1/../v1/secrets":                {},
	"/api/./v1/secrets":                    {},
}

func TestTheBaseOfAServerIsNoPartOfWhatIsAskedFor(t *testing.T) {
	for _, base := range bases {
		assert.Equal(t, base, Base(&rest.Config{Host: "https://gateway.example" + base}))
		assert.Equal(t, base, Base(&rest.Config{Host: "https://gateway.example" + base + "/"}))
		for path, want := range paths {
			assert.Equal(t, want, Parse(base+path, base), "%s under %q", path, base)
		}
		for _, elsewhere := range []string{"/elsewhere/api/v1/secrets", base + "s/api/v1/secrets", base + "x"} {
			if base != "" {
				assert.Equal(t, Path{}, Parse(elsewhere, base), "%s is not below %q", elsewhere, base)
			}
		}
	}
	assert.Empty(t, Base(nil))
	assert.Empty(t, Base(&rest.Config{Host: ":"}))
}

// TestAPathIsFoundBelowABaseThatNobodyKnows: but for one that looks like objects itself.
func TestAPathIsFoundBelowABaseThatNobodyKnows(t *testing.T) {
	for _, base := range []string{"", "/cluster", "/k8s/clusters/c-xyz", "/api", "/apis", "/apis/x", "/openapi"} {
		for path, want := range paths {
			if want.Sort >= Objects && ordinary(want.Version) {
				assert.Equal(t, want, Find(base+path), "%s under %q", path, base)
			}
		}
	}
	assert.Equal(t, paths["/apis/x.io/old/namespaces/n/ys/y"], Find("/apis/x.io/old/namespaces/n/ys/y"))
	assert.Equal(t, Objects, Find("//api//v1//pods").Sort)
}

func TestAFlagIsReadAsTheServerReadsIt(t *testing.T) {
	list := paths["/api/v1/secrets"]
	for query, want := range map[string]string{
		"": "list", "watch=true": "watch", "watch=1": "watch", "watch": "watch", "watch=yes": "watch", "watch=False": "list", "watch=0": "list", "watch=false": "list",
	} {
		values, err := url.ParseQuery(query)
		assert.NoError(t, err)
		assert.Equal(t, want, list.Verb("GET", values), query)
	}
	assert.Equal(t, "watch", paths["/api/v1/watch/secrets"].Verb("GET", nil))
	assert.Equal(t, "deletecollection", list.Verb("DELETE", nil))
	assert.Equal(t, "post", Path{}.Verb("POST", nil))
}

func FuzzAPathMeansTheSameBelowAnyBase(f *testing.F) {
	for path := range paths {
		f.Add(path, "/k8s/clusters/c", "watch=true")
		f.Add(path, "/api", "")
	}
	f.Fuzz(func(t *testing.T, path, base, query string) {
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		base = strings.TrimRight(base, "/")
		plain := Parse(path, "")
		if got := Parse(base+path, base); got != plain {
			t.Fatalf("%q below %q is %+v, and alone %+v", path, base, got, plain)
		}
		if plain.Sort < Objects && plain.Resource != "" || plain.Sort >= Objects && (plain.Resource == "" || plain.Version == "") {
			t.Fatalf("%q: %+v", path, plain)
		}
		_ = Find(base + path)
		values, _ := url.ParseQuery(query)
		if verb := plain.Verb("GET", values); plain.Sort == Objects && (verb == "get") != (plain.Name != "") {
			t.Fatalf("%q: %s", path, verb)
		}
	})
}

// TestABaseIsThatOfTheRequestsThatClientGoSends: client-go cleans the path of the server's URL.
func TestABaseIsThatOfTheRequestsThatClientGoSends(t *testing.T) {
	for _, host := range []string{"", "/", "//", "//x", "/x//y/", "/x/.", "/./", "/x/../y", "/k8s/clusters/c-xyz"} {
		config := &rest.Config{Host: "https://gateway.example" + host}
		client, err := rest.UnversionedRESTClientFor(&rest.Config{Host: config.Host, ContentConfig: rest.ContentConfig{
			GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: serializer.WithoutConversionCodecFactory{},
		}})
		require.NoError(t, err)
		asked := client.Get().AbsPath("/api/v1/pods").URL().Path
		assert.Equal(t, Path{Sort: Objects, Version: "v1", Resource: "pods"}, Parse(asked, Base(config)), "%s: %s", host, asked)
	}
}
