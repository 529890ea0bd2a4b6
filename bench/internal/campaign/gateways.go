package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/kates-go/kates/bench/internal/gateway"
	"github.com/kates-go/kates/bench/internal/report"
	"github.com/kates-go/kates/bench/internal/stats"
	"github.com/kates-go/kates/bench/internal/workload"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

// GatewayOptions says how much is measured of gateways. All fields must be set except Note and
// ProfileTo.
type GatewayOptions struct {
	Ingresses int // each with two Services
	Endpoints int // of each Service
	Rate      int // changes per second
	Lasts     time.Duration
	Runs      int
	Gateways  []gateway.Variant
	// Settle is how long a gateway may rest after its start, before things change.
	Settle time.Duration
	// Patience is how long anything may take.
	Patience time.Duration

	Note string
	// ProfileTo is a folder for profiles of the time in which things change. If empty, there are
	// none.
	ProfileTo string
	Log       io.Writer
}

// Gateways runs a gateway in the ways that it is written. Each has its own process, its own server
// and its own nginx, and the order changes from run to run. An error of any of them ends it; it
// then returns the results so far. It is an error if they serve something else in the end, or if a
// change never comes into effect.
func Gateways(ctx context.Context, o GatewayOptions) (*report.Gateways, error) {
	r := &report.Gateways{
		Machine: machine(ctx), Note: o.Note, Runs: o.Runs, Ingresses: o.Ingresses, Services: 2 * o.Ingresses,
		Endpoints: 2 * o.Ingresses * o.Endpoints, Rate: o.Rate, Lasts: o.Lasts, Lines: map[string]int{},
	}
	served := map[string]string{} // what it serves in the end, by gateway
	for run := 1; run <= o.Runs; run++ {
		for i := range o.Gateways {
			v := o.Gateways[(i+run-1)%len(o.Gateways)]
			r.Lines[v.Name] = v.Lines()
			t := &gatewayTrial{GatewayOptions: o, results: r, variant: v, run: run}
			t.address = fmt.Sprintf("127.%d.%d.%d", 128+os.Getpid()%100, run%250, i+1)
			if err := t.measure(ctx); err != nil {
				return r, fmt.Errorf("the gateway %s, run %d: %w", v.Name, run, err)
			}
			for other, print := range served {
				if print != t.served {
					return r, fmt.Errorf("the gateways %s and %s do not serve the same in the end", v.Name, other)
				}
			}
			served[v.Name] = t.served
		}
	}
	r.Machine.LoadAfter = loadAverage()
	return r, nil
}

// gatewayTrial is one run of one gateway.
type gatewayTrial struct {
	GatewayOptions
	results *report.Gateways
	variant gateway.Variant
	run     int
	address string // at which its nginx listens

	web     *workload.Web
	process *process
	served  string
}

func (t *gatewayTrial) measure(ctx context.Context) error {
	return withCluster(ctx, func(c *apiserver.Cluster, kubeconfig string) (err error) {
		t.results.Machine.Versions = withVersion(t.results.Machine.Versions, "kube-apiserver "+c.Version)
		if t.web, err = workload.NewWeb(c.Config, t.Ingresses, t.Endpoints); err != nil {
			return err
		}
		if err := t.web.Fill(ctx, translate.Controller); err != nil {
			return err
		}
		begun := time.Now()
		if t.process, err = startAs(ctx, "route", t.variant.Name, kubeconfig); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.process.stop()) }()
		for _, step := range []func(context.Context) error{
			func(ctx context.Context) error { return t.start(ctx, filepath.Join(filepath.Dir(kubeconfig), "nginx")) },
			t.changes, t.judge,
		} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		fmt.Fprintf(t.Log, "bench: %5d Ingresses, run %d of %d, %-6s %5.1f s\n", t.Ingresses, t.run, t.Runs, t.variant.Name, time.Since(begun).Seconds())
		return nil
	})
}

func (t *gatewayTrial) add(p report.Phase, m report.GatewayMetric, value float64) {
	t.results.Add(t.run, t.variant.Name, p, m, value)
}

