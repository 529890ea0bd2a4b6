package translate

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/kates"
)

// site is what is served for a host at an address, at all ports.
type site struct {
	servers []*server
	notes
}

// server is one of nginx, and what follows from whether there is room for it.
type server struct {
	nginx.Server
	at       listener
	first    *kates.PartialObjectMetadata // the oldest object that it is for
	objects  []types.UID                  // that have rules there, or that it is for
	problems map[types.UID][]Problem
	taken    bool // nginx cannot listen there
}

// door is where nginx listens.
type door struct {
	address string
	port    int
}

// Compare orders doors as nginx.Config orders servers.
func (d door) Compare(e door) int {
	return cmp.Or(cmp.Compare(d.address, e.address), cmp.Compare(d.port, e.port))
}

func (s *site) doors() (all []door) {
	for _, one := range s.servers {
		all = append(all, door{one.at.address, one.at.port})
	}
	return all
}

// appendServers appends the servers at a door.
func (s *site) appendServers(to []nginx.Server, at door) []nginx.Server {
	for _, one := range s.servers {
		if one.at.address == at.address && one.at.port == at.port {
			to = append(to, one.Server)
		}
	}
	return to
}

// site makes what is served for a host. Ingresses come first, then Gateways, then Routes.
func (t *translation) site(at place, all contenders) (*site, error) {
	t.at, t.table = at, table{}
	t.owner, _ = t.owners.Get(t.r, at)
	ingresses, attached := at.of(all)
	t.serveIngresses(ingresses)
	t.serveAttached(attached)
	t.boundRegexes()
	s := &site{notes: t.settled()}
	for l, rules := range t.table {
		one := &translation{Options: t.Options, at: at} // with notes of its own
		s.servers = append(s.servers, one.server(l, rules))
	}
	slices.SortFunc(s.servers, func(a, b *server) int { return cmp.Compare(a.at.port, b.at.port) })
	return s, nil
}

// serveIngresses adds what Ingresses ask for.
func (t *translation) serveIngresses(ours []*ingress) {
	for _, in := range ours {
		t.ingressTLS(in)
	}
	canaries := t.canaries(ours)
	for _, in := range ours {
		if !in.canary {
			t.rules(in, canaries)
		}
	}
	t.reportUnusedCanaries(canaries)
}

// serveAttached adds a server for the host of each listener, even if no Route comes: requests to it
// must not go to another listener, whose host is wider. Then it adds the rules of Routes.
func (t *translation) serveAttached(all []attachment) {
	for _, a := range all {
		t.serverOf(a)
	}
	for _, a := range all {
		if s := t.table[a.at(t.at)]; s != nil && a.rules != nil {
			a.addRules(s)
		}
	}
}

// serverOf adds the server of a host of a listener. Another namespace that has the host has its
// server, too, if it is one of TLS.
func (t *translation) serverOf(a attachment) {
	at := a.at(t.at)
	if at.tls && !t.secures(a.object.GetNamespace(), a.gateway.Namespace) {
		t.insecure(a.object)
		return
	}
	s := t.table.server(at, a.object)
	if !at.tls {
		return
	}
	if !s.ofIngress {
		s.listener = cmp.Or(s.listener, a.host, "*")
	}
	switch {
	case a.certificate == "":
	case s.certificate == "":
		s.certificate, s.secured = a.certificate, sourceOf(a.gateway)
	case s.certificate != a.certificate:
		t.problem(a.gateway, "Conflict", "listener %q: %s %s/%s has host %q with another certificate, which is served",
			a.Name, s.secured.Kind, s.secured.Namespace, s.secured.Name, at.host)
	}
}

// server makes the server of a listener. It also finds the rules that no request can reach, or not
// all that they claim, since another object has the path.
func (t *translation) server(l listener, rules *serverRules) *server {
	s := &server{at: l, first: identityOf(rules.first), objects: []types.UID{rules.first.GetUID()}}
	for _, entries := range rules.paths {
		for _, e := range entries {
			s.objects = append(s.objects, e.object.GetUID())
		}
	}
	slices.Sort(s.objects)
	s.objects = slices.Compact(s.objects)

	var lost []dispute
	s.Server = nginx.Server{
		Address: l.address, Port: l.port, TLS: l.tls, Host: l.host,
		Certificate: rules.certificate, Listener: rules.listener, Source: sourceOf(rules.first),
		Locations: rules.locations(func(d dispute) { lost = append(lost, d) }),
	}
	t.reportDisputes(lost)
	if why := t.whyTaken(l.address, l.port); why != "" {
		s.taken = true
		for _, l := range s.Locations {
			for _, r := range l.Rules {
				t.addProblems(r.Source.UID, Problem{string(gatewayv1.ListenerReasonPortUnavailable), why})
			}
		}
	}
	if s.Address == "" && t.Address.IsValid() {
		s.Address = t.Address.String()
	}
	s.problems = t.settled().problems
	return s
}
