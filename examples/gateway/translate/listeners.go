package translate

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates"
)

// gatewayListener is a listener of a Gateway, and what is found out about it.
type gatewayListener struct {
	gatewayv1.Listener
	gateway     *kates.PartialObjectMetadata // its identity
	index       int                          // in the Gateway
	host        string
	port        int // to listen at
	tls         bool
	certificate string
	kinds       []gatewayv1.RouteGroupKind // of Routes that may attach

	accepted, resolved metav1.Condition
	conflicted         metav1.Condition // has a message if True
	overlaps           []string         // names of listeners of TLS whose hosts overlap with its host
	listen             []string         // the addresses to listen at
	served             bool
}

// listener reads a listener. Whether it conflicts with others is found later.
func (t *translation) listener(g *gateway, of gatewayv1.Listener) *gatewayListener {
	l := &gatewayListener{
		Listener: of, gateway: identityOf(g.Gateway), index: len(g.listeners), host: string(ptr.Deref(of.Hostname, "")), port: t.port(int(of.Port)),
		tls:        of.Protocol == gatewayv1.HTTPSProtocolType,
		kinds:      []gatewayv1.RouteGroupKind{},
		accepted:   isTrue(gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerReasonAccepted),
		resolved:   isTrue(gatewayv1.ListenerConditionResolvedRefs, gatewayv1.ListenerReasonResolvedRefs),
		conflicted: isFalse(gatewayv1.ListenerConditionConflicted, gatewayv1.ListenerReasonNoConflicts, ""),
	}
	const accepted = gatewayv1.ListenerConditionAccepted
	switch {
	case of.Protocol != gatewayv1.HTTPProtocolType && !l.tls:
		l.accepted = isFalse(accepted, gatewayv1.ListenerReasonUnsupportedProtocol,
			"protocol %q is not served; those are HTTP and HTTPS", of.Protocol)
	case l.host != "" && !validHostname(l.host):
		l.accepted = isFalse(accepted, gatewayv1.ListenerReasonUnsupportedValue, "hostname %q is not valid", l.host)
	case l.tls && of.TLS != nil && ptr.Deref(of.TLS.Mode, gatewayv1.TLSModeTerminate) != gatewayv1.TLSModeTerminate:
		l.accepted = isFalse(accepted, gatewayv1.ListenerReasonUnsupportedValue,
			"tls.mode %q is not served; that is Terminate", *of.TLS.Mode)
	case l.tls && validatesClients(g.Spec.TLS, of.Port):
		l.accepted = isFalse(accepted, gatewayv1.ListenerReasonUnsupportedValue,
			"the Gateway's tls.frontend asks for certificates of clients, which are not checked here; the port is not served")
	}
	l.allowKinds()
	if l.tls {
		l.certificate = t.listenerCertificate(l)
	}
	return l
}

// validatesClients reports whether clients of a port must have certificates.
func validatesClients(c *gatewayv1.GatewayTLSConfig, port int32) bool {
	if c == nil || c.Frontend == nil {
		return false
	}
	for _, p := range c.Frontend.PerPort {
		if p.Port == port {
			return p.TLS.Validation != nil
		}
	}
	return c.Frontend.Default.Validation != nil
}

// allowKinds finds the kinds of Routes that may attach. The only one is HTTPRoute.
func (l *gatewayListener) allowKinds() {
	http := gatewayv1.RouteGroupKind{Group: ptr.To(gatewayv1.Group(gatewayv1.GroupName)), Kind: "HTTPRoute"}
	served := l.tls || l.Protocol == gatewayv1.HTTPProtocolType
	if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 {
		if served {
			l.kinds = append(l.kinds, http)
		}
		return
	}
	for _, k := range l.AllowedRoutes.Kinds {
		switch {
		case !served || k.Kind != http.Kind || ptr.Deref(k.Group, *http.Group) != *http.Group:
			l.resolved = isFalse(gatewayv1.ListenerConditionResolvedRefs, gatewayv1.ListenerReasonInvalidRouteKinds,
				"allowedRoutes.kinds: %s is not served with protocol %s", k.Kind, l.Protocol)
		case len(l.kinds) == 0:
			l.kinds = append(l.kinds, http)
		}
	}
}

