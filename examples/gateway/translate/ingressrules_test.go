package translate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

func TestTheHostsOfACertificate(t *testing.T) {
	ca := newAuthority(t)
	const shop, blog = "shop.example.com", "blog.example.com"
	rules := "rules:\n" + rule(shop, to("/", "Prefix", "web")) + "\n"
	for _, test := range []struct {
		name     string
		in       []string
		want     []string
		problems []string // of the Ingress a
	}{
		{
			name: "HTTP leads to HTTPS",
			in:   []string{ingressOf("a", rules+"tls: [{hosts: [shop.example.com], secretName: shop}]")},
			want: []string{"80 shop.example.com Prefix /: 308 https", "443 shop.example.com Prefix /: prod.web.80=100"},
		},
		{
			name: "unless it need not",
			in:   []string{ingressOf("a", rules+"tls: [{hosts: [shop.example.com], secretName: shop}]", `ssl-redirect: "false"`)},
			want: []string{"80 shop.example.com Prefix /: prod.web.80=100", "443 shop.example.com Prefix /: prod.web.80=100"},
		},
		{
			name: "a default backend too",
			in:   []string{ingressOf("a", rules+"defaultBackend: {service: {name: api, port: {number: 80}}}\ntls: [{hosts: [shop.example.com], secretName: shop}]")},
			want: []string{"80 shop.example.com Prefix /: 308 https", "443 shop.example.com Prefix /: prod.web.80=100"},
		},
		{
			name: "all hosts of the Ingress if none is named",
			in:   []string{ingressOf("a", rules+rule(blog, to("/", "Prefix", "api"))+"\ntls: [{secretName: both}]")},
			want: []string{
				"80 blog.example.com Prefix /: 308 https", "80 shop.example.com Prefix /: 308 https",
				"443 blog.example.com Prefix /: prod.api.80=100", "443 shop.example.com Prefix /: prod.web.80=100",
			},
		},
		{
			name: "those that a wildcard covers",
			in:   []string{ingressOf("a", rules+rule("a.b.example.com", to("/", "Prefix", "api"))+"\n"+`tls: [{hosts: ["*.example.com"], secretName: wild}]`)},
			want: []string{
				"80 a.b.example.com Prefix /: prod.api.80=100", "80 shop.example.com Prefix /: 308 https", "443 shop.example.com Prefix /: prod.web.80=100",
			},
		},
		{
			name: "the paths of other Ingresses of the host",
			in: []string{
				ingressOf("b", "rules:\n"+rule(shop, to("/b", "Prefix", "api"))),
				ingressOf("a", rules+"tls: [{hosts: [shop.example.com], secretName: shop}]"),
			},
			want: []string{
				"80 shop.example.com Prefix /b: 308 https", "80 shop.example.com Prefix /: 308 https",
				"443 shop.example.com Prefix /b: prod.api.80=100", "443 shop.example.com Prefix /: prod.web.80=100",
			},
		},
		{
			name:     "no Secret: the host refuses handshakes, and HTTP goes on",
			in:       []string{ingressOf("a", rules+"tls: [{hosts: [shop.example.com], secretName: none}]")},
			want:     []string{"80 shop.example.com Prefix /: prod.web.80=100", "443 shop.example.com refuses handshakes", "443 shop.example.com Prefix /: prod.web.80=100"},
			problems: []string{"InvalidCertificate: there is no Secret prod/none; not served over TLS: shop.example.com"},
		},
		{
			name:     "no name of a Secret",
			in:       []string{ingressOf("a", rules+"tls: [{hosts: [shop.example.com]}]")},
			want:     []string{"80 shop.example.com Prefix /: prod.web.80=100", "443 shop.example.com refuses handshakes", "443 shop.example.com Prefix /: prod.web.80=100"},
			problems: []string{"InvalidCertificate: spec.tls names no Secret; not served over TLS: shop.example.com"},
		},
		{
			name: "a broken one beside a good one of a younger Ingress",
			in: []string{
				ingressOf("a", rules+"tls: [{hosts: [shop.example.com], secretName: none}]"),
				ingressOf("b", "rules:\n"+rule(shop, to("/b", "Prefix", "api"))+"\ntls: [{hosts: [shop.example.com], secretName: shop}]"),
			},
			want: []string{
				"80 shop.example.com Prefix /b: 308 https", "80 shop.example.com Prefix /: 308 https",
				"443 shop.example.com Prefix /b: prod.api.80=100", "443 shop.example.com Prefix /: prod.web.80=100",
			},
			problems: []string{"InvalidCertificate: there is no Secret prod/none; not served over TLS: shop.example.com"},
		},
		{
			name: "two Ingresses with two certificates",
			in: []string{
				ingressOf("b", "rules:\n"+rule(shop, to("/b", "Prefix", "api"))+"\ntls: [{hosts: [shop.example.com], secretName: shop}]"),
				ingressOf("a", rules+"tls: [{hosts: [shop.example.com], secretName: both}]"),
			},
			want: []string{
				"80 shop.example.com Prefix /b: 308 https", "80 shop.example.com Prefix /: 308 https",
				"443 shop.example.com Prefix /b: prod.api.80=100", "443 shop.example.com Prefix /: prod.web.80=100",
			},
			problems: []string{`Conflict: host "shop.example.com": Ingress prod/b, which is older, has another certificate`},
		},
		{
			name:     "a certificate of another host",
			in:       []string{ingressOf("a", "rules:\n"+rule(blog, to("/", "Prefix", "web"))+"\ntls: [{hosts: [blog.example.com], secretName: shop}]")},
			want:     []string{"80 blog.example.com Prefix /: 308 https", "443 blog.example.com Prefix /: prod.web.80=100"},
			problems: []string{`DoubtfulCertificate: Secret prod/shop: the certificate is not for the host "blog.example.com"`},
		},
		{
			name:     "a host without rules",
			in:       []string{ingressOf("a", rules+"tls: [{hosts: [blog.example.com], secretName: shop}]")},
			want:     []string{"80 shop.example.com Prefix /: prod.web.80=100"},
			problems: []string{`UnusedCertificate: spec.tls names the host "blog.example.com", and no rule of the Ingress does`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			snap := snapshotOf(t, append([]string{ourClass}, test.in...)...)
			for secretName, hosts := range map[string][]string{"shop": {shop}, "both": {shop, blog}, "wild": {"*.example.com"}} {
				chain, key := ca.issue(t, hosts...)
				s := secret(secretName, chain, key)
				snap.Secrets = append(snap.Secrets, s)
			}
			d := Translate(snap, Options{Now: born.AddDate(0, 1, 0)})
			assert.Equal(t, test.want, told(d.Config))
			assert.Equal(t, test.problems, problemsOf(d, "Ingress", "prod/a"))
			used := map[string]bool{}
			for _, s := range d.Config.Servers {
				used[s.Certificate] = true
			}
			for id := range d.Config.Certificates {
				if test.problems == nil {
					assert.True(t, used[id], "a certificate that no server has")
				}
			}
		})
	}
}

