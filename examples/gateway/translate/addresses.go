package translate

import (
	"net/netip"
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// assignAddresses gives each Gateway its addresses. Who has an address keeps it, unless it asks for
// others. Then each gets those that it asks for, or the lowest free one: the oldest Gateway comes
// first, whether it asks for one or not. Without a pool all Gateways share all addresses of the
// machine, and may ask for those that are published.
func (t *translation) assignAddresses(all []*gateway) {
	pool := slices.Compact(slices.SortedFunc(slices.Values(t.Addresses), netip.Addr.Compare))
	taken := map[netip.Addr]*gateway{}
	// take gives a Gateway an address, if it is one of ours and free.
	take := func(g *gateway, address string) bool {
		kind, a := gatewayv1.HostnameAddressType, netip.Addr{}
		if ip, err := netip.ParseAddr(address); err == nil {
			kind, a = gatewayv1.IPAddressType, ip
		}
		if len(pool) == 0 && !slices.Contains(t.Published, address) || len(pool) > 0 && !slices.Contains(pool, a) || taken[a] != nil && taken[a] != g {
			return false
		}
		if len(pool) > 0 {
			taken[a] = g
		}
		g.published = append(g.published, gatewayv1.GatewayStatusAddress{Type: &kind, Value: address})
		return true
	}
	for _, g := range all {
		for _, a := range g.has() {
			if taken[a] == nil && slices.Contains(pool, a) {
				taken[a] = g
			}
		}
	}
	for _, g := range all {
		t.claim(g, take)
		if g.accepted.Reason == "" && g.unaddressed.Reason == "" && len(g.published) == 0 {
			t.assign(g, pool, take)
		}
		g.bind(len(pool) > 0)
	}
}

// has returns the addresses that the status of a Gateway has, and that it still wants.
func (g *gateway) has() (all []netip.Addr) {
	for _, of := range g.observed.Status.Addresses {
		named := slices.ContainsFunc(g.Spec.Addresses, func(a gatewayv1.GatewaySpecAddress) bool { return a.Value == of.Value })
		asked := slices.ContainsFunc(g.Spec.Addresses, func(a gatewayv1.GatewaySpecAddress) bool { return a.Value != "" })
		if a, err := netip.ParseAddr(of.Value); err == nil && (named || !asked && len(all) == 0) {
			all = append(all, a)
		}
	}
	return all
}

// claim takes the addresses that a Gateway asks for, or else the one that its status has.
func (t *translation) claim(g *gateway, take func(*gateway, string) bool) {
	for _, a := range g.Spec.Addresses {
		kind := ptr.Deref(a.Type, gatewayv1.IPAddressType)
		if kind != gatewayv1.IPAddressType && kind != gatewayv1.HostnameAddressType {
			g.accepted = isFalse(gatewayv1.GatewayConditionAccepted, gatewayv1.GatewayReasonUnsupportedAddress,
				"spec.addresses: type %q of %q is not known", kind, a.Value)
			return
		}
	}
	asked := false
	for _, a := range g.Spec.Addresses {
		asked = asked || a.Value != ""
		if a.Value != "" && !take(g, a.Value) {
			g.unaddressed = isFalse(gatewayv1.GatewayConditionProgrammed, gatewayv1.GatewayReasonAddressNotUsable,
				"spec.addresses: %q is no address of this gateway, or another Gateway has it", a.Value)
		}
	}
	if asked || len(t.Addresses) == 0 {
		return
	}
	for _, a := range g.observed.Status.Addresses { // it keeps the one that it has
		if take(g, a.Value) {
			return
		}
	}
}

// assign gives a Gateway that asks for nothing in particular an address: the lowest free one, or
// all that are published if there is no pool.
func (t *translation) assign(g *gateway, pool []netip.Addr, take func(*gateway, string) bool) {
	for _, address := range t.Published {
		if len(pool) == 0 {
			take(g, address)
		}
	}
	for _, a := range pool {
		if take(g, a.String()) {
			return
		}
	}
	if len(pool) > 0 {
		g.unaddressed = isFalse(gatewayv1.GatewayConditionProgrammed, gatewayv1.GatewayReasonAddressNotAssigned,
			"all %d addresses of this gateway are in use; give it more of them, or remove another Gateway", len(pool))
	}
}

// bind decides where a Gateway listens: at each of its addresses, or at all of the machine. It
// listens nowhere if it is not accepted, or has asked for addresses and got none.
func (g *gateway) bind(pooled bool) {
	var listen []string
	switch {
	case g.accepted.Reason != "" || g.withdrawn:
	case pooled:
		for _, a := range g.published {
			listen = append(listen, netip.MustParseAddr(a.Value).String())
		}
	case len(g.published) > 0 || g.unaddressed.Reason == "":
		listen = []string{""}
	}
	for _, l := range g.listeners {
		l.listen = listen
	}
}
