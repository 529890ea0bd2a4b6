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

// tellLeftOut says of an object which endpoints of the upstreams that it names are left out. It
// looks up nothing else of endpoints, so that other changes of them are none of a report.
func (t *translation) tellLeftOut(o kates.Object, upstreams []string) {
	told := map[string]bool{}
	for _, id := range upstreams {
		if len(told) == mostLeftOut {
			return
		}
		all, err := t.leftOut.Get(t.r, id)
		if err != nil || told[id] {
			continue
		}
		told[id] = true
		text := strings.Join(all[:min(len(all), mostLeftOut)], ", ")
		if more := len(all) - mostLeftOut; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		t.problem(o, "EndpointsLeftOut", "endpoints of %s (namespace.Service.port) are left out, since they are on the gateway's machine: %s", id, text)
	}
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// whyTaken says why nginx cannot listen somewhere. It is empty if nginx can.
func (t *translation) whyTaken(address string, port int) string {
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
			for _, address := range l.listen {
				why = cmp.Or(why, t.whyTaken(address, l.port))
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