// listenerCertificate returns the ID of the certificate of a listener of TLS. It is the first one
// that the listener names: nginx has one for a name.
func (t *translation) listenerCertificate(l *gatewayListener) string {
	fail := func(reason gatewayv1.ListenerConditionReason, format string, args ...any) string {
		l.resolved = isFalse(gatewayv1.ListenerConditionResolvedRefs, reason, format, args...)
		return ""
	}
	if l.TLS == nil || len(l.TLS.CertificateRefs) == 0 {
		return fail(gatewayv1.ListenerReasonInvalidCertificateRef, "tls.certificateRefs names no Secret")
	}
	if n := len(l.TLS.CertificateRefs); n > 1 {
		t.problem(l.gateway, "UnsupportedValue",
			"listener %q: tls.certificateRefs names %d Secrets; only the first one is used", l.Name, n)
	}
	ref := l.TLS.CertificateRefs[0]
	if group, kind := ptr.Deref(ref.Group, ""), ptr.Deref(ref.Kind, "Secret"); group != "" || kind != "Secret" {
		return fail(gatewayv1.ListenerReasonInvalidCertificateRef, "tls.certificateRefs: %s is no Secret", kind)
	}
	namespace := string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(l.gateway.Namespace)))
	if !t.granted(reference{"Gateway", l.gateway.Namespace, "Secret", namespace, string(ref.Name)}) {
		return fail(gatewayv1.ListenerReasonRefNotPermitted,
			"tls.certificateRefs: no ReferenceGrant in namespace %s allows Secret %s to Gateways of namespace %s",
			namespace, ref.Name, l.gateway.Namespace)
	}
	pair, err := t.certificate(namespace, string(ref.Name))
	if err != nil {
		return fail(gatewayv1.ListenerReasonInvalidCertificateRef, "tls.certificateRefs: %v", err)
	}
	for _, doubt := range t.doubts(pair, l.host) {
		t.problem(l.gateway, "DoubtfulCertificate", "listener %q: Secret %s/%s: %s", l.Name, namespace, ref.Name, doubt)
	}
	return pair.id
}

// programmed says whether the listener itself can be served.
func (l *gatewayListener) programmed() metav1.Condition {
	const programmed = gatewayv1.ListenerConditionProgrammed
	switch {
	case !holds(l.accepted):
		return isFalse(programmed, gatewayv1.ListenerReasonInvalid, "the listener is not accepted")
	case l.tls && l.certificate == "":
		return isFalse(programmed, gatewayv1.ListenerReasonInvalid, "there is no certificate; handshakes are refused")
	case len(l.kinds) == 0:
		return isFalse(programmed, gatewayv1.ListenerReasonInvalid, "no kind of Route can attach")
	}
	return isTrue(programmed, gatewayv1.ListenerReasonProgrammed)
}

// status is the status of the listener.
func (l *gatewayListener) status(generation int64, served bool) gatewayv1.ListenerStatus {
	programmed := l.programmed()
	if holds(programmed) && !served {
		programmed = isFalse(gatewayv1.ListenerConditionProgrammed, gatewayv1.ListenerReasonPending, "the Gateway is not programmed")
	}
	conditions := []metav1.Condition{l.accepted, programmed, l.resolved, l.conflicted}
	if len(l.overlaps) > 0 {
		overlap := isTrue(gatewayv1.ListenerConditionOverlappingTLSConfig, gatewayv1.ListenerReasonOverlappingHostnames)
		overlap.Message = message("its hostname overlaps with that of %s", strings.Join(slices.Compact(slices.Clone(l.overlaps)), ", "))
		conditions = append(conditions, overlap)
	}
	return gatewayv1.ListenerStatus{
		Name: l.Name, SupportedKinds: l.kinds,
		Conditions: observed(generation, conditions...),
	}
}

// String names the listener to the reader of another Gateway's status.
func (l *gatewayListener) String() string {
	return fmt.Sprintf("listener %q of Gateway %s/%s", l.Name, l.gateway.Namespace, l.gateway.Name)
}
