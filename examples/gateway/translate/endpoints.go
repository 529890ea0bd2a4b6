package translate

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// backendPort is a port of a Service: its name, or its number.
type backendPort struct {
	name   string
	number int32
}

func (p backendPort) String() string {
	if p.name != "" {
		return fmt.Sprintf("%q", p.name)
	}
	return fmt.Sprint(p.number)
}

// upstream adds the endpoints of a Service's port, and returns the ID of the upstream. The port
// has a name or a number. An error says why there is none; a Service without endpoints is no
// error.
func (t *translation) upstream(namespace, service string, port backendPort) (id string, err error) {
	key := types.NamespacedName{Namespace: namespace, Name: service}
	s := t.snap.Services[key]
	switch {
	case s == nil:
		return "", fmt.Errorf("there is no Service %s", key)
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return "", fmt.Errorf("the Service %s is of type ExternalName, which is not served", key)
	}
	found, err := portOf(s, port)
	if err != nil {
		return "", err
	}
	// No part of the ID has a dot, so it stands for one port of one Service.
	id = namespace + "." + service + "." + strconv.Itoa(int(found.Port))
	if _, done := t.leftOut[id]; !done {
		list, leftOut := t.endpoints(key, found.Name)
		if t.leftOut[id] = leftOut; !t.ReportsOnly {
			t.config.Upstreams[id] = list
		}
	}
	return id, nil
}

func portOf(s *corev1.Service, port backendPort) (*corev1.ServicePort, error) {
	other := corev1.Protocol("")
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if port.name != "" && p.Name != port.name || port.name == "" && p.Port != port.number {
			continue
		}
		if p.Protocol == corev1.ProtocolTCP || p.Protocol == "" {
			return p, nil
		}
		other = p.Protocol
	}
	if other != "" {
		return nil, fmt.Errorf("port %s of Service %s/%s is for %s, not TCP", port, s.Namespace, s.Name, other)
	}
	return nil, fmt.Errorf("the Service %s/%s has no port %s", s.Namespace, s.Name, port)
}

// endpoints returns the endpoints of a Service's port, which slices know by its name. They are
// those that kube-proxy would use: the ready ones, and if there is none, those that are
// terminating and still serve (KEP-1669). It also returns the addresses of those on this machine,
// which are left out.
func (t *translation) endpoints(service types.NamespacedName, port string) (all, leftOut []string) {
	home := &endpoints{change: t.Endpoint, machine: &t.Machine}
	for _, slice := range t.slicesOf(service) {
		home.add(slice, port)
	}
	ready := home.near(t.Zone)
	away := &endpoints{change: t.Endpoint, machine: &t.Machine}
	for _, slice := range t.Remote[service] {
		away.add(slice, port)
	}
	for _, e := range away.ready {
		ready = append(ready, e.at)
	}
	if len(ready) == 0 {
		ready = append(home.ending, away.ending...)
	}
	return compact(ready), compact(append(home.leftOut, away.leftOut...))
}

func compact(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// slicesOf returns the EndpointSlices of a Service. They are grouped once in a translation.
func (t *translation) slicesOf(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	if t.slices == nil {
		var all groups
		all.follow(t.snap.Slices)
		t.slices = all.of
	}
	return t.slices[service]
}

// endpoints are those of one port, by their conditions.
type endpoints struct {
	change  func(address string) string
	machine *Machine
	ready   []endpoint
	ending  []string // terminating, and serving
	leftOut []string // addresses of this machine
}

type endpoint struct {
	at    string
	zones []discoveryv1.ForZone // that it is for
}

// add adds the endpoints of a slice that has the port. An address that is none is left out, and so
// is one of this machine: who may write an EndpointSlice must not reach what is there.
func (e *endpoints) add(slice *discoveryv1.EndpointSlice, port string) {
	number := slicePort(slice, port)
	if number == 0 || slice.AddressType == discoveryv1.AddressTypeFQDN {
		return
	}
	e.ready = slices.Grow(e.ready, len(slice.Endpoints))
	for i := range slice.Endpoints {
		from := &slice.Endpoints[i]
		if len(from.Addresses) == 0 {
			continue
		}
		address := from.Addresses[0] // the others stand for the same endpoint
		if e.change != nil {
			address = e.change(address)
		}
		ip, err := netip.ParseAddr(address)
		if err != nil {
			continue
		}
		at := netip.AddrPortFrom(ip, number).String()
		c := from.Conditions
		ready, ending := c.Ready == nil || *c.Ready, c.Serving != nil && *c.Serving && c.Terminating != nil && *c.Terminating
		switch {
		case !ready && !ending:
		case ip.Zone() != "" || e.change == nil && e.machine.local(ip):
			e.leftOut = append(e.leftOut, ip.String())
		case ready:
			one := endpoint{at: at}
			if from.Hints != nil {
				one.zones = from.Hints.ForZones
			}
			e.ready = append(e.ready, one)
		default:
			e.ending = append(e.ending, at)
		}
	}
}

func slicePort(slice *discoveryv1.EndpointSlice, name string) uint16 {
	for _, p := range slice.Ports {
		named, tcp := p.Name == nil && name == "" || p.Name != nil && *p.Name == name, p.Protocol == nil || *p.Protocol == corev1.ProtocolTCP
		if named && tcp && p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
			return uint16(*p.Port)
		}
	}
	return 0
}

// near returns the ready endpoints for a zone, and all of them where the hints are incomplete, or
// none is for the zone. That is what kube-proxy does.
// See https://kubernetes.io/docs/concepts/services-networking/topology-aware-routing/
func (e *endpoints) near(zone string) []string {
	var near []string
	all, hinted := make([]string, 0, len(e.ready)), zone != ""
	for _, one := range e.ready {
		all = append(all, one.at)
		hinted = hinted && len(one.zones) > 0
		if zone != "" && slices.Contains(one.zones, discoveryv1.ForZone{Name: zone}) {
			near = append(near, one.at)
		}
	}
	if hinted && len(near) > 0 {
		return near
	}
	return all
}