// start waits for the first configuration, and for all statuses.
func (t *gatewayTrial) start(ctx context.Context, dir string) error {
	begun := time.Now()
	first, err := t.process.askGateway(gateway.Command{Do: gateway.Start, Address: t.address, Dir: dir})
	if err != nil {
		return err
	}
	for reported := 0; reported < t.Ingresses; {
		if reported, err = t.web.Reported(ctx); err != nil {
			return err
		}
		if time.Since(begun) > t.Patience {
			return fmt.Errorf("after %v only %d of %d Ingresses have a status", t.Patience, reported, t.Ingresses)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	t.add(report.PhaseStart, report.GatewayActive, first.Seconds)
	t.add(report.PhaseStart, report.GatewayReported, time.Since(begun).Seconds())
	if err := pause(ctx, t.Settle); err != nil {
		return err
	}
	after, err := t.process.askGateway(gateway.Command{Do: gateway.Count})
	if err != nil {
		return err
	}
	t.addUse(report.PhaseStart, gateway.Answer{}, after)
	t.add(report.PhaseStart, report.GatewayPeak, after.PeakBytes/1e6)
	return nil
}

// addUse adds what was used between two moments.
func (t *gatewayTrial) addUse(p report.Phase, before, after gateway.Answer) {
	t.add(p, report.GatewayCPU, after.CPU-before.CPU)
	t.add(p, report.GatewayNginxCPU, after.NginxCPU-before.NginxCPU)
	t.add(p, report.GatewayApplied, float64(after.Applied-before.Applied))
	t.add(p, report.GatewayPushes, float64(after.Pushes-before.Pushes))
	t.add(p, report.GatewayReloads, float64(after.Stats.Reloads-before.Stats.Reloads))
	c := after.Counts.Less(before.Counts)
	t.add(p, report.GatewayRequests, float64(c.Total()))
	t.add(p, report.GatewayRefused, float64(c.Refused))
	for _, verb := range verbsOf(c) {
		t.results.AddRequests(t.run, t.variant.Name, p, verb, c.Requests[verb])
	}
}

// changes changes things for a while, and waits until all of it is in effect.
func (t *gatewayTrial) changes(ctx context.Context) error {
	if t.ProfileTo != "" {
		path := filepath.Join(t.ProfileTo, fmt.Sprintf("%s-%d", t.variant.Name, t.run))
		if _, err := t.process.askGateway(gateway.Command{Do: gateway.Profile, Path: path}); err != nil {
			return err
		}
	}
	before, err := t.process.askGateway(gateway.Command{Do: gateway.Count})
	if err != nil {
		return err
	}
	begun := time.Now()
	made, err := pacedChanges(ctx, t.web, t.Rate, int(t.Lasts.Seconds()*float64(t.Rate)))
	if err != nil {
		return err
	}
	t.add(report.PhaseChanges, report.GatewayRate, float64(len(made))/time.Since(begun).Seconds())
	endpoints, ingresses, err := t.effect(ctx, made)
	if err != nil {
		return err
	}
	after, err := t.process.askGateway(gateway.Command{Do: gateway.Count})
	if err != nil {
		return err
	}
	t.add(report.PhaseChanges, report.GatewayEndpointP50, stats.Percentile(endpoints, 50))
	t.add(report.PhaseChanges, report.GatewayEndpointP99, stats.Percentile(endpoints, 99))
	t.add(report.PhaseChanges, report.GatewayIngressP50, stats.Percentile(ingresses, 50))
	t.add(report.PhaseChanges, report.GatewayIngressP99, stats.Percentile(ingresses, 99))
	t.addUse(report.PhaseChanges, before, after)
	t.add(report.PhaseChanges, report.GatewayPushed, float64(after.Stats.Pushed-before.Stats.Pushed))
	if t.ProfileTo != "" {
		_, err = t.process.askGateway(gateway.Command{Do: gateway.EndProfile})
	}
	return err
}

// effect waits until all changes are in effect, and returns how long each of them took, in ms.
func (t *gatewayTrial) effect(ctx context.Context, made []workload.WebChange) (endpoints, ingresses []float64, err error) {
	deadline := time.Now().Add(t.Patience)
	var seen []gateway.Seen
	for {
		a, err := t.process.askGateway(gateway.Command{Do: gateway.See})
		if err != nil {
			return nil, nil, err
		}
		seen = append(seen, a.Seen...)
		var missing []workload.WebChange
		if endpoints, ingresses, missing = delays(made, seen); len(missing) == 0 {
			return endpoints, ingresses, nil
		}
		if time.Now().After(deadline) {
			return nil, nil, fmt.Errorf("%d changes are not in effect after %v, such as number %d of %s", len(missing), t.Patience, missing[0].Mark, missing[0].Key)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
}

// judge asks what is served in the end, and for the memory.
func (t *gatewayTrial) judge(context.Context) error {
	count, err := t.process.askGateway(gateway.Command{Do: gateway.Count})
	if err != nil {
		return err
	}
	a, err := t.process.askGateway(gateway.Command{Do: gateway.Judge})
	if err != nil {
		return err
	}
	t.served = a.Fingerprint
	t.add(report.PhaseChanges, report.GatewayPeak, count.PeakBytes/1e6)
	t.add(report.PhaseChanges, report.GatewayHeap, a.Bytes/1e6)
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
