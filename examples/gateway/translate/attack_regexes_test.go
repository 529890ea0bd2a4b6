package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests attack the time that nginx has for others.

// regexPaths are the paths of an Ingress.
func regexPaths(n int, prefix string) string {
	var all []string
	for i := range n {
		all = append(all, to(fmt.Sprintf("/%s-%02d.*x", prefix, i), "ImplementationSpecific", "web"))
	}
	return rule("a.example.com", append(all, to("/"+prefix, "Prefix", "web"))...)
}

func regexesOf(d *Desired) (n int) {
	for _, l := range d.Config.Servers[0].Locations {
		for _, r := range l.Rules {
			n += regexes(l.Match, r.Conditions)
		}
	}
	return n
}

func TestAnObjectHasFewRegularExpressions(t *testing.T) {
	d := Translate(snapshotOf(t, ourClass, webService, ingressOf("in", "rules:\n"+regexPaths(40, "p"), `use-regex: "true"`)), Options{})
	assert.Equal(t, regexesOfObject, regexesOf(d))
	problems := problemsOf(d, "Ingress", "prod/in")
	require.Len(t, problems, 8)
	assert.Equal(t, `TooManyRegexes: host "a.example.com", path "/p-32.*x": an object has at most 32 regular expressions`, problems[0])

	match := `{path: {value: "/a"}, headers: [%s]}`
	var headers []string
	for i := range 11 {
		headers = append(headers, fmt.Sprintf(`{type: RegularExpression, name: X-%d, value: "a+"}`, i))
	}
	matches := fmt.Sprintf(match, strings.Join(headers, ", "))
	backend := `, backendRefs: [{name: web, port: 80}]`
	d = Translate(snapshotOf(t, cluster, gatewayOf("edge", `{name: http, port: 80, protocol: HTTP}`), routeOf("route", toEdge,
		"matches: ["+matches+", "+strings.Replace(matches, "/a", "/b", 1)+"]"+backend,
		`matches: [`+strings.Replace(matches, "/a", "/c", 1)+`, {path: {value: "/d"}}]`+backend,
		`matches: [{path: {value: "/e"}}]`+backend,
		`matches: [{path: {type: RegularExpression, value: "/f.*"}}]`+backend)), Options{})
	assert.Equal(t, 23, regexesOf(d))
	assert.Equal(t, []string{"Accepted True Accepted, ResolvedRefs True ResolvedRefs, PartiallyInvalid True UnsupportedValue"}, parents(t, d, "prod/route"))
	assert.Equal(t, []string{"UnsupportedValue: rule 1: an object has at most 32 regular expressions"}, problemsOf(d, "HTTPRoute", "prod/route"))
	for _, l := range d.Config.Servers[0].Locations {
		if l.Path == "/d" {
			assert.Equal(t, 500, l.Rules[0].Status, "the rule is not served as it is written")
		}
	}

	ten := strings.Replace(fmt.Sprintf(match, strings.Join(headers[1:], ", ")), "/a", "/c", 1)
	d = Translate(snapshotOf(t, cluster, gatewayOf("edge", `{name: http, port: 80, protocol: HTTP}`), routeOf("route", toEdge,
		"matches: ["+matches+", "+strings.Replace(matches, "/a", "/b", 1)+", "+ten+"]"+backend)), Options{})
	assert.Equal(t, regexesOfObject, regexesOf(d))
	assert.Empty(t, problemsOf(d, "HTTPRoute", "prod/route"), "as many as it may have")
}

func TestAHostHasFewRegularExpressionsAndOlderObjectsHaveThem(t *testing.T) {
	var objects []string
	for _, name := range []string{"a", "b", "c", "d"} {
		objects = append(objects, ingressOf(name, "rules:\n"+regexPaths(map[string]int{"a": 32, "b": 20, "c": 20, "d": 12}[name], name), `use-regex: "true"`))
	}
	d := Translate(snapshotOf(t, append(objects, ourClass, webService)...), Options{})
	assert.Equal(t, regexesOfHost, regexesOf(d))
	for _, name := range []string{"a", "b", "d"} {
		assert.Empty(t, problemsOf(d, "Ingress", "prod/"+name))
	}
	assert.Equal(t, []string{`TooManyRegexes: host "a.example.com" has at most 64 regular expressions of a namespace, and older objects have them: ` +
		"the rules with those of this object are left out"}, problemsOf(d, "Ingress", "prod/c"))
	paths := ""
	for _, l := range d.Config.Servers[0].Locations {
		paths += l.Path + "\n"
	}
	assert.Contains(t, paths, "/c\n", "its other rules stay")
	assert.NotContains(t, paths, "/c-")
}

// Neither an older nor a younger object of another namespace counts.
func TestNobodyFillsAHostWithRegularExpressionsOfANamespace(t *testing.T) {
	const annotation = `use-regex: "true"`
	evil := func(name string) string {
		return strings.ReplaceAll(ingressOf(name, "rules:\n"+regexPaths(32, name), annotation), "namespace: prod", "namespace: evil")
	}
	before, after := ingressOf("a", "rules:\n"+regexPaths(32, "a"), annotation), ingressOf("b", "rules:\n"+regexPaths(32, "b"), annotation)
	d := Translate(snapshotOf(t, before, evil("c"), evil("d"), evil("e"), after, ourClass, webService), Options{})
	for _, name := range []string{"a", "b"} {
		assert.Empty(t, problemsOf(d, "Ingress", "prod/"+name))
	}
	assert.NotContains(t, strings.Join(problemsOf(d, "Ingress", "evil/d"), "\n"), "TooManyRegexes")
	assert.Contains(t, strings.Join(problemsOf(d, "Ingress", "evil/e"), "\n"), "TooManyRegexes")
	of := map[string]int{}
	for _, l := range d.Config.Servers[0].Locations {
		of[l.Rules[0].Source.Namespace] += regexes(l.Match, nil)
	}
	assert.Equal(t, map[string]int{"prod": 64, "evil": 64}, of)
}
