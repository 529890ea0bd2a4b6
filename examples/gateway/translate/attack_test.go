package translate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// In these tests namespace prod is attacked by namespace evil.

// of is a manifest of namespace prod, moved to another namespace.
func of(namespace, manifest string) string {
	return strings.ReplaceAll(manifest, "namespace: prod", "namespace: "+namespace)
}

// attacked are the classes, a Service in each of the namespaces, and a Gateway for all of them.
var attacked = ourClass + "\n---" + of("evil", strings.SplitN(ourClass, "\n---", 2)[1]) + "\n---" + cluster +
	"\n---" + of("shared", gatewayOf("edge", `{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}`))

func TestTextsOfAPathThatMeanTheSame(t *testing.T) {
	for _, test := range []struct{ text, path, wrong string }{
		{text: "/", path: "/"}, {text: "////", path: "/"}, {text: "/.", path: "/"}, {text: "/a/..", path: "/"}, {text: "/a/../", path: "/"}, {text: "/%2F%2f", path: "/"},
		{text: "/a///", path: "/a/"}, {text: "//a/./", path: "/a/"}, {text: "/a/.", path: "/a/"}, {text: "/b/../a/", path: "/a/"}, {text: "/a/b/%2e%2E", path: "/a/"},
		{text: "/%61", path: "/a"}, {text: "/a%2Fb", path: "/a/b"}, {text: "/a%20b", path: "/a b"}, {text: "/a b", path: "/a b"}, {text: "/a%2520b", path: "/a%20b"},
		{text: "/a%3Fb", path: "/a?b"}, {text: "/a?b", path: "/a?b"}, {text: "/a%23", path: "/a#"}, {text: "/...", path: "/..."}, {text: "/.%2e.", path: "/..."},
		{text: "/%c3%a9", path: "/é"}, {text: "/a+b", path: "/a+b"}, {text: "/A", path: "/A"}, {text: `/a\b`, path: `/a\b`},
		{text: "", wrong: "it does not begin with /"}, {text: "a", wrong: "it does not begin with /"}, {text: "%2fa", wrong: "it does not begin with /"},
		{text: "/..", wrong: "its .. leads out of the root"}, {text: "/a/../../b", wrong: "its .. leads out of the root"}, {text: "/%2e%2e/a", wrong: "its .. leads out of the root"},
		{text: "/%", wrong: "a % has no two hexadecimal digits"}, {text: "/a%2", wrong: "a % has no two hexadecimal digits"}, {text: "/%zz", wrong: "%zz is no percent-encoded byte"},
		{text: "/%+1", wrong: "%+1 is no percent-encoded byte"}, {text: "/%00", wrong: "it has a control character"}, {text: "/a%0ab", wrong: "it has a control character"},
		{text: "/a\nb", wrong: "it has a control character"}, {text: "/a%7f", wrong: "it has a control character"}, {text: "/%ff", wrong: "it is no text in UTF-8"},
	} {
		got, err := normalPath(test.text)
		if test.wrong != "" {
			assert.EqualError(t, err, test.wrong, test.text)
			continue
		}
		assert.NoError(t, err, test.text)
		assert.Equal(t, test.path, got, test.text)
		again, err := pathText(nginx.Prefix, test.text)
		assert.NoError(t, err)
		assert.Equal(t, prefixText(test.path), again)
	}
}

