package traffic

import (
	"crypto/tls"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	networkingv1 "k8s.io/api/networking/v1"
)

// roll replaces a pod of each Service in each round, with two writes. As in a cluster, a pod that
// terminates serves on: here until one that came later serves, and then it ends.
func (w *world) roll(services []*service, pods map[string]*pod, rounds int) {
	w.Helper()
	for range rounds {
		next := make([]*pod, len(services))
		for i, s := range services {
			next[i] = w.pod(s.name)
			pods[next[i].address] = next[i]
			s.add(next[i])
			s.terminate()
			s.write()
		}
		for i, s := range services {
			w.eventually(func() bool { return next[i].served.Load() > 0 }, "a new endpoint serves")
			leaves := s.slice.Endpoints[0].Addresses[0]
			s.remove()
			s.write()
			if pods[leaves] != nil { // those that were there at first end with the test
				w.end(pods[leaves])
			}
		}
	}
}

func TestNoRequestFailsWhileEndpointsChangeFiveHundredTimes(t *testing.T) {
	w := newWorld(t)
	a := w.app()
	g := w.gateway().serve()
	l := w.load(a.routes, g)
	pods := map[string]*pod{}
	reloads := g.metric("nginx_reloads_total")
	w.roll(a.services, pods, 42) // of three Services, with two writes
	assert.Equal(t, reloads, g.metric("nginx_reloads_total"), "endpoints change without a reload")
	w.makeBad()
	w.seesBad()
	w.roll(a.services, pods, 42)
	l.halt()
}

func TestNoRequestFailsWhileIngressesChangeFiftyTimes(t *testing.T) {
	w := newWorld(t)
	a := w.app()
	g := w.gateway().serve()
	l := w.load(a.routes, g)
	web := w.web(g.address, anew)
	var last *networkingv1.Ingress
	for n := range 25 {
		if n == 12 {
			w.makeBad()
			w.seesBad()
		}
		// One comes, and one goes. Each is another server, and another path of a server that
		// serves.
		next := ingress(fmt.Sprint("extra-", n), "one.test", to{fmt.Sprint("/extra-", n), "b"})
		next.Spec.Rules = append(next.Spec.Rules, ingress("", fmt.Sprint("extra-", n, ".test"), to{"/", "c"}).Spec.Rules...)
		w.create(next)
		for _, h := range []healthy{{"http://one.test" + next.Spec.Rules[0].HTTP.Paths[0].Path, "b"}, {"http://" + next.Spec.Rules[1].Host, "c"}} {
			w.eventually(func() bool { return h.wrong(web) == nil }, h.url)
		}
		if last != nil {
			w.delete(last)
		}
		last = next
	}
	w.delete(last)
	gone := healthy{"http://one.test" + last.Spec.Rules[0].HTTP.Paths[0].Path, "a"}
	w.eventually(func() bool { return gone.wrong(web) == nil }, "the last one is gone")
	t.Logf("%g reloads", g.metric("nginx_reloads_total"))
	l.halt()
}

func TestNoRequestFailsWhileACertificateIsRotated(t *testing.T) {
	w := newWorld(t)
	a := w.app()
	g := w.gateway().serve()
	l := w.load(a.routes, g)
	for round := range 3 {
		if round == 1 {
			w.makeBad()
			w.seesBad()
		}
		next := w.authority.secret("tls", "two.test")
		issued := w.authority.issued
		next.Namespace = w.namespace
		w.update(next)
		w.eventually(func() bool { return w.serial(g) == issued }, "the new certificate is served")
		l.reach(200)
	}
	l.halt()
}

// serial is the number of the certificate that a gateway shows.
func (w *world) serial(g *gateway) int64 {
	c, err := tls.Dial("tcp", net.JoinHostPort(g.address, tlsPort), &tls.Config{RootCAs: w.authority.pool(), ServerName: "two.test"})
	if err != nil {
		return 0
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}
