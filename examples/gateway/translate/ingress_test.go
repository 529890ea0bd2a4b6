package translate

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// ourClass, with the Services that tests name, comes before the objects of each test.
const ourClass = `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: ours}
spec: {controller: gateway.example.com/kates}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: prod}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: prod}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: next, namespace: prod}
spec: {ports: [{name: http, port: 80}]}
`

// ingressOf is an Ingress of namespace prod and of our class. more are lines of annotations.
func ingressOf(name, spec string, annotations ...string) string {
	lines := ""
	for _, a := range annotations {
		lines += "\n    gateway.example.com/" + a
	}
	return fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: %s
  namespace: prod
  annotations:
    other.example.com/x: "y"%s
spec:
  ingressClassName: ours
  %s
`, name, lines, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

// to is a path to port 80 of a Service.
func to(path, kind, service string) string {
	return fmt.Sprintf(`{path: %q, pathType: %s, backend: {service: {name: %s, port: {number: 80}}}}`, path, kind, service)
}

// rule is an Ingress rule.
func rule(host string, paths ...string) string {
	return fmt.Sprintf("- {host: %q, http: {paths: [%s]}}", host, strings.Join(paths, ", "))
}

// told is a configuration in few words: a line for each rule.
func told(c nginx.Config) (lines []string) {
	for _, s := range c.Servers {
		at := fmt.Sprintf("%d %s", s.Port, cmp.Or(s.Host, "*"))
		if s.TLS && s.Certificate == "" {
			lines = append(lines, at+" refuses handshakes")
		}
		for _, l := range s.Locations {
			for _, r := range l.Rules {
				does := []string{}
				for _, b := range r.Backends {
					does = append(does, fmt.Sprintf("%s=%d", b.Upstream, b.Weight))
				}
				if r.Status != 0 {
					does = append(does, fmt.Sprint(r.Status))
				}
				if r.Redirect != nil {
					does = append(does, fmt.Sprint(r.Redirect.Status, " ", r.Redirect.Scheme))
				}
				if r.Timeout != 0 {
					does = append(does, r.Timeout.String())
				}
				if len(l.Except) > 0 {
					does = append(does, fmt.Sprint("but ", l.Except))
				}
				lines = append(lines, fmt.Sprintf("%s %s %s: %s", at, l.Match, l.Path, strings.Join(does, " ")))
			}
		}
	}
	return lines
}

func TestWhatAnIngressIsServedAs(t *testing.T) {
	const host = "shop.example.com"
	for _, test := range []struct {
		name     string
		in       []string
		want     []string
		problems []string // of the Ingress a
	}{
		{
			name: "paths by their types",
			in: []string{ingressOf("a", "rules:\n"+rule(host, to("/a/", "Prefix", "web"), to("/b", "Exact", "api"), to("/c", "ImplementationSpecific", "web"),
				to("", "ImplementationSpecific", "api")))},
			want: []string{
				"80 shop.example.com Exact /b: prod.api.80=100", "80 shop.example.com Prefix /a: prod.web.80=100",
				"80 shop.example.com Prefix /c: prod.web.80=100", "80 shop.example.com Prefix /: prod.api.80=100",
			},
		},
		{
			name: "regular expressions, where they are asked for",
			in: []string{ingressOf("a", "rules:\n"+rule(host, to("/a/[0-9]+$", "ImplementationSpecific", "web"), to("/b", "Prefix", "api")),
				`use-regex: "true"`)},
			want: []string{"80 shop.example.com Prefix /b: prod.api.80=100", "80 shop.example.com Regex /a/[0-9]+$: prod.web.80=100"},
		},
		{
			name: "a regular expression that is none",
			in: []string{ingressOf("a", "rules:\n"+rule(host, to("/a(", "ImplementationSpecific", "web"), to("/b", "Prefix", "api")),
				`use-regex: "true"`)},
			want:     []string{"80 shop.example.com Prefix /b: prod.api.80=100"},
			problems: []string{"InvalidPath: host \"shop.example.com\", path \"/a(\": error parsing regexp: missing closing ): `/a(`"},
		},
		{
			name: "a port by its name",
			in:   []string{ingressOf("a", "rules:\n"+strings.ReplaceAll(rule(host, to("/", "Prefix", "web")), "number: 80", "name: http"))},
			want: []string{"80 shop.example.com Prefix /: prod.web.80=100"},
		},
		{
			name: "all hosts, and a wildcard",
			in:   []string{ingressOf("a", "rules:\n"+rule("", to("/", "Prefix", "web"))+"\n"+rule("*.example.com", to("/", "Prefix", "api")))},
			want: []string{"80 * Prefix /: prod.web.80=100", "80 *.example.com Prefix /: prod.api.80=100"},
		},
		{
			name: "a default backend for its own hosts",
			in: []string{ingressOf("a", "defaultBackend: {service: {name: api, port: {number: 80}}}\nrules:\n"+rule(host, to("/a", "Prefix", "web"))+
				"\n- {host: blog.example.com}")},
			want: []string{
				"80 blog.example.com Prefix /: prod.api.80=100",
				"80 shop.example.com Prefix /a: prod.web.80=100", "80 shop.example.com Prefix /: prod.api.80=100",
			},
		},
		{
			name: "a default backend for all hosts",
			in:   []string{ingressOf("a", "defaultBackend: {service: {name: api, port: {number: 80}}}")},
			want: []string{"80 * Prefix /: prod.api.80=100"},
		},
		{
			name: "a default backend of an older Ingress of the host",
			in: []string{
				ingressOf("b", "defaultBackend: {service: {name: api, port: {number: 80}}}\nrules:\n"+rule(host, to("/a", "Prefix", "web"))),
				ingressOf("a", "rules:\n"+rule(host, to("/", "Prefix", "next"))),
			},
			want:     []string{"80 shop.example.com Prefix /a: prod.web.80=100", "80 shop.example.com Prefix /: prod.api.80=100"},
			problems: []string{`Conflict: host "shop.example.com", path /: Ingress prod/b, which is older, has it`},
		},
		{
			name: "a default backend after its own rule for all paths",
			in:   []string{ingressOf("a", "defaultBackend: {service: {name: api, port: {number: 80}}}\nrules:\n"+rule(host, to("/", "Prefix", "next")))},
			want: []string{"80 shop.example.com Prefix /: prod.next.80=100"},
		},
		{
			name: "the timeout of its annotation",
			in:   []string{ingressOf("a", "rules:\n"+rule(host, to("/", "Prefix", "web")), `timeout: 90s`)},
			want: []string{"80 shop.example.com Prefix /: prod.web.80=100 1m30s"},
		},
		{
			name: "bad annotations as none", in: []string{ingressOf("a", "rules:\n"+rule(host, to("/", "Prefix", "web")),
				`timeout: "90"`, `use-regex: "yes"`, `timeouts: 90s`)},
			want: []string{"80 shop.example.com Prefix /: prod.web.80=100"},
			problems: []string{
				`InvalidAnnotation: gateway.example.com/timeout: "90" is no duration from 1ms to 24h, such as 30s`,
				`InvalidAnnotation: gateway.example.com/use-regex: "yes" is neither "true" nor "false"`,
				`UnknownAnnotation: there is no annotation gateway.example.com/timeouts`,
			},
		},
		{
			name: "503 where there is no backend, and nothing else of it",
			in: []string{ingressOf("a", "rules:\n"+rule(host, to("/", "Prefix", "web"), to("/a", "Prefix", "none"),
				`{path: /b, pathType: Prefix, backend: {resource: {kind: Bucket, name: b, apiGroup: s.example.com}}}`))},
			want: []string{
				"80 shop.example.com Prefix /a: 503", "80 shop.example.com Prefix /b: 503", "80 shop.example.com Prefix /: prod.web.80=100",
			},
			problems: []string{
				`InvalidBackend: host "shop.example.com", path /a: there is no Service prod/none`,
				`InvalidBackend: host "shop.example.com", path /b: a backend that is no Service is not served`,
			},
		},
		{
			name: "without what cannot be",
			in: []string{ingressOf("a", "rules:\n"+rule(`x;}`, to("/", "Prefix", "web"))+"\n"+rule("SHOP.example.com", to("/", "Prefix", "web"))+"\n"+
				rule(host, to("a", "Prefix", "web"), to("/a\n;", "Exact", "web"), to("/b", "Suffix", "web"), to("/c", "Exact", "web")))},
			want: []string{"80 shop.example.com Exact /c: prod.web.80=100"},
			problems: []string{
				`InvalidHost: "SHOP.example.com" is no host`,
				`InvalidHost: "x;}" is no host`,
				`InvalidPath: host "shop.example.com", path "/a\n;": it has a control character`,
				`InvalidPath: host "shop.example.com", path "/b": its type is none of Exact, Prefix and ImplementationSpecific`,
				`InvalidPath: host "shop.example.com", path "a": it does not begin with /`,
			},
		},
		{
			name: "beside another Ingress of the host",
			in: []string{
				ingressOf("b", "rules:\n"+rule(host, to("/a", "Prefix", "api"), to("/b", "Prefix", "api"))),
				ingressOf("a", "rules:\n"+rule(host, to("/a", "Prefix", "web"), to("/c", "Prefix", "web"))),
			},
			want: []string{
				"80 shop.example.com Prefix /a: prod.api.80=100", "80 shop.example.com Prefix /b: prod.api.80=100",
				"80 shop.example.com Prefix /c: prod.web.80=100",
			},
			problems: []string{`Conflict: host "shop.example.com", path /a: Ingress prod/b, which is older, has it`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := Translate(snapshotOf(t, append([]string{ourClass}, test.in...)...), Options{})
			assert.Equal(t, test.want, told(d.Config))
			assert.Equal(t, test.problems, problemsOf(d, "Ingress", "prod/a"))
		})
	}
}

func TestWhichIngressesAreOurs(t *testing.T) {
	const classes = `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: other}
