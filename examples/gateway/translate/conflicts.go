package translate

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// findConflicts finds the listeners that cannot be told apart: two protocols at one port, or one
// host twice. Within a Gateway none of them is served, as the API says. Of two Gateways at the
// same address the older one keeps its listener. An Ingress keeps the protocol of its ports.
func (t *translation) findConflicts(all []*gateway) {
	taken := map[listener]string{} // by address, port, and protocol or host: who has it
	for l := range t.table {
		taken[listener{address: l.address, port: l.port, tls: l.tls}] = "an Ingress"
	}
	for _, g := range all {
		g.taken = taken
		for i, l := range g.listeners {
			for _, other := range g.listeners[i+1:] {
				l.compare(other)
			}
		}
		for _, l := range g.listeners {
			l.compareWithOthers(taken)
		}
		for _, l := range g.listeners {
			l.take(taken)
		}
	}
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
func (l *gatewayListener) compareWithOthers(taken map[listener]string) {
	for _, address := range l.gateway.listen {
		if !holds(l.accepted) {
			return
		}
		if by := taken[listener{address: address, port: l.port, tls: !l.tls}]; by != "" {
			l.conflict(gatewayv1.ListenerReasonProtocolConflict, by)
		} else if by := taken[l.at(address)]; by != "" {
			l.conflict(gatewayv1.ListenerReasonHostnameConflict, by)
		}
	}
}

// take notes what a listener has, if it is accepted.
func (l *gatewayListener) take(taken map[listener]string) {
	for _, address := range l.gateway.listen {
		if holds(l.accepted) {
			taken[listener{address: address, port: l.port, tls: l.tls}] = l.String()
			taken[l.at(address)] = l.String()
		}
	}
}

// at is where the listener is, with its host. The host of all is written "*" here, since an empty
// one stands for the port.
func (l *gatewayListener) at(address string) listener {
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

// isolated reports whether requests for a host that the listener has belong to another one of the
// same port, whose host is narrower.
func (l *gatewayListener) isolated(host string) bool {
	for ; covers(l.host, host); host = wider(host) {
		for _, address := range l.gateway.listen {
			if l.gateway.taken[listener{address: address, port: l.port, tls: l.tls, host: host}] != "" {
				return true
			}
		}
	}
	return false
}
