package translate

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates"
)

// findConflicts finds the listeners that cannot be told apart: two protocols at one port, or one
// host twice. Within a Gateway none of them is served, as the API says. Of two Gateways at the
// same address the older one keeps its listener. Where Ingresses may be, which a class says, they
// keep the protocols of their ports. It returns who has which listener.
func (t *translation) findConflicts(all []*gateway) map[listener]holder {
	taken := map[listener]holder{} // by address, port, and protocol or host: who has it
	classes, _ := t.classes.Get(t.r)
	if slices.ContainsFunc(classes, func(c *networkingv1.IngressClass) bool { return c.Spec.Controller == Controller }) {
		for _, l := range []listener{t.http(""), t.https("")} {
			taken[l] = holder{name: "an Ingress"}
		}
	}
	for _, g := range all {
		for i, l := range g.listeners {
			for _, other := range g.listeners[i+1:] {
				l.compare(other)
			}
		}
		for _, l := range g.listeners {
			l.compareWithOthers(taken)
		}
		for _, l := range g.listeners {
			l.claimPlace(taken)
		}
	}
	return taken
}

// holder is who has a listener.
type holder struct {
	name    string
	gateway *kates.PartialObjectMetadata // nil: Ingresses have the port
}

// compare finds what is wrong between two listeners of a Gateway.
func (l *gatewayListener) compare(other *gatewayListener) {
	switch {
	case !holds(l.accepted) && !holds(l.conflicted), !holds(other.accepted) && !holds(other.conflicted), l.port != other.port:
	case l.tls != other.tls:
		l.conflict(gatewayv1.ListenerReasonProtocolConflict, other.String())
		other.conflict(gatewayv1.ListenerReasonProtocolConflict, l.String())
	case l.host == other.host:
		l.conflict(gatewayv1.ListenerReasonHostnameConflict, other.String())
		other.conflict(gatewayv1.ListenerReasonHostnameConflict, l.String())
	case l.tls && (covers(l.host, other.host) || covers(other.host, l.host)):
		l.overlaps = append(l.overlaps, string(other.Name))
		other.overlaps = append(other.overlaps, string(l.Name))
	}
}

// compareWithOthers finds what is wrong between a listener and those that were there before its
// Gateway.
func (l *gatewayListener) compareWithOthers(taken map[listener]holder) {
	for _, address := range l.listen {
		if !holds(l.accepted) {
			return
		}
		if by := taken[listener{address: address, port: l.port, tls: !l.tls}]; by.name != "" {
			l.conflict(gatewayv1.ListenerReasonProtocolConflict, by.name)
		} else if by := taken[l.named(address)]; by.name != "" {
			l.conflict(gatewayv1.ListenerReasonHostnameConflict, by.name)
		}
	}
}

// claimPlace notes what a listener has, if it is accepted.
func (l *gatewayListener) claimPlace(taken map[listener]holder) {
	for _, address := range l.listen {
		if holds(l.accepted) {
			taken[listener{address: address, port: l.port, tls: l.tls}] = holder{l.String(), l.gateway}
			taken[l.named(address)] = holder{l.String(), l.gateway}
		}
	}
}

// named is where the listener is, with its host. The host of all is written "*" here: an empty
// one stands for the port.
func (l *gatewayListener) named(address string) listener {
	host := l.host
	if host == "" {
		host = "*"
	}
	return listener{address: address, port: l.port, tls: l.tls, host: host}
}

// conflict says that the listener cannot be told from another one.
func (l *gatewayListener) conflict(reason gatewayv1.ListenerConditionReason, other string) {
	what := fmt.Sprintf("port %d has another protocol at %s", l.Port, other)
	if reason == gatewayv1.ListenerReasonHostnameConflict {
		what = fmt.Sprintf("%s has port %d and hostname %q, too", other, l.Port, l.host)
	}
	l.accepted = isFalse(gatewayv1.ListenerConditionAccepted, reason, "%s", what)
	l.conflicted = isTrue(gatewayv1.ListenerConditionConflicted, reason)
	l.conflicted.Message = l.accepted.Message
}

// isolated returns the Gateway that has the requests for a host of a Route at a listener, with
// another listener of the same port whose host is narrower. There is none if the listener has them.
// A younger Gateway of another namespace takes no host from a Route.
func (l *gatewayListener) isolated(taken map[listener]holder, host string, r *gatewayv1.HTTPRoute) *kates.PartialObjectMetadata {
	for ; covers(l.host, host); host = wider(host) {
		for _, address := range l.listen {
			by := taken[listener{address: address, port: l.port, tls: l.tls, host: host}].gateway
			if by != nil && (by.Namespace == l.gateway.Namespace || older(by, r) < 0) {
				return by
			}
		}
	}
	return nil
}