spec: {controller: example.com/other}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: default, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
spec: {controller: %s}
---
`
	spec := "defaultBackend: {service: {name: web, port: {number: 80}}}"
	for _, test := range []struct {
		name, defaults, class, annotation string
		want                              bool
	}{
		{"of our class", "example.com/other", "ours", "", true},
		{"of another's class", Controller, "other", "", false},
		{"of no class that exists", Controller, "none", "", false},
		{"of our class by the old annotation", "example.com/other", "", "ours", true},
		{"of another's class by the old annotation", Controller, "", "nginx", false},
		{"of the default class, which is ours", Controller, "", "", true},
		{"of the default class, which is another's", "example.com/other", "", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			snap := snapshotOf(t, ourClass, fmt.Sprintf(classes, test.defaults), ingressOf("a", spec))
			in := snap.Ingresses[0]
			in.Spec.IngressClassName = nil
			if test.class != "" {
				in.Spec.IngressClassName = &test.class
			}
			if test.annotation != "" {
				in.Annotations["kubernetes.io/ingress.class"] = test.annotation
			}
			d := Translate(snap, Options{})
			assert.Equal(t, test.want, len(d.Config.Servers) == 1)
			assert.Equal(t, test.want, len(d.Reports) == 1)
		})
	}
}

func TestTheNewestOfSeveralDefaultClassesCounts(t *testing.T) {
	const marked = `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: %s, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
