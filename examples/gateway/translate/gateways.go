package translate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/kates"
)

// gateway is a Gateway of ours, and what is found out about it.
type gateway struct {
	*gatewayv1.Gateway                                  // the version that is served
	observed           *gatewayv1.Gateway               // as the snapshot has it
	withdrawn          bool                             // nginx has refused it, and took no version before
	published          []gatewayv1.GatewayStatusAddress // what the status says about its addresses
	unaddressed        metav1.Condition                 // Programmed is False for it, if it has a reason
	accepted           metav1.Condition
	listeners          []*gatewayListener
	notes
}

// arrangement is what each Gateway of ours has: of addresses, ports and hosts of listeners.
type arrangement struct {
	gateways map[key]*gateway
	holders  map[listener]holder
}

// arrange reads the Gateways of ours. What one has depends on all of them.
// See https://gateway-api.sigs.k8s.io/reference/spec/
func (t *translation) arrange() (arrangement, error) {
	all := t.ourGateways()
	t.assignAddresses(all)
	t.refusePorts(all)
	a := arrangement{map[key]*gateway{}, t.findConflicts(all)}
	for _, g := range all {
		a.gateways[name(g.observed)] = g
		g.accept()
		for _, l := range g.listeners {
			slices.Sort(l.overlaps)
			l.served = holds(g.accepted) && holds(l.accepted)
		}
	}
	return a, nil
}

// holdersOf are the listeners of all Gateways.
func (t *translation) holdersOf() (map[listener]holder, error) {
	a, err := t.arrangement.Get(t.r)
	return a.holders, err
}

// gateway is a Gateway of ours, with the hosts of its listeners.
func (t *translation) gateway(k key, o *gatewayv1.Gateway) (*fragment, error) {
	a, err := t.arrangement.Get(t.r)
	g := a.gateways[k]
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return nil, derive.Skip
	}
	f := &fragment{object: o, gateway: g, notes: g.notes}
	for _, l := range g.listeners {
		f.attach(l, g.Gateway, nil, l.host)
	}
	return f, nil
}

// listenersOf are those of a Gateway of ours. They do not change with its status.
func (t *translation) listenersOf(_ key, f *fragment) ([]*gatewayListener, error) {
	return f.gateway.listeners, nil
}

// ourGateways are the Gateways of this controller's classes, the oldest one first.
func (t *translation) ourGateways() []*gateway {
	var all []*gateway
	for _, o := range t.gateways.All(t.r) {
		class, err := t.gatewayClasses.Get(t.r, key{Name: string(o.Spec.GatewayClassName)})
		if err != nil || !isOurs(class) {
			continue
		}
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
		g.notes, t.notes = t.notes, notes{}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *gateway) int { return older(a.observed, b.observed) })
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

// attachment is what an object has for a host at a listener: a Gateway the host of the listener
// itself, and an HTTPRoute its rules.
type attachment struct {
	*gatewayListener
	object kates.Object
	rules  *routeRules // nil: it is of a Gateway
}

// attach adds what an object has for a host: at each address of the Gateway, and nothing if the
// listener is not served.
func (f *fragment) attach(l *gatewayListener, o kates.Object, rules *routeRules, host string) {
	if !l.served {
		return
	}
	if f.attachments == nil {
		f.attachments = map[place][]attachment{}
	}
	for _, address := range l.listen {
		at := place{address, host}
		f.attachments[at] = append(f.attachments[at], attachment{l, o, rules})
	}
}

// at is where the listener serves a host.
func (l *gatewayListener) at(p place) listener {
	return listener{address: p.address, port: l.port, tls: l.tls, host: p.host}
}

// counted is a listener of a Gateway.
type counted struct {
	gateway  key
	listener int
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
	routes := t.attached.Members(t.r, name(g.observed))
	for i, l := range g.listeners {
		s := l.status(g.observed.Generation, holds(programmed))
		for _, route := range routes.All() {
			s.AttachedRoutes += route.counts[counted{name(g.observed), i}]
		}
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
