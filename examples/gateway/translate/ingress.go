package translate

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/examples/gateway/nginx"
)

// ingress is an Ingress of ours.
type ingress struct {
	*networkingv1.Ingress // that is served: not the newest version if nginx has refused that
	annotated
	hosts map[string]*ingressHost
	tls   []ingressTLS
}

// ingressHost is what an Ingress has for a host.
type ingressHost struct {
	paths   []ingressPath
	secrets []string // that spec.tls names for it
}

// ingressTLS is an entry of spec.tls, with those hosts of the Ingress that it is for.
type ingressTLS struct {
	secret string
	hosts  []string
}

// ingressPath is one of an Ingress, for one host.
type ingressPath struct {
	index      int // in the Ingress
	host, path string
	match      nginx.PathMatch
	backend    *networkingv1.IngressBackend
	upstream   string // empty: the backend cannot be served
}

// ingress reads an Ingress of ours, or one that was ours.
func (t *translation) ingress(_ key, in *networkingv1.Ingress) (*fragment, error) {
	class, err := t.classes.Get(t.r)
	f := &fragment{object: in}
	switch {
	case class.ours(in):
		f.status = t.ingressStatus()
	case t.wasOurs(in, class):
		f.status = &networkingv1.IngressStatus{}
		return f, err
	default:
		return nil, derive.Skip
	}
	if served, _ := t.current(in).(*networkingv1.Ingress); served != nil {
		f.ingress = t.readIngress(served)
	}
	f.notes = t.notes
	return f, err
}

// readIngress reads the version of an Ingress that is served.
func (t *translation) readIngress(served *networkingv1.Ingress) *ingress {
	in := &ingress{Ingress: served, annotated: t.annotations(served), hosts: map[string]*ingressHost{}}
	paths := t.fewRegexes(in, t.paths(in))
	for i, p := range paths {
		p.index = i
		if in.hosts[p.host] == nil {
			in.hosts[p.host] = &ingressHost{}
		}
		p.upstream = t.backend(in, p)
		in.hosts[p.host].paths = append(in.hosts[p.host].paths, p)
	}
	for _, tls := range served.Spec.TLS {
		one := ingressTLS{tls.SecretName, t.hostsOf(in, tls.Hosts)}
		for _, host := range one.hosts {
			in.hosts[host].secrets = append(in.hosts[host].secrets, tls.SecretName)
		}
		in.tls = append(in.tls, one)
	}
	return in
}

// legacyClass is the annotation that named a class before there were classes.
const legacyClass = "kubernetes.io/ingress.class"

// classes are the IngressClasses.
type classes []*networkingv1.IngressClass

// ours reports whether this controller is that of an Ingress' class. One that names no class has
// the default class, which is the newest of several, as for the API server.
func (c classes) ours(in *networkingv1.Ingress) bool {
	class := c.of(in)
	return class != nil && class.Spec.Controller == Controller
}

func (c classes) of(in *networkingv1.Ingress) (found *networkingv1.IngressClass) {
	named := in.Annotations[legacyClass]
	if in.Spec.IngressClassName != nil {
		named = *in.Spec.IngressClassName
	}
	for _, class := range c {
		isDefault := class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
		switch {
		case named != "" && class.Name == named:
			return class
		case named == "" && isDefault && (found == nil || newer(class, found)):
			found = class
		}
	}
	return found
}

func newer(a, b *networkingv1.IngressClass) bool {
	return cmp.Or(b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// wasOurs reports whether an Ingress was ours and has no class any more: then its status is
// cleared. That of one which has another controller's class is for that controller to write.
func (t *translation) wasOurs(in *networkingv1.Ingress, c classes) bool {
	legacy := in.Annotations[legacyClass] != ""
	return len(t.Published) > 0 && !legacy && c.of(in) == nil && equality.Semantic.DeepEqual(&in.Status, t.ingressStatus())
}

// ingressStatus is the status of all Ingresses, or nothing if no address is published.
func (t *translation) ingressStatus() any {
	if len(t.Published) == 0 {
		return nil
	}
	status := &networkingv1.IngressStatus{}
	for _, at := range t.Published {
		one := networkingv1.IngressLoadBalancerIngress{Hostname: at}
		if _, err := netip.ParseAddr(at); err == nil {
			one = networkingv1.IngressLoadBalancerIngress{IP: at}
		}
		status.LoadBalancer.Ingress = append(status.LoadBalancer.Ingress, one)
	}
	return status
}

// paths returns the paths of an Ingress. The default backend is the last one, and has the path /
// of the Ingress' hosts.
func (t *translation) paths(in *ingress) (all []ingressPath) {
	var hosts []string
	for _, rule := range in.Spec.Rules {
		if rule.Host != "" && !validHostname(rule.Host) {
			t.problem(in.Ingress, "InvalidHost", "%q is no host", rule.Host)
			continue
		}
		if !slices.Contains(hosts, rule.Host) {
			hosts = append(hosts, rule.Host)
		}
		if rule.HTTP == nil {
			continue // for the default backend
		}
		for i := range rule.HTTP.Paths {
			p := &rule.HTTP.Paths[i]
			match, path, wrong := in.pathOf(p)
			if wrong != "" {
				t.problem(in.Ingress, "InvalidPath", "host %q, path %q: %s", cmp.Or(rule.Host, "*"), p.Path, wrong)
				continue
			}
			all = append(all, ingressPath{host: rule.Host, match: match, path: path, backend: &p.Backend})
		}
	}
	if in.Spec.DefaultBackend == nil {
		return all
	}
	if len(in.Spec.Rules) == 0 {
		hosts = []string{""} // all that have no server
	}
	for _, host := range hosts {
		all = append(all, ingressPath{host: host, match: nginx.Prefix, path: "/", backend: in.Spec.DefaultBackend})
	}
	return all
}

// pathOf returns how a path selects requests, or what is wrong with it.
func (in *ingress) pathOf(p *networkingv1.HTTPIngressPath) (match nginx.PathMatch, path, wrong string) {
	kind := networkingv1.PathTypeImplementationSpecific
	if p.PathType != nil {
		kind = *p.PathType
	}
	path = p.Path
	switch {
	case kind == networkingv1.PathTypeImplementationSpecific && in.regex && path != "":
		match = nginx.Regex
	case kind == networkingv1.PathTypeImplementationSpecific:
		match, path = nginx.Prefix, cmp.Or(path, "/")
	case kind == networkingv1.PathTypePrefix:
		match = nginx.Prefix
	case kind == networkingv1.PathTypeExact:
		match = nginx.Exact
	default:
		return "", "", "its type is none of Exact, Prefix and ImplementationSpecific"
	}
	if !strings.HasPrefix(path, "/") {
		return "", "", "it does not begin with /"
	}
	path, err := pathText(match, path)
	if err != nil {
		return "", "", err.Error()
	}
	return match, path, ""
}
