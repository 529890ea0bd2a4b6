package translate

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates"
)

// gateway is a Gateway of ours, and what is found out about it.
type gateway struct {
	*gatewayv1.Gateway                                  // the version that is served
	observed           *gatewayv1.Gateway               // as the snapshot has it
	withdrawn          bool                             // nginx has refused it, and took no version before
	listen             []string                         // the addresses to listen at
	published          []gatewayv1.GatewayStatusAddress // what the status says about them
	unaddressed        metav1.Condition                 // Programmed is False for it, if it has a reason
	accepted           metav1.Condition
	listeners          []*gatewayListener
	taken              map[listener]holder // the listeners of all Gateways, see findConflicts
}

// gateways reads the Gateways of ours and their Routes, reports on them, and claims their hosts.
// See https://gateway-api.sigs.k8s.io/reference/spec/
func (t *translation) gateways() {
	all := t.ourGateways(t.gatewayClasses())
	t.assignAddresses(all)
	t.refusePorts(all)
	t.findConflicts(all)
	byName := map[types.NamespacedName]*gateway{}
	for _, g := range all {
		byName[name(g.observed)] = g
		g.accept()
		for _, l := range g.listeners {
			t.claimHosts(l.attach(g.Gateway, nil, l.host))
		}
	}
	for _, r := range slices.SortedFunc(slices.Values(t.snap.Routes), byAge) {
		t.route(r, byName)
	}
	for _, g := range all {
		t.report(g.observed).Status = t.gatewayStatus(g)
	}
}

// byAge is older for one type.
func byAge[T kates.Object](a, b T) int { return older(a, b) }

// ourGateways are the Gateways of these classes, the oldest one first.
func (t *translation) ourGateways(classes map[gatewayv1.ObjectName]bool) []*gateway {
	var all []*gateway
	for _, o := range slices.SortedFunc(slices.Values(t.snap.Gateways), byAge) {
		if !classes[o.Spec.GatewayClassName] {
			continue
		}
		t.report(o)
		g := &gateway{observed: o, Gateway: o}
		if served, ok := t.current(o).(*gatewayv1.Gateway); ok {
			g.Gateway = served
		} else {
			g.withdrawn = true
		}
		if infra := g.Spec.Infrastructure; infra != nil && infra.ParametersRef != nil {
			g.accepted = isFalse(gatewayv1.GatewayConditionAccepted, gatewayv1.GatewayReasonInvalidParameters,
				"spec.infrastructure.parametersRef names %s %q: this controller has no parameters; remove it",
				infra.ParametersRef.Kind, infra.ParametersRef.Name)
		}
		for _, l := range g.Spec.Listeners {
			g.listeners = append(g.listeners, t.listener(g, l))
		}
		all = append(all, g)
	}
	return all
}

// accept decides whether a Gateway is accepted: it is if one of its listeners is, and nothing is
// wrong with the Gateway as a whole.
func (g *gateway) accept() {
	const accepted = gatewayv1.GatewayConditionAccepted
	good := 0
	for _, l := range g.listeners {
		if holds(l.accepted) {
			good++
		}
	}
	switch {
	case g.accepted.Reason != "": // something is wrong with the Gateway as a whole
	case good == 0:
		g.accepted = isFalse(accepted, gatewayv1.GatewayReasonListenersNotValid, "no listener can be served: see status.listeners")
	case good < len(g.listeners):
		g.accepted = isTrue(accepted, gatewayv1.GatewayReasonListenersNotValid)
		g.accepted.Message = "not all listeners can be served: see status.listeners"
	default:
		g.accepted = isTrue(accepted, gatewayv1.GatewayReasonAccepted)
	}
}

// attachment is what an object has at a listener: a Gateway the host of the listener itself, and an
// HTTPRoute its rules for one of its hosts.
type attachment struct {
	*gatewayListener
	object kates.Object
	rules  *routeRules // nil: none
	host   string
}

func (l *gatewayListener) attach(o kates.Object, rules *routeRules, host string) attachment {
	return attachment{l, o, rules, host}
}

