package translate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// rulesOf are the rules of the only Route of a snapshot, for its listener at port 80.
func rulesOf(t *testing.T, o Options, rules ...string) (*Desired, []nginx.Location) {
	t.Helper()
	d := Translate(snapshotOf(t, cluster, gatewayOf("edge", `{name: http, port: 80, protocol: HTTP}`), routeOf("shop", toEdge, rules...)), o)
	require.Len(t, d.Config.Servers, 1)
	return d, d.Config.Servers[0].Locations
}

func TestMatchesOfRequests(t *testing.T) {
	header := func(name, value string, regex bool) nginx.Condition {
		return nginx.Condition{Kind: nginx.Header, Name: name, Value: value, Regex: regex}
	}
	for _, test := range []struct {
		name, matches string
		match         nginx.PathMatch
		path          string
		conditions    []nginx.Condition
	}{
		{name: "all", matches: `[]`, match: nginx.Prefix, path: "/"},
		{name: "no path", matches: `[{path: {}}]`, match: nginx.Prefix, path: "/"},
		{name: "a prefix", matches: `[{path: {value: /a/}}]`, match: nginx.Prefix, path: "/a"},
		{name: "exactly", matches: `[{path: {type: Exact, value: /a/}}]`, match: nginx.Exact, path: "/a/"},
		{name: "a regular expression", matches: `[{path: {type: RegularExpression, value: "/a[0-9]+"}}]`, match: nginx.Regex, path: "/a[0-9]+"},
		{name: "method", matches: `[{method: PUT}]`, match: nginx.Prefix, path: "/", conditions: []nginx.Condition{{Kind: nginx.Method, Value: "PUT"}}},
		{
			name: "headers, the first one of each name", matches: `[{headers: [{name: X-A, value: a}, {name: x-a, value: b}, {name: B, type: RegularExpression, value: "b+"}]}]`,
			match: nginx.Prefix, path: "/", conditions: []nginx.Condition{header("X-A", "a", false), header("B", "b+", true)},
		},
		{
			name: "parameters, whose names have cases", matches: `[{queryParams: [{name: a, value: b}, {name: A, value: c}, {name: a, value: d}]}]`, match: nginx.Prefix, path: "/",
			conditions: []nginx.Condition{{Kind: nginx.Query, Name: "a", Value: "b"}, {Kind: nginx.Query, Name: "A", Value: "c"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, all := rulesOf(t, Options{}, `matches: `+test.matches+`, `+toWeb)
			require.Len(t, all, 1)
			assert.Equal(t, test.match, all[0].Match)
			assert.Equal(t, test.path, all[0].Path)
			assert.Equal(t, test.conditions, all[0].Rules[0].Conditions)
			assert.Empty(t, problemsOf(d, "HTTPRoute", "prod/shop"))
		})
	}
}

func TestFiltersAndTimeoutsOfARule(t *testing.T) {
	for _, test := range []struct {
		name, rule string
		want       nginx.Rule
	}{
		{
			name: "headers",
			rule: `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: A, value: "1"}], add: [{name: B, value: "2"}], remove: [C]}}, {type: ResponseHeaderModifier, responseHeaderModifier: {remove: [D]}}], ` + toWeb,
			want: nginx.Rule{
				RequestHeaders:  nginx.HeaderChanges{Set: []nginx.HeaderValue{{Name: "A", Value: "1"}}, Add: []nginx.HeaderValue{{Name: "B", Value: "2"}}, Remove: []string{"C"}},
				ResponseHeaders: nginx.HeaderChanges{Remove: []string{"D"}},
			},
		},
		{
			name: "headers of a backend",
			rule: `backendRefs: [{name: web, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [C]}}]}]`,
			want: nginx.Rule{Backends: []nginx.Backend{{Upstream: "prod.web.80", Weight: 1, RequestHeaders: nginx.HeaderChanges{Remove: []string{"C"}}}}},
		},
		{name: "redirect of the host: the port is the listener's", rule: `filters: [{type: RequestRedirect, requestRedirect: {hostname: b.example.com}}]`, want: nginx.Rule{Redirect: &nginx.Redirect{Status: 302, Scheme: "http", Host: "b.example.com"}}},
		{name: "redirect of the scheme: the port is its own", rule: `filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]`, want: nginx.Rule{Redirect: &nginx.Redirect{Status: 301, Scheme: "https"}}},
		{name: "redirect of the port", rule: `filters: [{type: RequestRedirect, requestRedirect: {port: 8443}}]`, want: nginx.Rule{Redirect: &nginx.Redirect{Status: 302, Scheme: "http", Port: 8443}}},
		{name: "redirect to a port that goes without saying", rule: `filters: [{type: RequestRedirect, requestRedirect: {port: 443, scheme: https}}]`, want: nginx.Rule{Redirect: &nginx.Redirect{Status: 302, Scheme: "https"}}},
		{name: "redirect of the path", rule: `filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}}]`, want: nginx.Rule{Redirect: &nginx.Redirect{Status: 302, Scheme: "http", Path: &nginx.PathChange{To: "/b"}}}},
		{name: "rewrite", rule: `filters: [{type: URLRewrite, urlRewrite: {hostname: b.example.com, path: {type: ReplaceFullPath, replaceFullPath: /b}}}], ` + toWeb, want: nginx.Rule{Rewrite: &nginx.Rewrite{Host: "b.example.com", Path: &nginx.PathChange{Full: true, To: "/b"}}}},
		{name: "timeout", rule: `timeouts: {request: 2s}, ` + toWeb, want: nginx.Rule{Timeout: 2 * time.Second}},
		{name: "the shorter timeout", rule: `timeouts: {request: 2s, backendRequest: 500ms}, ` + toWeb, want: nginx.Rule{Timeout: 500 * time.Millisecond}},
		{name: "the shorter timeout, whichever it is", rule: `timeouts: {request: 1s, backendRequest: 0s}, ` + toWeb, want: nginx.Rule{Timeout: time.Second}},
		{name: "no timeout", rule: `timeouts: {request: 0s}, ` + toWeb, want: nginx.Rule{Timeout: 365 * 24 * time.Hour}},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The port that nginx listens at has nothing to do with the one of a redirect.
			d, all := rulesOf(t, Options{Port: func(p int) int { return p + 8000 }}, test.rule)
			want := test.want
			if want.Redirect == nil && want.Backends == nil {
				want.Backends = []nginx.Backend{{Upstream: "prod.web.80", Weight: 1}}
			}
			got := all[0].Rules[0]
			want.Source, want.MatchedPrefix = got.Source, "/"
			assert.Equal(t, want, got)
			assert.Empty(t, problemsOf(d, "HTTPRoute", "prod/shop"))
		})
	}
}

