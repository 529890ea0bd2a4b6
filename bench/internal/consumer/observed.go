package consumer

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/page"
	"github.com/kates-go/kates/kates/prometheus"
)

// observed is kates with metrics, which are gathered as often as Prometheus' examples say, and a
// status page that is open in a browser, which asks for the overview every two seconds.
type observed struct {
	snapshotter[Typed]
}

const (
	scrape = 15 * time.Second
	look   = 2 * time.Second
)

func newKatesObserved() Consumer {
	return &observed{snapshotter[Typed]{view: (*Typed).view, open: openPods[*kates.Pod]}}
}

func (o *observed) Start(ctx context.Context, config *rest.Config) error {
	metrics, status, all := prometheus.New(), page.New(), promclient.NewRegistry()
	if err := all.Register(metrics); err != nil {
		return err
	}
	o.options = []kates.Option{kates.WithObserver(metrics), kates.WithObserver(status)}
	if err := o.snapshotter.Start(ctx, config); err != nil {
		status.Close()
		return err
	}
	go every(ctx, scrape, func() { _, _ = all.Gather() })
	go func() {
		defer status.Close()
		every(ctx, look, func() {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/debug/kates/", nil)
			status.ServeHTTP(httptest.NewRecorder(), r)
		})
	}()
	return nil
}

// every calls f at once, and again and again until ctx ends.
func every(ctx context.Context, d time.Duration, f func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		f() // the first page costs most: its templates are made ready
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
