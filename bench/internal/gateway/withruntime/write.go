package withruntime

import (
	"context"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kates-go/kates/examples/gateway/translate"
)

// The least times between two configurations, and between two looks at endpoints.
const (
	configurationInterval = time.Second
	endpointsInterval     = 50 * time.Millisecond
)

// writer has nginx serve what the parts say.
type writer struct {
	client client.Client
	web    Nginx
	parts  *parts
}

// everywhere is a manager.Runnable that runs on each replica.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// configurations writes configurations.
func (w *writer) configurations(ctx context.Context) error {
	var again <-chan time.Time
	for complete := false; ; {
		select {
		case <-w.parts.changed:
		case <-again:
		case <-ctx.Done():
			return nil
		}
		interval := endpointsInterval // until all parts are there
		if complete = complete || w.complete(ctx); complete {
			again, interval = w.apply(ctx), configurationInterval
		}
		wait(ctx, interval)
	}
}

// endpoints sends endpoints, also while nginx loads a configuration.
func (w *writer) endpoints(ctx context.Context) error {
	for {
		select {
		case <-w.parts.moved:
		case <-ctx.Done():
			return nil
		}
		if _, err := w.web.Push(ctx, w.parts.endpoints()); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "send endpoints to nginx")
			time.AfterFunc(time.Second, w.parts.signal)
		}
		wait(ctx, endpointsInterval)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// complete reports whether all Ingresses have been reconciled once: nginx must not get half a
// configuration.
func (w *writer) complete(ctx context.Context) bool {
	var all networkingv1.IngressList
	if err := w.client.List(ctx, &all); err != nil {
		return false
	}
	return !slices.ContainsFunc(all.Items, func(in networkingv1.Ingress) bool { return w.parts.get(client.ObjectKeyFromObject(&in)) == nil })
}

// apply returns when to do it again, nil if there is no need to.
func (w *writer) apply(ctx context.Context) <-chan time.Time {
	outcome, err := w.web.Apply(ctx, w.parts.config())
	switch {
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "configure nginx")
		return time.After(time.Second)
	case len(outcome.Refused) > 0:
		ctrl.LoggerFrom(ctx).Info("nginx refuses a configuration: the last one serves on", "because of", outcome.Refused)
	case outcome.Again > 0:
		return time.After(outcome.Again)
	}
	w.parts.signalEndpoints() // some may have changed before nginx ran
	return nil
}

// reporter writes statuses and events, on the leader.
type reporter struct {
	client.Client
	recorder events.EventRecorder
	parts    *parts
	told     map[types.NamespacedName][]translate.Problem // there is one worker
}

// Reconcile tells an Ingress what has become of it.
func (r *reporter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	one := r.parts.get(request.NamespacedName)
	if one == nil || one.report == nil {
		delete(r.told, request.NamespacedName)
		return reconcile.Result{}, nil
	}
	before := r.told[request.NamespacedName]
	for _, p := range one.report.Problems {
		if !slices.Contains(before, p) {
			r.recorder.Eventf(one.ingress, nil, "Warning", p.Reason, "Configure", "%s", p.Message)
		}
	}
	if len(before) > 0 && len(one.report.Problems) == 0 {
		r.recorder.Eventf(one.ingress, nil, "Normal", "Resolved", "Configure", "it is served as it is written")
	}
	r.told[request.NamespacedName] = one.report.Problems
	want, ok := one.report.Status.(*networkingv1.IngressStatus)
	if !ok || equality.Semantic.DeepEqual(&one.ingress.Status, want) {
		return reconcile.Result{}, nil
	}
	changed := one.ingress.DeepCopy()
	changed.Status = *want.DeepCopy()
	return reconcile.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, changed, client.MergeFrom(one.ingress)))
}