func TestARedirectAtAListenerOfTLSStaysThere(t *testing.T) {
	chain, key := newAuthority(t).issue(t, "shop.example.com")
	snap := snapshotOf(t, cluster, gatewayOf("edge", `{name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: shop}]}}`),
		routeOf("shop", toEdge, `filters: [{type: RequestRedirect, requestRedirect: {hostname: b.example.com}}]`))
	put(t, snap, secret("shop", chain, key))
	server := Translate(snap, Options{}).Config.Servers[0]
	assert.Equal(t, &nginx.Redirect{Status: 302, Scheme: "https", Host: "b.example.com", Port: 8443}, server.Locations[0].Rules[0].Redirect)
	assert.NotEmpty(t, server.Certificate)
	assert.Equal(t, "*", server.Listener)
}

func TestARuleThatCannotBeServedAsItIsWrittenAnswers500(t *testing.T) {
	for name, test := range map[string]struct{ rule, reason string }{
		"a filter that is not served":      {`filters: [{type: RequestMirror, requestMirror: {backendRef: {name: web, port: 80}}}], ` + toWeb, "UnsupportedValue"},
		"a filter of others":               {`filters: [{type: ExtensionRef, extensionRef: {group: x, kind: Filter, name: z}}], ` + toWeb, "UnsupportedValue"},
		"a filter without settings":        {`filters: [{type: RequestRedirect}]`, "UnsupportedValue"},
		"a filter twice":                   {`filters: [{type: URLRewrite, urlRewrite: {}}, {type: URLRewrite, urlRewrite: {}}], ` + toWeb, "UnsupportedValue"},
		"filters that exclude one another": {`filters: [{type: URLRewrite, urlRewrite: {}}, {type: RequestRedirect, requestRedirect: {}}], ` + toWeb, "IncompatibleFilters"},
		"a filter of a backend":            {`backendRefs: [{name: web, port: 80, filters: [{type: URLRewrite, urlRewrite: {}}]}]`, "UnsupportedValue"},
		"a header with two lines":          {`filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: A, value: "1\n2"}]}}], ` + toWeb, "UnsupportedValue"},
		"a header without a name":          {`filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {remove: ["a b"]}}], ` + toWeb, "UnsupportedValue"},
		"a status that is no redirect":     {`filters: [{type: RequestRedirect, requestRedirect: {statusCode: 200}}]`, "UnsupportedValue"},
		"a scheme":                         {`filters: [{type: RequestRedirect, requestRedirect: {scheme: ftp}}]`, "UnsupportedValue"},
		"a hostname":                       {`filters: [{type: URLRewrite, urlRewrite: {hostname: "a b"}}], ` + toWeb, "UnsupportedValue"},
		"a change of the path":             {`filters: [{type: URLRewrite, urlRewrite: {path: {type: Other}}}], ` + toWeb, "UnsupportedValue"},
		"a prefix where none is matched":   {`matches: [{path: {type: RegularExpression, value: /}}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}], ` + toWeb, "UnsupportedValue"},
		"a timeout":                        {`timeouts: {request: soon}, ` + toWeb, "UnsupportedValue"},
		"one of its matches":               {`matches: [{path: {type: Other}}, {}], ` + toWeb, "UnsupportedValue"},
		"the type of a header's match":     {`matches: [{headers: [{name: a, value: b, type: Other}]}, {}], ` + toWeb, "UnsupportedValue"},
		"the name of a header":             {`matches: [{headers: [{name: "a b", value: b}]}, {}], ` + toWeb, "UnsupportedValue"},
		"a method":                         {`matches: [{method: "a b"}, {}], ` + toWeb, "UnsupportedValue"},
		"a path's regular expression":      {`matches: [{path: {type: RegularExpression, value: "/("}}, {}], ` + toWeb, "UnsupportedValue"},
		"a header's regular expression":    {`matches: [{headers: [{name: a, value: "(?=b)", type: RegularExpression}]}, {}], ` + toWeb, "UnsupportedValue"},
		"a path that is none":              {`matches: [{path: {value: a}}, {}], ` + toWeb, "UnsupportedValue"},
	} {
		t.Run(name, func(t *testing.T) {
			d, all := rulesOf(t, Options{}, test.rule, `matches: [{path: {value: /good}}], `+toWeb)
			require.Len(t, parents(t, d, "prod/shop"), 1)
			assert.Equal(t, "Accepted True Accepted, ResolvedRefs True ResolvedRefs, PartiallyInvalid True UnsupportedValue", parents(t, d, "prod/shop")[0])
			assert.Equal(t, 500, all[len(all)-1].Rules[0].Status)
			assert.Equal(t, "/good", all[0].Rules[0].MatchedPrefix)
			assert.Equal(t, "prod.web.80", all[0].Rules[0].Backends[0].Upstream)
			require.Len(t, problemsOf(d, "HTTPRoute", "prod/shop"), 1)
			assert.Contains(t, problemsOf(d, "HTTPRoute", "prod/shop")[0], test.reason+": rule 0: ")

			d, all = rulesOf(t, Options{}, test.rule)
			assert.Equal(t, []string{"Accepted False " + test.reason + ", ResolvedRefs True ResolvedRefs"}, parents(t, d, "prod/shop"))
			assert.Equal(t, 500, all[0].Rules[0].Status, "no other rule may have its requests")
			assert.Zero(t, statusOf[*gatewayv1.GatewayStatus](t, d, "Gateway", "prod/edge").Listeners[0].AttachedRoutes)
		})
	}
}
