package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates"
)

// step is a change of the application.
type step struct {
	text string
	do   func(context.Context) error
	// shown is the first answer that shows it. Empty: there is none.
	shown string
}

const (
	patience = time.Minute            // how long a change may take to be served
	settled  = 300 * time.Millisecond // after which nginx has counted its reload
)

// play makes one change after the other, over and over.
func (d *Demo) play(ctx context.Context, g Gateway) {
	for round := 0; ; round++ {
		for _, s := range d.script(round) {
			if !pause(ctx, 1500*time.Millisecond) || !d.make(ctx, s, g) {
				return
			}
		}
	}
}

// make makes a change, waits until it is served, and prints a line about it. It reports whether
// ctx is still alive.
func (d *Demo) make(ctx context.Context, s step, g Gateway) bool {
	if g.Reloads == nil {
		d.line("%s", s.text)
		return d.tried(ctx, s)
	}
	served, before, start := d.traffic.wait(s.shown), g.Reloads(), time.Now()
	if !d.tried(ctx, s) {
		return false
	}
	after := ""
	if s.shown != "" {
		select {
		case <-served:
			after = fmt.Sprintf(", served after %d ms", time.Since(start).Milliseconds())
		case <-time.After(patience):
			after = ", and no answer shows it yet"
		case <-ctx.Done():
			return false
		}
	}
	if !pause(ctx, settled) {
		return false
	}
	how := "no reload"
	if g.Reloads() != before {
		how = "reload"
	}
	requests, failed, _ := d.traffic.counts()
	d.line("%7s requests, %d failed   %s%s (%s)", thousands(requests), failed, s.text, after, how)
	return true
}

// tried makes a change. Its error, which there should not be, is printed.
func (d *Demo) tried(ctx context.Context, s step) bool {
	if err := s.do(ctx); err != nil && ctx.Err() == nil {
		d.line("%s: %v", s.text, err)
	}
	return ctx.Err() == nil
}

// script is what happens in a round.
func (d *Demo) script(round int) []step {
	weighted, broken := d.change(0), d.change(1)
	steps := []step{
		{"shop/web: endpoints 2 → 4", d.scale("web", 4), "web 10.1.0.4"},
		{"shop/web: a canary gets 30 %", d.put(weighted), "web-next 10.2.0.1"},
		{"shop/broken: an Ingress without a Service", d.put(broken), ""},
		{"shop/blog: the HTTPRoute goes to blog-v2", d.route("blog-v2"), "blog-v2 10.4.0.1"},
		{"shop/shop-tls: another certificate", d.rotate, fmt.Sprintf("certificate %d", round+3)},
		{"shop/web: endpoints 4 → 2", d.scale("web", 2), ""},
		{"shop/blog: back to blog", d.route("blog"), "blog 10.3.0.1"},
		{"shop/broken and the canary are removed", d.remove(broken, weighted), ""},
	}
	for i, c := range d.clusters {
		steps = append(steps, step{c.name + ": one more endpoint of shop/web", d.remote(c, i, 1), "web " + elsewhere(i)})
	}
	for i, c := range d.clusters {
		steps = append(steps, step{c.name + ": that is gone", d.remote(c, i, 0), ""})
	}
	return steps
}

// endpoints are all that there can be, by Service.
func (d *Demo) endpoints() map[string][]string {
	all := map[string][]string{"web-next": addresses("web-next", 1), "blog": addresses("blog", 1), "blog-v2": addresses("blog-v2", 1)}
	all["web"] = addresses("web", 4)
	for i := range d.options.Clusters {
		all["web"] = append(all["web"], elsewhere(i))
	}
	return all
}

var networks = map[string]int{"web": 1, "web-next": 2, "blog": 3, "blog-v2": 4}

func addresses(service string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("10.%d.0.%d", networks[service], i+1))
	}
	return all
}

// elsewhere is the address of an endpoint in another cluster.
func elsewhere(cluster int) string { return fmt.Sprintf("10.1.%d.1", cluster+1) }

// slice has the endpoints of a Service.
func slice(service string, n int) *discoveryv1.EndpointSlice {
	return sliceOf(service, addresses(service, n))
}

func sliceOf(service string, addresses []string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http")}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

func (d *Demo) scale(service string, n int) func(context.Context) error {
	return d.put(d.withPort(slice(service, n)))
}

func (d *Demo) withPort(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s.Ports[0].Port = new(int32(d.backends.port))
	return s
}

// remote changes how many endpoints another cluster has.
func (d *Demo) remote(c *cluster, number, n int) func(context.Context) error {
	s := d.withPort(sliceOf("web", []string{elsewhere(number)}[:n]))
	return func(ctx context.Context) error { return c.admin.Upsert(ctx, nil, s, nil) }
}

func (d *Demo) put(o kates.Object) func(context.Context) error {
	return func(ctx context.Context) error { return d.admin.Upsert(ctx, nil, o, nil) }
}

func (d *Demo) remove(objects ...kates.Object) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		for _, o := range objects {
			err = errors.Join(err, d.admin.Delete(ctx, o, nil))
		}
		return err
	}
}

// change is an object of changes.yaml.
func (d *Demo) change(n int) kates.Object {
	objects, err := kates.ParseManifests(changes)
	if err != nil {
		panic(err) // it is a part of this program
	}
	return objects[n]
}

// route has the blog's route go to a Service.
func (d *Demo) route(service string) func(context.Context) error {
	return func(ctx context.Context) error {
		name := &gatewayv1.HTTPRoute{}
		name.APIVersion, name.Kind, name.Namespace, name.Name = gatewayv1.GroupVersion.String(), "HTTPRoute", "shop", "blog"
		_, err := kates.Modify(ctx, d.admin, name, func(r *gatewayv1.HTTPRoute) error {
			r.Spec.Rules[0].BackendRefs[0].Name = gatewayv1.ObjectName(service)
			return nil
		})
		return err
	}
}

func (d *Demo) rotate(ctx context.Context) error {
	secret, err := d.authority.secret("shop.example.com")
	if err != nil {
		return err
	}
	return d.admin.Upsert(ctx, nil, secret, nil)
}