func TestCanariesTakeTheirShares(t *testing.T) {
	shop := func(service string) string { return "rules:\n" + rule("shop.example.com", to("/a", "Prefix", service)) }
	weight := func(w string) string { return `canary-weight: "` + w + `"` }
	for _, test := range []struct {
		name     string
		in       []string
		want     []string
		problems []string // of the Ingress canary
	}{
		{
			name: "one", in: []string{ingressOf("canary", shop("next"), weight("20")), ingressOf("a", shop("web"))},
			want: []string{"80 shop.example.com Prefix /a: prod.web.80=80 prod.next.80=20"},
		},
		{
			name: "its path with a slash at the end",
			in:   []string{ingressOf("a", shop("web")), ingressOf("canary", "rules:\n"+rule("shop.example.com", to("/a/", "Prefix", "next")), weight("20"))},
			want: []string{"80 shop.example.com Prefix /a: prod.web.80=80 prod.next.80=20"},
		},
		{
			name: "several", in: []string{ingressOf("a", shop("web")), ingressOf("b", shop("api"), weight("30")), ingressOf("canary", shop("next"), weight("20"))},
			want: []string{"80 shop.example.com Prefix /a: prod.web.80=50 prod.api.80=30 prod.next.80=20"},
		},
		{
			name: "everything", in: []string{ingressOf("a", shop("web")), ingressOf("canary", shop("next"), weight("100"))},
			want: []string{"80 shop.example.com Prefix /a: prod.next.80=100"},
		},
		{
			name: "nothing", in: []string{ingressOf("a", shop("web")), ingressOf("canary", shop("next"), weight("0"))},
			want: []string{"80 shop.example.com Prefix /a: prod.web.80=100"},
		},
		{
			name: "more than there is", in: []string{ingressOf("a", shop("web")), ingressOf("b", shop("api"), weight("60")), ingressOf("canary", shop("next"), weight("50"))},
			want:     []string{"80 shop.example.com Prefix /a: prod.web.80=40 prod.api.80=60"},
			problems: []string{`InvalidCanary: host "shop.example.com", path /a: with its older canaries it would take 110 percent; it gets nothing`},
		},
		{
			name: "a weight that is none", in: []string{ingressOf("a", shop("web")), ingressOf("canary", shop("next"), weight("101"))},
			want:     []string{"80 shop.example.com Prefix /a: prod.web.80=100"},
			problems: []string{`InvalidAnnotation: gateway.example.com/canary-weight: "101" is no number from 0 to 100`},
		},
		{
			name: "of nothing", in: []string{ingressOf("canary", shop("next"), weight("20"))}, want: nil,
			problems: []string{`InvalidCanary: host "shop.example.com", path /a: no other Ingress of its namespace is for that; it gets nothing`},
		},
		{
			name: "without a backend", in: []string{ingressOf("a", shop("web")), ingressOf("canary", shop("none"), weight("20"))},
			want:     []string{"80 shop.example.com Prefix /a: prod.web.80=100"},
			problems: []string{`InvalidBackend: host "shop.example.com", path /a: there is no Service prod/none`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := Translate(snapshotOf(t, append([]string{ourClass}, test.in...)...), Options{})
			assert.Equal(t, test.want, told(d.Config))
			assert.Equal(t, test.problems, problemsOf(d, "Ingress", "prod/canary"))
			assert.Empty(t, problemsOf(d, "Ingress", "prod/a"))
		})
	}
}

