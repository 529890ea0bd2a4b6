package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kates-go/kates/examples/gateway/loops"
	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/page"
	"github.com/kates-go/kates/kates/prometheus"
)

// observers are told what the clients do.
type observers struct {
	metrics *prometheus.Metrics
	page    *page.Page
}

func newObservers() *observers { return &observers{prometheus.New(), page.New()} }

func (o *observers) options() []kates.Option {
	return []kates.Option{kates.WithObserver(o.metrics), kates.WithObserver(o.page)}
}

func (o *observers) close() { o.page.Close() }

// handler answers probes, and says what the gateway does. external: somebody else starts nginx.
func (o *observers) handler(g *loops.Gateway, web web, external bool) http.Handler {
	registry := prom.NewRegistry()
	registry.MustRegister(o.metrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &nginxMetrics{g, web})
	if g.Clusters != nil {
		o.page.Fleet(g.Clusters)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/debug/kates/", local(o.page))
	mux.Handle("GET /healthz", probe(healthy(g, external)))
	mux.Handle("GET /readyz", probe(ready(g)))
	return direct(mux)
}

// health is a kates.Client, or a fleet.Fleet with that client as its home.
type health interface {
	HealthCheck(*http.Request) error
	ReadyCheck(*http.Request) error
}

func healthOf(client *kates.Client, clusters *fleet.Fleet) health {
	if clusters != nil {
		return clusters
	}
	return client
}

// healthy is an error if a restart of the gateway may help. It does not help an nginx that
// somebody else starts: in a pod, the kubelet restarts that container by itself.
func healthy(g *loops.Gateway, external bool) func(*http.Request) error {
	return func(r *http.Request) error {
		if err := healthOf(g.Client, g.Clusters).HealthCheck(r); err != nil {
			return err
		}
		if !external && g.Serving() && !g.Nginx.Alive() {
			return errors.New("nginx does not run")
		}
		return nil
	}
}

// ready is nil once a complete configuration is active, and ever after: an outage of the API
// server takes no gateway out of service.
func ready(g *loops.Gateway) func(*http.Request) error {
	return func(r *http.Request) error {
		if err := healthOf(g.Client, g.Clusters).ReadyCheck(r); err != nil {
			return err
		}
		if !g.Serving() {
			return errors.New("no configuration has been activated yet")
		}
		return nil
	}
}

func probe(check func(*http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := check(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// local answers those alone who come from this machine, as kubectl port-forward does: the page
// shows objects.
func local(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !from.Addr().Unmap().IsLoopback() {
			http.Error(w, "this page is for this machine alone: use kubectl port-forward", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// ofProxies are the headers of requests that have come through a proxy. The first one is that of
// the gateway's own nginx, which no object can remove.
var ofProxies = []string{
	nginx.LoopHeader, "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
}

// direct refuses what comes through a proxy: a route to the gateway's own address, say.
func direct(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range ofProxies {
			if r.Header.Values(name) != nil {
				http.Error(w, "this is not for requests through a proxy: use kubectl port-forward", http.StatusForbidden)
				return
			}
		}
		handler.ServeHTTP(w, r)
	})
}

// server serves until close is called.
type server struct {
	http *http.Server
	at   string
	done chan struct{}
}

func serve(address string, handler http.Handler) (*server, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-listen %s: %w", address, err)
	}
	s := &server{&http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}, l.Addr().String(), make(chan struct{})}
	go func() { // until close
		defer close(s.done)
		_ = s.http.Serve(l) // it always ends with an error: that it was shut down
	}()
	return s, nil
}

func (s *server) close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // a request does not end
	}
	<-s.done
}
