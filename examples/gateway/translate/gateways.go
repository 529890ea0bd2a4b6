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
	taken              map[listener]string // the listeners of all Gateways, see findConflicts
}

// gateways adds what Gateways and their Routes ask for, and reports on them.
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
		t.serve(g)
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

// serve adds a server for the host of each listener, even if no Route comes: requests to it must
// not go to another listener, whose host is wider.
func (t *translation) serve(g *gateway) {
	for _, l := range g.listeners {
		t.serversOf(l, l.host)
	}
}

// serversOf returns the servers of a host of a listener, one for each address of its Gateway.
// There is none if the listener is not served.
func (t *translation) serversOf(l *gatewayListener, host string) []*serverRules {
	if !holds(l.gateway.accepted) || !holds(l.accepted) {
		return nil
	}
	var all []*serverRules
	for _, address := range l.gateway.listen {
		s := t.table.server(listener{address: address, port: l.port, tls: l.tls, host: host})
		if s.source.Name == "" {
			s.source = sourceOf(l.gateway)
		}
		if l.tls {
			s.listener = cmp.Or(l.host, "*")
		}
		switch {
		case s.certificate == "":
			s.certificate = l.certificate
		case l.certificate != "" && l.certificate != s.certificate:
			t.problem(l.gateway.observed, "Conflict", "listener %q: an Ingress has host %q with another certificate, which is served", l.Name, host)
		}
		all = append(all, s)
	}
	return all
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
		return isFalse(programmed, gatewayv1.GatewayReasonInvalid, "nginx refuses it: %s", refused)
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
