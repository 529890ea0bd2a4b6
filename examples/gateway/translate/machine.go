package translate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/kates"
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

// LeavesOut reports whether an EndpointSlice has an endpoint on this machine.
func (o *Options) LeavesOut(s *discoveryv1.EndpointSlice) bool {
	return o.Endpoint == nil && s != nil && slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
		if len(e.Addresses) == 0 {
			return false
		}
		ip, err := netip.ParseAddr(e.Addresses[0])
		return err == nil && (ip.Zone() != "" || o.Machine.local(ip))
	})
}

// mostLeftOut is of how many Services an object is told that endpoints are left out, and of how
// many endpoints of each.
const mostLeftOut = 3

// tellLeftOut says of an object which endpoints of an upstream that it names are left out.
func (t *translation) tellLeftOut(o kates.Object, upstream string) {
	const reason = "EndpointsLeftOut"
	all := t.leftOut[upstream]
	if len(all) == 0 {
		return
	}
	told := 0
	for _, p := range t.report(o).Problems {
		if p.Reason == reason {
			told++
		}
	}
	if told == mostLeftOut {
		return
	}
	text := strings.Join(all[:min(len(all), mostLeftOut)], ", ")
	if more := len(all) - mostLeftOut; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	t.problem(o, reason, "endpoints of %s (namespace.Service.port) are left out, since they are on the gateway's machine: %s", upstream, text)
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
