package troubled

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/page"
	"github.com/kates-go/kates/kates/prometheus"
)

// Widget is the Go type of the custom kind.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
}

// Inputs is the snapshot of the program.
type Inputs struct {
	Pods           []*corev1.Pod
	Services       []*corev1.Service
	ConfigMaps     []*corev1.ConfigMap
	Secrets        []*corev1.Secret
	Deployments    []*appsv1.Deployment
	EndpointSlices []*discoveryv1.EndpointSlice
	Widgets        []*Widget             `kates:"widgets.troubled.example"`
	Gateways       []*kates.Unstructured `kates:"gateways.gateway.networking.k8s.io,optional"`
	Policies       []*kates.Unstructured `kates:"networkpolicies.networking.k8s.io,optional"`
}

// Team is the snapshot of a reconciler: one for each namespace.
type Team struct {
	Deployments []*appsv1.Deployment
	ConfigMaps  []*corev1.ConfigMap
}

// program has the troubles.
type program struct {
	client *kates.Client
	status *page.Page
	all    *promclient.Registry
}

func newProgram(user *rest.Config) (*program, error) {
	p := &program{status: page.New(), all: promclient.NewRegistry()}
	metrics := prometheus.New()
	if err := p.all.Register(metrics); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(user)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return silent{next} })
	var err error
	p.client, err = kates.NewClientFromRESTConfig(config,
		kates.WithObserver(p.status), kates.WithObserver(metrics), kates.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	return p, err
}

func (p *program) close() {
	p.client.Close()
	p.status.Close()
}

func (p *program) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/debug/kates/", p.status)
	mux.HandleFunc("/healthz", p.client.Healthz)
	mux.HandleFunc("/readyz", p.client.Readyz)
	mux.Handle("/metrics", promhttp.HandlerFor(p.all, promhttp.HandlerOpts{}))
	return mux
}

// run runs the slow function for all, and the reconciler for each namespace, which fails for one
// of them.
func (p *program) run(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		return kates.Run(ctx, p.client, func(ctx context.Context, _ *Inputs) error {
			wait(ctx, 2*time.Second)
			return nil
		}, kates.WithInterval(200*time.Millisecond))
	})
	all.Go(func() error {
		return kates.RunEach(ctx, p.client, func(ctx context.Context, team string, snap *Team) error {
			if team == "team-13" {
				return errors.New("the backend of team-13 refuses the configuration: 422 quota is used up")
			}
			if len(snap.Deployments) == 0 {
				return nil
			}
			summary := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "summary"}}
			summary.Data = map[string]string{"deployments": fmt.Sprint(len(snap.Deployments))}
			summary.APIVersion, summary.Kind = "v1", "ConfigMap"
			return p.client.Apply(ctx, summary, nil)
		}, kates.Query{Name: "Deployments", Key: kates.ByNamespace}, kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace}, kates.WithWorkers(4))
	})
	return all.Wait()
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// silent is a transport whose watches of endpoint slices bring nothing, as a connection that is
// half open.
type silent struct{ next http.RoundTripper }

func (t silent) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/endpointslices") && r.URL.Query().Get("watch") == "true" {
		answer.Body = nothing{r.Context(), answer.Body}
	}
	return answer, err
}

// WrappedRoundTripper returns the transport beneath.
func (t silent) WrappedRoundTripper() http.RoundTripper { return t.next }

// nothing is a body that brings nothing until its request ends.
type nothing struct {
	ctx context.Context
	io.Closer
}

func (n nothing) Read([]byte) (int, error) {
	<-n.ctx.Done()
	return 0, n.ctx.Err()
}
