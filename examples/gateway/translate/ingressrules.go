package translate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// ingressTLS gives the host its certificates of an Ingress. A host whose certificate cannot be used
// gets none: its handshakes are refused, rather than answered with a certificate of something else,
// and it is served over HTTP. A host that another namespace has gets no certificate here.
func (t *translation) ingressTLS(in *ingress) {
	for _, secret := range in.hosts[t.at.host].secrets {
		if !t.secures(in.Namespace) {
			t.insecure(in.Ingress)
			continue
		}
		id := ""
		if pair, err := t.ingressCertificate(in, secret); err == nil {
			id = pair.id
			for _, doubt := range t.doubts(pair, t.at.host) {
				t.problem(in.Ingress, "DoubtfulCertificate", "Secret %s/%s: %s", in.Namespace, secret, doubt)
			}
		}
		server := t.table.server(t.https(t.at.host), in.Ingress)
		server.ofIngress = true
		switch {
		case id == "":
		case server.certificate == "":
			server.certificate, server.secured = id, sourceOf(in.Ingress)
		case server.certificate != id:
			t.problem(in.Ingress, "Conflict", "host %q: %s %s/%s, which is older, has another certificate",
				cmp.Or(t.at.host, "*"), server.secured.Kind, server.secured.Namespace, server.secured.Name)
		}
	}
}

// uncertified reports the certificates of an Ingress that cannot be used for hosts that it has.
func (t *translation) uncertified(in *ingress) {
	for _, tls := range in.tls {
		_, err := t.ingressCertificate(in, tls.secret)
		if err == nil {
			continue
		}
		mine := slices.DeleteFunc(slices.Clone(tls.hosts), func(host string) bool {
			by, _ := t.owners.Get(t.r, place{host: host})
			return !slices.Contains(by.namespaces, in.Namespace)
		})
		if len(mine) > 0 {
			t.problem(in.Ingress, "InvalidCertificate", "%v; not served over TLS: %s", err, strings.Join(mine, ", "))
		}
	}
}

func (t *translation) ingressCertificate(in *ingress, secret string) (*keyPair, error) {
	if secret == "" {
		return nil, errors.New("spec.tls names no Secret")
	}
	return t.certificate(in.Namespace, secret)
}

// hostsOf returns the hosts of its own rules that a certificate of an Ingress is for: those that
// are named, those that a named wildcard covers, and all of them if none is named.
func (t *translation) hostsOf(in *ingress, named []string) (all []string) {
	for _, host := range named {
		used := false
		for of := range in.hosts {
			if _, parent, _ := strings.Cut(of, "."); host == of || host == "*."+parent {
				used, all = true, append(all, of)
			}
		}
		if !used {
			t.problem(in.Ingress, "UnusedCertificate", "spec.tls names the host %q, and no rule of the Ingress does", host)
		}
	}
	if len(named) == 0 {
		all = slices.Collect(maps.Keys(in.hosts))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t *translation) http(host string) listener { return listener{port: t.port(80), host: host} }
func (t *translation) https(host string) listener {
	return listener{port: t.port(443), tls: true, host: host}
}

// rules adds the rules of an Ingress for the host, each with its canaries.
func (t *translation) rules(in *ingress, canaries map[target][]*canary) {
	for _, p := range in.hosts[t.at.host].paths {
		rule := nginx.Rule{Timeout: in.timeout}
		if p.upstream == "" {
			rule.Status = 503
		} else {
			rule.Backends = shares(p.upstream, canaries[targetOf(in, p)])
		}
		for _, c := range canaries[targetOf(in, p)] {
			c.found = true
		}
		to, over := path{p.match, p.path}, t.table[t.https(p.host)]
		if over != nil {
			over.add(to, entry{rule: rule, object: in.Ingress, index: p.index})
		}
		// That a host has a certificate of another namespace is no reason to refuse it on HTTP.
		if over != nil && over.certificate != "" && over.secured.Namespace == in.Namespace && in.redirect {
			rule = nginx.Rule{Redirect: &nginx.Redirect{Status: 308, Scheme: "https"}}
		}
		t.table.server(t.http(p.host), in.Ingress).add(to, entry{rule: rule, object: in.Ingress, index: p.index})
	}
}

// backend returns the upstream of a path. It is empty if there is none.
func (t *translation) backend(in *ingress, p ingressPath) string {
	id, err := "", errors.New("a backend that is no Service is not served")
	if service := p.backend.Service; service != nil {
		id, err = t.upstream(in.Namespace, service.Name, backendPort{name: service.Port.Name, number: service.Port.Number})
	}
	if err != nil {
		t.problem(in.Ingress, "InvalidBackend", "%s: %v", targetOf(in, p), err)
		return ""
	}
	t.backends = append(t.backends, id)
	return id
}

// target is what a canary takes a share of. It is of one namespace, so that nobody takes requests
// of another one.
type target struct {
	namespace, host, path string
	match                 nginx.PathMatch
}

func targetOf(in *ingress, p ingressPath) target {
	return target{in.Namespace, p.host, p.path, p.match}
}

func (g target) String() string { return fmt.Sprintf("host %q, path %s", cmp.Or(g.host, "*"), g.path) }

// canary is a path of a canary.
type canary struct {
	in       *ingress
	upstream string
	found    bool // whose requests to take
}

// canaries returns the canaries of each target, from the oldest. One that would take more than the
// older ones have left is left out.
func (t *translation) canaries(ours []*ingress) map[target][]*canary {
	all := map[target][]*canary{}
	for _, in := range ours {
		if !in.canary {
			continue
		}
		for _, p := range in.hosts[t.at.host].paths {
			to, sum := targetOf(in, p), in.weight
			for _, c := range all[to] {
				sum += c.in.weight
			}
			switch {
			case p.upstream == "":
			case sum > 100:
				t.problem(in.Ingress, "InvalidCanary", "%s: with its older canaries it would take %d percent; it gets nothing", to, sum)
			default:
				all[to] = append(all[to], &canary{in: in, upstream: p.upstream})
			}
		}
	}
	return all
}

// shares returns the backends of a rule and its canaries.
func shares(upstream string, canaries []*canary) (all []nginx.Backend) {
	rest := 100
	for _, c := range canaries {
		rest -= c.in.weight
		all = append(all, nginx.Backend{Upstream: c.upstream, Weight: c.in.weight})
	}
	all = slices.Insert(all, 0, nginx.Backend{Upstream: upstream, Weight: rest})
	return slices.DeleteFunc(all, func(b nginx.Backend) bool { return b.Weight == 0 })
}

// reportUnusedCanaries reports the canaries that have found nothing to take a share of.
func (t *translation) reportUnusedCanaries(canaries map[target][]*canary) {
	for to, all := range canaries {
		for _, c := range all {
			if !c.found {
				t.problem(c.in.Ingress, "InvalidCanary", "%s: no other Ingress of its namespace is for that; it gets nothing", to)
			}
		}
	}
}
