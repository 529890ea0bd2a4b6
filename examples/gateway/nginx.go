package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kates-go/kates/examples/gateway/demo"
	"github.com/kates-go/kates/examples/gateway/loops"
	"github.com/kates-go/kates/examples/gateway/nginx"
)

// web is nginx, or what is in its place where it is not installed.
type web interface {
	loops.Nginx
	Stats() nginx.Stats
	Close(context.Context) error
}

// open finds nginx, which Apply starts, or the one that runs in the folder already. The
// demonstration goes on without nginx.
func (s *settings) open(dir string, log *slog.Logger, stdout io.Writer) (web, error) {
	options := nginx.Options{Dir: dir, Binary: s.binary, External: s.external, Logger: log}
	if s.external {
		options.ErrorLog = "stderr" // of the other container
	}
	n, err := nginx.Open(options)
	switch {
	case s.demo() && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)):
		fmt.Fprintf(stdout, "Nothing is served: %v.\n\n", err)
		return &dryRun{dir: dir, out: stdout}, nil
	case err != nil:
		return nil, err
	case s.demo() && !n.Alive():
		if err := s.portsAreFree(); err != nil {
			return nil, errors.Join(err, n.Close(context.Background()))
		}
	}
	return n, nil
}

// portsAreFree says at once what nginx would say after some tries.
func (s *settings) portsAreFree() error {
	for _, port := range s.ports {
		l, err := net.Listen("tcp", netip.AddrPortFrom(s.address, uint16(port)).String())
		if err != nil {
			return fmt.Errorf("nginx cannot listen: %w: choose other ports, for example -ports 80:9080,443:9443", err)
		}
		_ = l.Close()
	}
	return nil
}

// drainTimeout is how long requests may finish at the end. A pod has 30 seconds by default.
const drainTimeout = time.Minute

func closeNginx(w web) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	return w.Close(ctx)
}

// dryRun writes the configuration that nginx would get.
type dryRun struct {
	dir  string
	out  io.Writer
	hash string
}

func (d *dryRun) Apply(_ context.Context, c *nginx.Config) (nginx.Outcome, error) {
	r := nginx.Render(c, nginx.RenderOptions{Dir: d.dir, ErrorLog: "stderr"})
	if r.Hash == d.hash {
		return nginx.Outcome{Active: true}, nil
	}
	d.hash = r.Hash
	path := filepath.Join(d.dir, "nginx.conf")
	fmt.Fprintf(d.out, "        nginx would get another configuration: %s\n", path)
	return nginx.Outcome{Active: true, Reloaded: true}, os.WriteFile(path, r.Text, 0o600)
}

// Try takes all, as Apply does.
func (*dryRun) Try(context.Context, *nginx.Config) ([]nginx.Refusal, bool, error) {
	return nil, true, nil
}

func (*dryRun) Push(context.Context, map[string][]string) (int, error) { return 0, nil }
func (*dryRun) Pushes() bool                                           { return false }
func (*dryRun) Alive() bool                                            { return true }
func (*dryRun) Stats() nginx.Stats                                     { return nginx.Stats{} }
func (*dryRun) Close(context.Context) error                            { return nil }

// shown is what the demonstration shows of the gateway.
func shown(g *loops.Gateway, w web, s *server) demo.Gateway {
	shown := demo.Gateway{Serving: g.Serving}
	if _, dry := w.(*dryRun); !dry {
		shown.Reloads = func() int { return w.Stats().Reloads }
	}
	if s != nil {
		shown.Page = s.at
	}
	return shown
}

// nginxMetrics are those of nginx. The other ones are those of package kates/prometheus.
type nginxMetrics struct {
	gateway *loops.Gateway
	web     web
}

var (
	serving  = metric("serving", "1 once a complete configuration has been active.")
	up       = metric("nginx_up", "1 while nginx runs.")
	starts   = metric("nginx_starts_total", "How often the gateway has started nginx.")
	reloads  = metric("nginx_reloads_total", "Configurations that nginx was reloaded with.")
	refused  = metric("nginx_refused_total", "Configurations that nginx has refused.")
	checks   = metric("nginx_checks_total", "Runs of nginx that check a configuration.")
	pushed   = metric("nginx_pushed_upstreams_total", "Upstreams whose endpoints were changed without a reload.")
	lastTime = metric("nginx_last_reload_timestamp_seconds", "When nginx was started or reloaded last.")
	lastCost = metric("nginx_last_reload_duration_seconds", "How long that took.")
)

func metric(name, help string) *prom.Desc { return prom.NewDesc("gateway_"+name, help, nil, nil) }

// Describe implements prometheus.Collector.
func (m *nginxMetrics) Describe(descs chan<- *prom.Desc) { prom.DescribeByCollect(m, descs) }

// Collect implements prometheus.Collector.
func (m *nginxMetrics) Collect(metrics chan<- prom.Metric) {
	stats := m.web.Stats()
	send := func(desc *prom.Desc, kind prom.ValueType, value float64) {
		metrics <- prom.MustNewConstMetric(desc, kind, value)
	}
	send(serving, prom.GaugeValue, number(m.gateway.Serving()))
	send(up, prom.GaugeValue, number(m.web.Alive()))
	send(starts, prom.CounterValue, float64(stats.Starts))
	send(reloads, prom.CounterValue, float64(stats.Reloads))
	send(refused, prom.CounterValue, float64(stats.Refused))
	send(checks, prom.CounterValue, float64(stats.Checks))
	send(pushed, prom.CounterValue, float64(stats.Pushed))
	if !stats.LastReload.IsZero() {
		send(lastTime, prom.GaugeValue, float64(stats.LastReload.UnixMilli())/1000)
		send(lastCost, prom.GaugeValue, stats.LastDuration.Seconds())
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
