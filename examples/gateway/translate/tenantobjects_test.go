package translate

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates"
)

// thing is an object of a tenant in few words: an Ingress with one rule, a Gateway with one
// listener, or an HTTPRoute with one host and match.
type thing struct {
	kind            byte // i, g or r
	namespace, name string
	age             int    // 0 is the oldest
	host            string // empty: all
	tls, broken     bool   // it has a certificate, of which there is no Secret
	named           string // in spec.tls of an Ingress
	port            int    // of a Gateway
	open            bool   // a Gateway for Routes of all namespaces
	to              string // the Gateway of a Route
	match           string // Exact, Prefix or Regex
	text, path      string // as it is written, and as package path cleans it; empty if that is none
	method, header  bool   // conditions of a Route
}

func (t *thing) meta(o kates.Object, kind string) {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: kind})
	o.SetNamespace(t.namespace)
	o.SetName(t.name)
	o.SetUID(types.UID(t.namespace + "/" + t.name))
	o.SetResourceVersion("1")
	o.SetCreationTimestamp(metav1.Time{Time: born.AddDate(0, t.age, 0)})
}

func (t *thing) secret() string {
	if t.broken {
		return "none"
	}
	return "cert"
}

func (t *thing) ingress() *networkingv1.Ingress {
	in := &networkingv1.Ingress{}
	t.meta(in, "Ingress")
	in.Spec.IngressClassName = ptr.To("ours")
	kind := networkingv1.PathType(t.match)
	if t.match == "Regex" {
		kind, in.Annotations = networkingv1.PathTypeImplementationSpecific, map[string]string{prefix + "use-regex": "true"}
	}
	in.Spec.Rules = []networkingv1.IngressRule{{Host: t.host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: t.text, PathType: &kind, Backend: *backendOf("web")}},
	}}}}
	if t.tls {
		in.Spec.TLS = []networkingv1.IngressTLS{{SecretName: t.secret()}}
		if t.named != "" {
			in.Spec.TLS[0].Hosts = []string{t.named}
		}
	}
	return in
}

func (t *thing) gateway() *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{}
	t.meta(g, "Gateway")
	from, host := gatewayv1.NamespacesFromSame, gatewayv1.Hostname(t.host)
	if t.open {
		from = gatewayv1.NamespacesFromAll
	}
	l := gatewayv1.Listener{Name: "l", Port: gatewayv1.PortNumber(t.port), Protocol: gatewayv1.HTTPProtocolType, Hostname: &host}
	l.AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &from}}
	if t.tls {
		l.Protocol, l.TLS = gatewayv1.HTTPSProtocolType, &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: gatewayv1.ObjectName(t.secret())}}}
	}
	g.Spec.GatewayClassName, g.Spec.Listeners = "kates", []gatewayv1.Listener{l}
	return g
}

func (t *thing) route() *gatewayv1.HTTPRoute {
	r := &gatewayv1.HTTPRoute{}
	t.meta(r, "HTTPRoute")
	namespace, called, _ := strings.Cut(t.to, "/")
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(called), Namespace: ptr.To(gatewayv1.Namespace(namespace))}}
	if t.host != "" {
		r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(t.host)}
	}
	kind := map[string]gatewayv1.PathMatchType{"Exact": gatewayv1.PathMatchExact, "Prefix": gatewayv1.PathMatchPathPrefix, "Regex": gatewayv1.PathMatchRegularExpression}[t.match]
	match := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &t.text}}
	if t.method {
		match.Method = ptr.To(gatewayv1.HTTPMethodGet)
	}
	if t.header {
		match.Headers = []gatewayv1.HTTPHeaderMatch{{Name: "x", Value: "1"}}
	}
	to := gatewayv1.HTTPBackendRef{}
	to.Name, to.Port = "web", ptr.To(gatewayv1.PortNumber(80))
	r.Spec.Rules = []gatewayv1.HTTPRouteRule{{Matches: []gatewayv1.HTTPRouteMatch{match}, BackendRefs: []gatewayv1.HTTPBackendRef{to}}}
	return r
}
