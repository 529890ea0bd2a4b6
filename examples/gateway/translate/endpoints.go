package translate

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/fleet"
)

// Endpoints makes the endpoints of a configuration of one snapshot after the other: they change
// more often than all else, and need no reload. It says what Translate says of them, and looks only
// at what has changed. The zero value is ready. It is for one goroutine, and for Options with the
// same functions.
type Endpoints struct {
	g     *graph
	lists derive.Collection[string, []string]
}

// Of returns the endpoints of upstreams, which are named as in a Config. One whose Service or port
// is gone is left out: that takes another configuration.
func (e *Endpoints) Of(snap *Snapshot, o Options, upstreams []string) (map[string][]string, error) {
	if e.g == nil {
		e.g = newEndpoints("endpoints")
		asked := derive.Slice(e.g.Graph, "upstreams", func(in *input) []string { return in.asked }, func(id string) string { return id })
		e.lists = derive.Map(asked, "lists", each(e.g, func(t *translation, id, _ string) ([]string, error) {
			of, err := t.endpointLists(id, struct{}{})
			return of.served, err
		}))
	}
	r, err := e.g.Update(&input{snap, o, upstreams})
	if err != nil {
		return nil, err
	}
	all := make(map[string][]string, e.lists.Len(r))
	for id, list := range e.lists.All(r) {
		all[id] = list
	}
	return all, e.g.failed()
}

// remoteKey names an EndpointSlice of another cluster.
type remoteKey struct{ cluster, namespace, name string }

func remoteKeyOf(s fleet.Object[*discoveryv1.EndpointSlice]) remoteKey {
	return remoteKey{s.Cluster, s.Object.Namespace, s.Object.Name}
}

// serviceOf names the Service of an EndpointSlice.
func serviceOf(s *discoveryv1.EndpointSlice) key {
	return key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
}

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

// upstream returns the ID of the upstream that is a Service's port. The port has a name or a
// number. An error says why there is none; a Service without endpoints is no error.
func (t *translation) upstream(namespace, service string, port backendPort) (id string, err error) {
	found, err := t.servicePort(key{Namespace: namespace, Name: service}, port)
	if err != nil {
		return "", err
	}
	// No part of the ID has a dot, so it stands for one port of one Service.
	return namespace + "." + service + "." + strconv.Itoa(int(found.Port)), nil
}

func (t *translation) servicePort(service key, port backendPort) (*corev1.ServicePort, error) {
	s, err := t.services.Get(t.r, service)
	switch {
	case err != nil:
		return nil, fmt.Errorf("there is no Service %s", service)
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return nil, fmt.Errorf("the Service %s is of type ExternalName, which is not served", service)
	}
	return portOf(s, port)
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

// endpointLists are the endpoints of an upstream, and the addresses of those on this machine, which
// are left out.
type endpointLists struct{ served, leftOut []string }

// endpointLists returns the endpoints of an upstream. There are none if its Service or port is
// gone.
func (t *translation) endpointLists(id string, _ struct{}) (of endpointLists, err error) {
	namespace, rest, _ := strings.Cut(id, ".")
	name, port, _ := strings.Cut(rest, ".")
	number, _ := strconv.ParseInt(port, 10, 32)
	service := key{Namespace: namespace, Name: name}
	found, err := t.servicePort(service, backendPort{number: int32(number)})
	if err != nil {
		return of, derive.Skip
	}
	return t.endpoints(service, found.Name), nil
}

// endpointsLeftOut has an entry only if there are some. So what looks it up does not run for other
// changes of endpoints.
func endpointsLeftOut(_ *derive.Reader, _ string, of endpointLists) ([]string, error) {
	if len(of.leftOut) == 0 {
		return nil, derive.Skip
	}
	return of.leftOut, nil
}

// endpoints returns the endpoints of a Service's port, which slices know by its name. They are
// those that kube-proxy would use: the ready ones, and if there is none, those that are
// terminating and still serve (KEP-1669).
func (t *translation) endpoints(service key, port string) endpointLists {
	home := &endpoints{change: t.Endpoint, machine: &t.Machine}
	for _, slice := range t.slicesOf.Members(t.r, service).All() {
		home.add(slice, port)
	}
	ready := home.near(t.Zone)
	away := &endpoints{change: t.Endpoint, machine: &t.Machine}
	for _, slice := range t.remoteOf.Members(t.r, service).All() {
		away.add(slice.Object, port)
	}
	for _, e := range away.ready {
		ready = append(ready, e.at)
	}
	if len(ready) == 0 {
		ready = append(home.ending, away.ending...)
	}
	return endpointLists{compact(ready), compact(append(home.leftOut, away.leftOut...))}
}

func compact(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
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
