package translate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// Machine is what objects get nothing of, since it is the gateway's own, or somebody else's.
type Machine struct {
	Addresses []netip.Addr  // of this machine: no endpoint is there
	Ports     []int         // of the gateway itself: no listener is there
	Taken     []nginx.Taken // where nginx cannot listen now: nothing is served there
}

// local reports whether requests to an address would reach this machine, or what only this machine
// reaches: the gateway's own pages, nginx itself, the metadata service of a cloud.
func (m *Machine) local(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
		ip == broadcast || slices.Contains(m.Addresses, ip)
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// taken says why nginx cannot listen somewhere. It is empty if nginx can.
func (t *translation) taken(address string, port int) string {
	if address == "" && t.Address.IsValid() {
		address = t.Address.String()
	}
	for _, one := range t.Machine.Taken {
		if one.Address == address && one.Port == port {
			return one.Message
		}
	}
	return ""
}

// refusePorts refuses the listeners at ports that they cannot have. The others of their Gateways
// are served.
func (t *translation) refusePorts(all []*gateway) {
	for _, g := range all {
		for _, l := range g.listeners {
			why := ""
			for _, address := range g.listen {
				why = cmp.Or(why, t.taken(address, l.port))
			}
			if slices.Contains(t.Machine.Ports, l.port) {
				why = fmt.Sprintf("port %d is one of the gateway itself", l.Port)
			}
			if why != "" && holds(l.accepted) {
				l.accepted = isFalse(gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerReasonPortUnavailable, "%s", why)
			}
		}
	}
}

// withoutTaken leaves out the servers where nginx cannot listen, and says so of the objects that
// have rules there.
func (t *translation) withoutTaken(all []nginx.Server) []nginx.Server {
	return slices.DeleteFunc(all, func(s nginx.Server) bool {
		why := t.taken(s.Address, s.Port)
		if why == "" {
			return false
		}
		for _, l := range s.Locations {
			for _, r := range l.Rules {
				if of := t.reports[r.Source.UID]; of != nil {
					t.problem(of.Object, string(gatewayv1.ListenerReasonPortUnavailable), "%s", why)
				}
			}
		}
		return true
	})
}
