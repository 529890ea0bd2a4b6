// Package withruntime is a gateway as controllers per object are written: a manager with a cache,
// a reconcile for each Ingress, which makes its part of the configuration, and a writer that puts
// the parts together. It has the same translation and the same nginx as examples/gateway. It
// serves Ingresses and nothing else: no Gateway API, no canaries, no settings, and an Ingress that
// nginx refuses is left for people to find.
package withruntime

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
)

// Nginx is a *nginx.Nginx.
type Nginx interface {
	Apply(context.Context, *nginx.Config) (nginx.Outcome, error)
	Push(ctx context.Context, upstreams map[string][]string) (int, error)
}

// Fields by which the cache finds objects.
const (
	byService = "service" // Ingresses that name it, and EndpointSlices
	bySecret  = "secret"  // Ingresses that name it
)

// Run runs the gateway until ctx ends. Its Lease is in the namespace.
func Run(ctx context.Context, config *rest.Config, namespace string, web Nginx, o translate.Options) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: clientscheme.Scheme, Metrics: metrics.Options{BindAddress: "0"}, Cache: caches(),
		LeaderElection: true, LeaderElectionNamespace: namespace, LeaderElectionID: "gateway", LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	all := newParts()
	configure := &configurer{Client: mgr.GetClient(), options: o, parts: all, elected: mgr.Elected(), reported: make(chan event.GenericEvent)}
	wanted := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	err = ctrl.NewControllerManagedBy(mgr).Named("configuration").
		For(&networkingv1.Ingress{}, wanted).
		Watches(&networkingv1.IngressClass{}, handler.EnqueueRequestsFromMapFunc(configure.every)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(configure.ofService)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(configure.ofSlice)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(configure.ofSecret)).
		WithOptions(controller.Options{NeedLeaderElection: new(false), MaxConcurrentReconciles: 4}).
		Complete(configure)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("reports").
		For(&networkingv1.Ingress{}, wanted).
		WatchesRawSource(source.Channel(configure.reported, &handler.EnqueueRequestForObject{})).
		Complete(&reporter{Client: mgr.GetClient(), recorder: mgr.GetEventRecorder("gateway"), parts: all, told: map[types.NamespacedName][]translate.Problem{}})
	if err != nil {
		return err
	}
	writes := &writer{client: mgr.GetClient(), web: web, parts: all}
	if err := errors.Join(mgr.Add(everywhere(writes.configurations)), mgr.Add(everywhere(writes.endpoints))); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// caches keeps what is read, and copies nothing: nobody changes it.
func caches() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(), DefaultUnsafeDisableDeepCopy: new(true),
		ByObject: map[client.Object]cache.ByObject{
			&discoveryv1.EndpointSlice{}: {Transform: addresses},
			&corev1.Secret{}:             {Field: fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS))},
		},
	}
}

// addresses keeps the addresses and conditions of endpoints.
func addresses(o any) (any, error) {
	if s, ok := o.(*discoveryv1.EndpointSlice); ok {
		s.ManagedFields, s.Annotations = nil, nil
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			e.DeprecatedTopology, e.Hostname, e.NodeName, e.TargetRef = nil, nil, nil, nil
		}
	}
	return o, nil
}

func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, one := range []struct {
		of    client.Object
		field string
		by    client.IndexerFunc
	}{
		{&networkingv1.Ingress{}, byService, func(o client.Object) []string { return servicesOf(o.(*networkingv1.Ingress)) }},
		{&networkingv1.Ingress{}, bySecret, func(o client.Object) []string { return secretsOf(o.(*networkingv1.Ingress)) }},
		{&discoveryv1.EndpointSlice{}, byService, func(o client.Object) []string { return []string{o.GetLabels()[discoveryv1.LabelServiceName]} }},
	} {
		if err := indexer.IndexField(ctx, one.of, one.field, one.by); err != nil {
			return err
		}
	}
	return nil
}

func servicesOf(in *networkingv1.Ingress) (names []string) {
	add := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil {
			names = append(names, b.Service.Name)
		}
	}
	add(in.Spec.DefaultBackend)
	for _, rule := range in.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			add(&rule.HTTP.Paths[i].Backend)
		}
	}
	return names
}

func secretsOf(in *networkingv1.Ingress) (names []string) {
	for _, tls := range in.Spec.TLS {
		names = append(names, tls.SecretName)
	}
	return names
}

// These say which Ingresses are reconciled because of another object.

func (c *configurer) ofService(ctx context.Context, o client.Object) []reconcile.Request {
	return c.requests(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{byService: o.GetName()})
}

func (c *configurer) ofSlice(ctx context.Context, o client.Object) []reconcile.Request {
	return c.requests(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{byService: o.GetLabels()[discoveryv1.LabelServiceName]})
}

func (c *configurer) ofSecret(ctx context.Context, o client.Object) []reconcile.Request {
	return c.requests(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{bySecret: o.GetName()})
}

func (c *configurer) every(ctx context.Context, _ client.Object) []reconcile.Request {
	return c.requests(ctx)
}

func (c *configurer) requests(ctx context.Context, which ...client.ListOption) (all []reconcile.Request) {
	var found networkingv1.IngressList
	if err := c.List(ctx, &found, which...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Ingresses of an object")
		return nil
	}
	for i := range found.Items {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
	}
	return all
}