func TestNobodyTakesAShareOfAnotherNamespace(t *testing.T) {
	shop := "rules:\n" + rule("shop.example.com", to("/a", "Prefix", "web"))
	snap := snapshotOf(t, ourClass, ingressOf("a", shop), ingressOf("canary", shop, `canary-weight: "100"`))
	dev := snap.Ingresses[1]
	dev.Namespace = "dev"
	web := snap.service("web").DeepCopy()
	web.Namespace = "dev"
	snap.Services = append(snap.Services, web) // it has a backend of its own
	d := Translate(snap, Options{})
	assert.Equal(t, []string{"80 shop.example.com Prefix /a: prod.web.80=100"}, told(d.Config))
}

func TestPortsAreThoseThatTheProgramListensAt(t *testing.T) {
	snap := snapshotOf(t, ourClass, ingressOf("a", "rules:\n"+rule("shop.example.com", to("/", "Prefix", "web"))+"\ntls: [{hosts: [shop.example.com], secretName: none}]"))
	d := Translate(snap, Options{Port: func(p int) int { return p + 8000 }})
	assert.Equal(t, []int{8080, 8443}, []int{d.Config.Servers[0].Port, d.Config.Servers[1].Port})
	assert.Equal(t, nginx.Object{Kind: "Ingress", Namespace: "prod", Name: "a", UID: "Ingress/prod/a", Version: "7"}, d.Config.Servers[0].Source)
}

func TestACertificateOfAnotherNamespaceIsNotServed(t *testing.T) {
	snap := snapshotOf(t, ourClass, ingressOf("a", "rules:\n"+rule("shop.example.com", to("/", "Prefix", "web"))),
		ingressOf("b", "rules:\n"+rule("shop.example.com", to("/b", "Prefix", "api"))+"\ntls: [{hosts: [shop.example.com], secretName: shop}]"))
	snap.Ingresses[1].Namespace = "dev"
	chain, key := newAuthority(t).issue(t, "shop.example.com")
	s := secret("shop", chain, key)
	s.Namespace = "dev"
	snap.Secrets = append(snap.Secrets, s)
	assert.Equal(t, []string{
		"80 shop.example.com Prefix /b: 503", "80 shop.example.com Prefix /: prod.web.80=100",
	}, told(Translate(snap, Options{}).Config))
}

func TestOfTwoBrokenCertificatesTheOlderIngressHasTheServer(t *testing.T) {
	tls := "\ntls: [{hosts: [shop.example.com], secretName: none}]"
	d := Translate(snapshotOf(t, ourClass, ingressOf("b", "rules:\n"+rule("shop.example.com", to("/", "Prefix", "web"))+tls),
		ingressOf("a", "rules:\n"+rule("shop.example.com", to("/a", "Prefix", "web"))+tls)), Options{})
	assert.Equal(t, []string{"b", "b"}, []string{d.Config.Servers[0].Source.Name, d.Config.Servers[1].Source.Name})
}