// whatNginxReads starts nginx, and returns what it makes of the path of a request: empty if it
// refuses the request.
func whatNginxReads(t *testing.T) func(path string) string {
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
worker_processes 1; pid %[1]s/pid; error_log %[1]s/log crit; user root;
events {}
http { access_log off; keepalive_requests 1000000; default_type text/plain;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	server { listen unix:%[2]s; return 200 $uri; } }
`, dir, socket), 0o600))
	run := func(args ...string) {
		out, err := exec.Command("nginx", append([]string{"-e", dir + "/log", "-c", file}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run() // it returns when nginx listens
	t.Cleanup(func() { run("-s", "stop") })
	var connection net.Conn
	var answers *bufio.Reader
	t.Cleanup(func() {
		if connection != nil {
			connection.Close()
		}
	})
	return func(path string) string {
		if connection == nil {
			connection, err = net.Dial("unix", socket)
			require.NoError(t, err)
			answers = bufio.NewReader(connection)
		}
		_, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		require.NoError(t, err)
		answer, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		if answer.StatusCode != http.StatusOK {
			require.Equal(t, http.StatusBadRequest, answer.StatusCode)
			connection.Close()
			connection = nil
			return ""
		}
		return string(body)
	}
}

func TestPathsAreNormalisedAsNginxNormalisesThem(t *testing.T) {
	reads := whatNginxReads(t)
	part := rapid.SampledFrom([]string{
		"/", "/", "//", ".", "..", "/./", "/../", "a", "b", "A", "%61", "%2f", "%2F", "%2e", "%2E", "%25", "%3f", "%23", "%20", "%2B", "+", "%2", "%", "%g0", ";", "é", "%c3%a9", "~", "*", "\\", "\"", "$", "{",
	})
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			text := "/" + strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), "")
			got, err := normalPath(text)
			if want := reads(text); want == "" || !utf8.ValidString(want) {
				assert.Error(t, err, "nginx refuses %q, and normalPath returns %q", text, got)
			} else if assert.NoError(t, err, text) {
				assert.Equal(t, want, got, text)
			}
		}
	})
}

// theft is what namespace evil writes to get requests of namespace prod.
type theft struct {
	name       string
	old, young string // {path, pathType} of an Ingress, or a match of an HTTPRoute
	ask        string
}

const useRegex = `use-regex: "true"`

var thefts = []theft{
	{"the same text", "/ Prefix", "/ Prefix", "/x"},
	{"slashes", "/ Prefix", "//// ImplementationSpecific", "/x"},
	{"slashes behind", "/foo Prefix", "/foo/// ImplementationSpecific", "/foo/x"},
	{"slashes before", "/foo Prefix", "//foo Prefix", "/foo/x"},
	{"a dot", "/foo Prefix", "/./foo/. Prefix", "/foo/x"},
	{"two dots", "/foo Prefix", "/x/../foo Prefix", "/foo"},
	{"an encoded letter", "/foo Prefix", "/%66oo Prefix", "/foo"},
	{"an encoded slash", "/foo/bar Prefix", "/foo%2Fbar Prefix", "/foo/bar"},
	{"a letter, where the older path is encoded", "/%66oo Prefix", "/foo Prefix", "/foo"},
	{"an exact path", "/foo Prefix", "/foo Exact", "/foo"},
	{"an exact path with a slash", "/foo Prefix", "/foo/ Exact", "/foo/"},
	{"the root as an exact path", "/ Prefix", "/ Exact", "/"},
	{"an exact path of another text", "/foo Exact", "/x/../%66oo Exact", "/foo"},
	{"a regular expression for everything", "/ Prefix", "/.* ImplementationSpecific", "/login"},
	{"a regular expression for a prefix", "/login Prefix", "/l.* ImplementationSpecific", "/login/x"},
	{"a regular expression that is the prefix", "/login Prefix", "/login ImplementationSpecific", "/login"},
	{"a regular expression above a prefix", "/b/c Prefix", "/b.* regex", "/b/c/x"},
	{"a longer regular expression", "/a.* regex", "/(a.*|bbbbbbbbbbbbbbbbbb) regex", "/ab"},
	{"the same regular expression", "/a.* regex", "/a.* regex", "/ab"},
	{"an exact path for a regular expression", "/lo[g]in regex", "/login Exact", "/login"},
	{"a prefix for a regular expression", "/lo[g]in regex", "/login Prefix", "/login/x"},
	{"an HTTPRoute", "/ Prefix", "HTTPRoute {path: {value: //}}", "/x"},
	{"an HTTPRoute with a method", "/ Prefix", "HTTPRoute {path: {value: /}, method: GET}", "/x"},
	{"an HTTPRoute with a header", "/foo Prefix", "HTTPRoute {path: {value: /foo/}, headers: [{name: host, type: RegularExpression, value: .*}]}", "/foo"},
	{"an HTTPRoute for a regular expression", "/foo Prefix", "HTTPRoute {path: {type: RegularExpression, value: /.*}}", "/foo"},
	{"an HTTPRoute for an exact path", "/foo Prefix", "HTTPRoute {path: {type: Exact, value: /foo}}", "/foo"},
	{"an Ingress, from an HTTPRoute", "HTTPRoute {path: {value: /foo}}", "/foo/ Prefix", "/foo"},
	{"an exact path, from an HTTPRoute", "HTTPRoute {path: {value: /foo}}", "/foo Exact", "/foo"},
	{"a regular expression, from an HTTPRoute", "HTTPRoute {path: {value: /foo}}", "/.* regex", "/foo"},
	{"a header, from an HTTPRoute", "HTTPRoute {path: {value: /foo}}", "HTTPRoute {path: {value: /foo}, headers: [{name: host, type: RegularExpression, value: .*}]}", "/foo"},
}

// side is what one of the two namespaces writes. An HTTPRoute has a Gateway that both share.
func side(namespace, name, host, what string) string {
	if match, is := strings.CutPrefix(what, "HTTPRoute "); is {
		return of(namespace, routeOf(name, "parentRefs: [{name: edge, namespace: shared}]\n  hostnames: ["+host+"]", "matches: ["+match+"], "+toWeb))
	}
	path, kind, _ := strings.Cut(what, " ")
	var annotations []string
	if kind == "regex" || kind == "ImplementationSpecific" && strings.ContainsAny(path, ".l") {
		kind, annotations = "ImplementationSpecific", []string{useRegex}
	}
	return of(namespace, ingressOf(name, "rules:\n"+rule(host, to(path, kind, "web")), annotations...))
}

// A younger object of another namespace gets no request of a path, however it writes the path, and
// both objects are told. nginx itself is asked.
func TestNoTextTakesAPathOfAnotherNamespace(t *testing.T) {
	manifests := []string{attacked}
	for i, theft := range thefts {
		host := fmt.Sprintf("h%d.test", i)
		manifests = append(manifests, side("prod", fmt.Sprint("old-", i), host, theft.old), side("evil", fmt.Sprint("new-", i), host, theft.young))
	}
	snap := snapshotOf(t, manifests...)
	ask := serve(t, snap)
	d := Translate(snap, Options{})
	for i, theft := range thefts {
		assert.Equal(t, "prod", ask(fmt.Sprintf("h%d.test", i), theft.ask), theft.name)
		for _, object := range []string{fmt.Sprint("prod/old-", i), fmt.Sprint("evil/new-", i)} {
			told := append(problemsOf(d, "Ingress", object), problemsOf(d, "HTTPRoute", object)...)
			assert.Contains(t, strings.Join(told, "\n"), "Conflict: ", "%s: %s", theft.name, object)
		}
	}
}

// serve has nginx serve a snapshot, in which the Service web of each namespace answers with the
// name of its namespace. It returns what asks for a path of a host.
func serve(t *testing.T, snap *Snapshot) (ask func(host, path string) string) {
	ports := map[string]uint16{}
	for _, namespace := range []string{"prod", "evil"} {
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, namespace) }))
		t.Cleanup(backend.Close)
		ports[namespace] = uint16(backend.Listener.Addr().(*net.TCPAddr).Port)
		text := fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-0, namespace: %s, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints: [{addresses: [192.0.2.1]}]
`, namespace, ports[namespace])
		snap.Slices = append(snap.Slices, snapshotOf(t, text).Slices...)
	}
	local := func(string) string { return "127.0.0.1" }
	snap.Slices = snap.Slices[1:] // without that of cluster
	dir, err := os.MkdirTemp("", "gw")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	d := Translate(snap, Options{Port: func(named int) int { return port + named - 80 }, Endpoint: local})
	d.Config.Settings.Workers, d.Config.Settings.Connections = 1, 512
	n, err := nginx.Open(nginx.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, n.Close(context.Background())) })
	out, err := n.Apply(t.Context(), &d.Config)
	require.NoError(t, err)
	require.Empty(t, out.Refused)
	require.True(t, out.Active)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(host, path string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
		require.NoError(t, err)
		request.Host = host
		answer, err := client.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		if answer.StatusCode != http.StatusOK {
			return answer.Status
		}
		return string(body)
	}
}