spec: {controller: %s}
`
	ours, other := fmt.Sprintf(marked, "mine", Controller), fmt.Sprintf(marked, "theirs", "example.com/other")
	in := strings.Replace(ingressOf("a", "defaultBackend: {service: {name: web, port: {number: 80}}}"), "ingressClassName: ours", "", 1)
	assert.Len(t, Translate(snapshotOf(t, ourClass, other, ours, in), Options{}).Reports, 1)
	assert.Empty(t, Translate(snapshotOf(t, ourClass, ours, other, in), Options{}).Reports)
}

func TestTheStatusOfAnIngress(t *testing.T) {
	in := ingressOf("a", "defaultBackend: {service: {name: web, port: {number: 80}}}")
	published := Options{Published: []string{"192.0.2.1", "2001:db8::1", "lb.example.com"}}
	want := &networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{
		{IP: "192.0.2.1"}, {IP: "2001:db8::1"}, {Hostname: "lb.example.com"},
	}}}
	d := Translate(snapshotOf(t, ourClass, in), published)
	require.Len(t, d.Reports, 1)
	assert.Equal(t, want, d.Reports[0].Status)
	assert.Nil(t, Translate(snapshotOf(t, ourClass, in), Options{}).Reports[0].Status, "nothing is published")

	snap := snapshotOf(t, ourClass, in)
	snap.Ingresses[0].Status = *want
	snap.Classes = nil
	d = Translate(snap, published)
	require.Len(t, d.Reports, 1, "it has no class any more")
	assert.Equal(t, &networkingv1.IngressStatus{}, d.Reports[0].Status)

	theirs := &networkingv1.IngressClass{Spec: networkingv1.IngressClassSpec{Controller: "example.com/other"}}
	theirs.Name = "ours"
	snap.Classes = append(snap.Classes, theirs)
	assert.Empty(t, Translate(snap, published).Reports, "another controller has the class: the status is for it to write")
	snap.Classes = nil
	snap.Ingresses[0].Annotations["kubernetes.io/ingress.class"] = "theirs"
	assert.Empty(t, Translate(snap, published).Reports, "a class without an IngressClass, as of old")
	delete(snap.Ingresses[0].Annotations, "kubernetes.io/ingress.class")
	snap.Ingresses[0].Status.LoadBalancer.Ingress[0].IP = "192.0.2.9"
	assert.Empty(t, Translate(snap, published).Reports, "another's status")
}

func TestAnIngressThatNginxRefusesIsServedAsItLastWas(t *testing.T) {
	text := ingressOf("a", "rules:\n"+rule("shop.example.com", to("/", "Prefix", "web")))
	snap := snapshotOf(t, ourClass, text)
	good := snapshotOf(t, ourClass, strings.ReplaceAll(text, "name: web", "name: api")).Ingresses[0]
	good.ResourceVersion = "6"
	refused := func(r Refusal) Options {
		r.Message = "pcre_compile() failed"
		return Options{Refused: map[types.UID]Refusal{snap.Ingresses[0].UID: r}}
	}
	d := Translate(snap, refused(Refusal{Version: "7", LastGood: good}))
	assert.Equal(t, []string{"80 shop.example.com Prefix /: prod.api.80=100"}, told(d.Config))
	assert.Equal(t, []string{"Refused: nginx refuses it, and its last good version is served: pcre_compile() failed"}, problemsOf(d, "Ingress", "prod/a"))
	assert.Equal(t, "7", d.Reports[0].Object.GetResourceVersion())

	d = Translate(snap, refused(Refusal{Version: "7"}))
	assert.Empty(t, d.Config.Servers)
	assert.Equal(t, []string{"Refused: nginx refuses it, and nothing of it is served: pcre_compile() failed"}, problemsOf(d, "Ingress", "prod/a"))

	d = Translate(snap, refused(Refusal{Version: "6"}))
	assert.Equal(t, []string{"80 shop.example.com Prefix /: prod.web.80=100"}, told(d.Config), "a refusal is of one version")
}
