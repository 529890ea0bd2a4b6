// Package withruntime is the operator on controller-runtime: a manager with a cache, Owns for
// each kind, and a reconciler that reads from the cache and writes what differs.
package withruntime

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kates-go/kates/bench/internal/operator/api"
)

// fieldOwner is the field manager of all writes.
const fieldOwner = "bench-operator"

// ownerIndex is the index of ConfigMaps by the name of the App that controls them.
const ownerIndex = ".metadata.controller"

// Options are the differences between the variants.
type Options struct {
	Workers int
	// Put makes the objects what they should be: CreateOrUpdate, or Apply.
	Put func(ctx context.Context, c client.Client, app *api.App, wanted api.Objects) error
	// ReadYourWrites makes reads of the cache wait for own writes.
	ReadYourWrites bool
}

// Run runs the operator until ctx ends. around wraps its reconciler.
func Run(ctx context.Context, config *rest.Config, o Options, around func(reconcile.Reconciler) reconcile.Reconciler) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  api.NewScheme(),
		Metrics: metrics.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Client: client.Options{
			FieldOwner: fieldOwner,
			Cache:      &client.CacheOptions{EnableReadYourWritesConsistency: &o.ReadYourWrites},
		},
	})
	if err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, ownerIndex, controllingApp); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&api.App{}). // status changes too: they correct a status that came from a stale cache
		Owns(&corev1.ServiceAccount{}).
		Owns(&corev1.Service{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).
		Complete(around(&reconciler{Client: mgr.GetClient(), put: o.Put}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func controllingApp(o client.Object) []string {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.APIVersion != api.GroupVersion.String() || owner.Kind != "App" {
		return nil
	}
	return []string{owner.Name}
}

type reconciler struct {
	client.Client
	put func(context.Context, client.Client, *api.App, api.Objects) error
}

// Reconcile makes the objects of an App what they should be, and writes the status.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	app := &api.App{}
	if err := r.Get(ctx, request.NamespacedName, app); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if app.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // the garbage collector does the rest
	}
	wanted := api.Wanted(app)
	err := r.put(ctx, r.Client, app, wanted)
	if err == nil {
		err = r.prune(ctx, app, wanted)
	}
	return reconcile.Result{}, errors.Join(err, r.report(ctx, app, wanted, err))
}

// prune deletes the ConfigMaps of dropped settings.
func (r *reconciler) prune(ctx context.Context, app *api.App, wanted api.Objects) error {
	keep := make(map[string]bool, len(wanted.Settings))
	for _, s := range wanted.Settings {
		keep[s.Name] = true
	}
	var owned corev1.ConfigMapList
	err := r.List(ctx, &owned, client.InNamespace(app.Namespace), client.MatchingFields{ownerIndex: app.Name})
	if err != nil {
		return err
	}
	for i := range owned.Items {
		o := &owned.Items[i]
		if keep[o.Name] || !metav1.IsControlledBy(o, app) || o.DeletionTimestamp != nil {
			continue
		}
		if err := r.Delete(ctx, o, client.Preconditions{UID: &o.UID}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// report writes the status, if it changes.
func (r *reconciler) report(ctx context.Context, app *api.App, wanted api.Objects, failed error) error {
	was := app.DeepCopy()
	ready := metav1.Condition{
		Type: api.Ready, Status: metav1.ConditionTrue, Reason: api.ReasonApplied, ObservedGeneration: app.Generation,
	}
	if failed != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Failed", failed.Error()
	} else {
		app.Status.Objects, app.Status.Settings = int32(3+len(wanted.Settings)), int32(len(wanted.Settings))
	}
	app.Status.ObservedGeneration = app.Generation
	meta.SetStatusCondition(&app.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(was.Status, app.Status) {
		return nil
	}
	return r.Status().Patch(ctx, app, client.MergeFrom(was))
}
