// Package withkates is the operator on kates' controllers: a struct with an App and what it owns,
// and a function that is called with it.
package withkates

import (
	"context"
	"errors"
	"log/slog"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/operator/api"
	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

// name is the name of the controller and of the owned set, and the field manager of all writes.
const name = "bench-operator"

// parts is an App with what belongs to it.
type parts struct {
	App             *api.App                 `kates:",root"`
	ServiceAccounts []*corev1.ServiceAccount `kates:",owned"`
	Services        []*corev1.Service        `kates:",owned"`
	Deployments     []*appsv1.Deployment     `kates:",owned"`
	Settings        []*corev1.ConfigMap      `kates:",owned"`
}

// Run runs the operator until ctx ends. around wraps each reconcile.
func Run(ctx context.Context, config *rest.Config, workers int, around func(context.Context, func(context.Context) error) error) error {
	client, err := kates.NewClientFromRESTConfig(config,
		kates.WithScheme(api.NewScheme()), kates.WithFieldManager(name), kates.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	r := &reconciler{client}
	c, err := controller.New(client, name, func(ctx context.Context, p *parts) (controller.Result, error) {
		return controller.Done, around(ctx, func(ctx context.Context) error { return r.reconcile(ctx, p) })
	}, kates.WithWorkers(workers), kates.WithQuietOwnWrites())
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

type reconciler struct{ client *kates.Client }

// reconcile makes the objects of an App what they should be, removes those of dropped settings,
// and writes the status.
func (r *reconciler) reconcile(ctx context.Context, p *parts) error {
	if p.App.DeletionTimestamp != nil {
		return nil // the garbage collector does the rest
	}
	wanted := api.Wanted(p.App)
	_, err := r.client.ApplyOwned(ctx, kates.OwnedSet{
		Owner: p.App, SetName: name, Objects: api.Listed[kates.Object](wanted), Existing: controller.Owned(p),
	}, kates.ForceOwnership())
	return errors.Join(err, r.report(ctx, p.App, wanted, err))
}

// report writes the status, if it changes.
func (r *reconciler) report(ctx context.Context, app *api.App, wanted api.Objects, failed error) error {
	app = app.DeepCopy()
	ready := kates.Condition{Type: api.Ready, Status: metav1.ConditionTrue, Reason: api.ReasonApplied}
	if failed != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Failed", failed.Error()
	} else {
		app.Status.Objects, app.Status.Settings = int32(3+len(wanted.Settings)), int32(len(wanted.Settings))
	}
	app.Status.ObservedGeneration = app.Generation
	if _, err := kates.SetCondition(app, ready); err != nil {
		return err
	}
	_, err := kates.ModifyStatus(ctx, r.client, app, func(now *api.App) error {
		now.Status = app.Status
		return nil
	})
	return err
}