// at are the places of the host: one for each address of the Gateway, and none if the listener is
// not served.
func (a attachment) at() (all []listener) {
	if !holds(a.gateway.accepted) || !holds(a.accepted) {
		return nil
	}
	for _, address := range a.gateway.listen {
		all = append(all, listener{address: address, port: a.port, tls: a.tls, host: a.host})
	}
	return all
}

// claimHosts claims the host of an attachment.
func (t *translation) claimHosts(a attachment) {
	for _, at := range a.at() {
		t.claimHost(at.address, at.host, a.object, a.object.GetNamespace(), a.gateway.Namespace)
	}
	t.attached = append(t.attached, a)
}

// serveGateways adds a server for the host of each listener, even if no Route comes: requests to it
// must not go to another listener, whose host is wider. Then it adds the rules of Routes.
func (t *translation) serveGateways() {
	for _, a := range t.attached {
		for _, at := range a.at() {
			t.serverOf(a, at)
		}
	}
	for _, a := range t.attached {
		if a.rules == nil {
			continue
		}
		for _, at := range a.at() {
			if s := t.table[at]; s != nil {
				a.addRules(s)
			}
		}
	}
}

// serverOf adds the server of a host of a listener. Another namespace that has the host has its
// server, too, if it is one of TLS.
func (t *translation) serverOf(a attachment, at listener) {
	if at.tls && !t.secures(at, a.object.GetNamespace(), a.gateway.Namespace) {
		t.insecure(a.object, at)
		return
	}
	s := t.table.server(at, a.object)
	if !at.tls {
		return
	}
	if !s.ofIngress {
		s.listener = cmp.Or(s.listener, a.gatewayListener.host, "*")
	}
	switch {
	case a.certificate == "":
	case s.certificate == "":
		s.certificate, s.secured = a.certificate, sourceOf(a.gateway)
	case s.certificate != a.certificate:
		t.problem(a.gateway.observed, "Conflict", "listener %q: %s %s/%s has host %q with another certificate, which is served",
			a.Name, s.secured.Kind, s.secured.Namespace, s.secured.Name, at.host)
	}
}

// gatewayStatus is the status of a Gateway and of its listeners.
func (t *translation) gatewayStatus(g *gateway) *gatewayv1.GatewayStatus {
	programmed := t.programmed(g)
	status := &gatewayv1.GatewayStatus{
		Addresses:  g.published,
		Conditions: observed(g.observed.Generation, g.accepted, programmed),
	}
	if t.refusal(g.observed) == "" { // else it is reported already
		t.complain(g.observed, g.accepted, programmed)
	}
	for _, l := range g.listeners {
		s := l.status(g.observed.Generation, holds(programmed))
		status.Listeners = append(status.Listeners, s)
		for _, c := range []metav1.Condition{l.accepted, l.resolved} {
			if !holds(c) {
				t.problem(g.observed, c.Reason, "listener %q: %s", l.Name, c.Message)
			}
		}
	}
	return status
}

// programmed says whether a Gateway is served, as the snapshot has it.
func (t *translation) programmed(g *gateway) metav1.Condition {
	const programmed = gatewayv1.GatewayConditionProgrammed
	served := slices.ContainsFunc(g.listeners, func(l *gatewayListener) bool { return holds(l.programmed()) })
	refused := t.refusal(g.observed)
	switch {
	case !holds(g.accepted):
		return isFalse(programmed, gatewayv1.GatewayReasonInvalid, "the Gateway is not accepted")
	case refused != "":
		return isFalse(programmed, gatewayv1.GatewayReasonInvalid, "%s", refused)
	case g.unaddressed.Reason != "":
		return g.unaddressed
	case !served:
		return isFalse(programmed, gatewayv1.GatewayReasonInvalid, "no listener is served: see status.listeners")
	}
	return isTrue(programmed, gatewayv1.GatewayReasonProgrammed)
}

// complain reports the first of the conditions that is False.
func (t *translation) complain(o kates.Object, conditions ...metav1.Condition) {
	for _, c := range conditions {
		if !holds(c) {
			t.problem(o, c.Reason, "%s", c.Message)
			return
		}
	}
}