func TestWhatAnotherNamespaceClaimsBesideAPath(t *testing.T) {
	const host = "shop.test"
	for _, test := range []struct {
		name string
		all  []string // the oldest first
		want []string
	}{
		{
			"a longer path is its own thing", []string{side("prod", "a", host, "/ Prefix"), side("evil", "b", host, "/b Prefix")},
			[]string{"80 shop.test Prefix /b: evil.web.80=100", "80 shop.test Prefix /: prod.web.80=100"},
		},
		{
			"a regular expression leaves older prefixes", []string{side("evil", "b", host, "/b/c Prefix"), side("prod", "a", host, "/b.* regex")},
			[]string{"80 shop.test Prefix /b/c: evil.web.80=100", "80 shop.test Regex /b.*: prod.web.80=100 but [/b/c]"},
		},
		{
			"a regular expression has what begins with something else", []string{side("prod", "a", host, "/a Prefix"), side("evil", "b", host, "/b.* regex")},
			[]string{"80 shop.test Prefix /a: prod.web.80=100", "80 shop.test Regex /b.*: evil.web.80=100"},
		},
		{
			"a prefix that has no requests restricts no regular expression", []string{side("prod", "a", host, "/ Prefix"), side("evil", "b", host, "/ Prefix"), side("prod", "c", host, "/b.* regex")},
			[]string{"80 shop.test Prefix /: prod.web.80=100", "80 shop.test Regex /b.*: prod.web.80=100"},
		},
		{
			"a regular expression takes no exact path from the namespace of an older one", []string{side("prod", "a", host, "/b.* regex"), side("evil", "b", host, "/(a|b).* regex"), side("prod", "c", host, "/b Exact")},
			[]string{"80 shop.test Exact /b: prod.web.80=100", "80 shop.test Regex /b.*: prod.web.80=100", "80 shop.test Regex /(a|b).*: evil.web.80=100"},
		},
		{
			"the older regular expression is tried first", []string{side("prod", "a", host, "/a.* regex"), side("evil", "b", host, "/(a|b).* regex")},
			[]string{"80 shop.test Regex /a.*: prod.web.80=100", "80 shop.test Regex /(a|b).*: evil.web.80=100"},
		},
		{
			"one of the same namespace comes before its prefixes", []string{side("prod", "a", host, "/ Prefix"), side("prod", "b", host, "/b.* regex")},
			[]string{"80 shop.test Prefix /: prod.web.80=100", "80 shop.test Regex /b.*: prod.web.80=100"},
		},
		{
			"an exact path comes before the prefix of its own namespace", []string{side("prod", "a", host, "/a Prefix"), side("evil", "b", host, "/a Exact"), side("prod", "c", host, "/a Exact")},
			[]string{"80 shop.test Exact /a: prod.web.80=100", "80 shop.test Prefix /a: prod.web.80=100"},
		},
		{
			"the older exact path keeps it", []string{side("prod", "a", host, "/a Exact"), side("evil", "b", host, "/a/ Prefix")},
			[]string{"80 shop.test Exact /a: prod.web.80=100", "80 shop.test Prefix /a: evil.web.80=100"},
		},
		{
			"a namespace with the path has it with all of its objects", []string{side("prod", "a", host, "HTTPRoute {path: {value: /a}, method: GET}"), side("evil", "b", host, "/a Prefix"), side("prod", "c", host, "/a Prefix")},
			[]string{"80 shop.test Prefix /a: prod.web.80=1", "80 shop.test Prefix /a: prod.web.80=100"},
		},
		{
			"a narrower host is its own thing", []string{side("prod", "a", "*.test", "/ Prefix"), side("evil", "b", host, "/ Prefix")},
			[]string{"80 *.test Prefix /: prod.web.80=100", "80 shop.test Prefix /: evil.web.80=100"},
		},
		{
			"a default backend is for the root", []string{side("prod", "a", "", "/ Prefix"), of("evil", ingressOf("b", "defaultBackend: {service: {name: web, port: {number: 80}}}"))},
			[]string{"80 * Prefix /: prod.web.80=100"},
		},
		{
			"hosts that are written in another way are none", []string{
				side("prod", "a", host, "/ Prefix"), side("evil", "b", "SHOP.test", "/ Prefix"), side("evil", "c", "shop.test.", "/ Prefix"), side("evil", "d", "shop.test:80", "/ Prefix"),
				side("evil", "e", "Shop.test", "HTTPRoute {path: {value: /}, method: GET}"), side("evil", "f", "'shop.test.'", "HTTPRoute {path: {value: /}, method: GET}"),
			},
			[]string{"80 shop.test Prefix /: prod.web.80=100"},
		},
		{
			"too many prefixes of others leave nothing of a regular expression", []string{
				side("evil", "b", host, "/"+strings.Repeat("b", mostExcept)+" Prefix"), side("prod", "a", host, "/.* regex"),
			},
			[]string{"80 shop.test Prefix /" + strings.Repeat("b", mostExcept) + ": evil.web.80=100"},
		},
	} {
		d := Translate(snapshotOf(t, append([]string{attacked}, test.all...)...), Options{})
		assert.Equal(t, test.want, told(d.Config), test.name)
	}
}
