package withruntime

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kates-go/kates/examples/gateway/translate"
)

// configurer makes the part of an Ingress.
type configurer struct {
	client.Client
	options  translate.Options
	parts    *parts
	elected  <-chan struct{}
	reported chan event.GenericEvent
}

// Reconcile makes the part of an Ingress, of it and of what it names.
func (c *configurer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	snap, err := c.snapshot(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		c.parts.remove(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if c.parts.put(request.NamespacedName, snap.Ingresses[0], translate.Translate(snap, c.options)) {
		select {
		case <-c.elected:
			select {
			case c.reported <- event.GenericEvent{Object: snap.Ingresses[0]}:
			case <-ctx.Done():
			}
		default: // another replica reports; or this one does, of all Ingresses, when it is elected
		}
	}
	return reconcile.Result{}, nil
}

// snapshot has an Ingress with what it names. It is NotFound if there is no such Ingress.
func (c *configurer) snapshot(ctx context.Context, name types.NamespacedName) (*translate.Snapshot, error) {
	var in networkingv1.Ingress
	if err := c.Get(ctx, name, &in); err != nil {
		return nil, err
	}
	in.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("Ingress")) // of this shallow copy
	snap := &translate.Snapshot{
		Ingresses: []*networkingv1.Ingress{&in},
	}
	var classes networkingv1.IngressClassList
	err := c.List(ctx, &classes)
	for i := range classes.Items {
		snap.Classes = append(snap.Classes, &classes.Items[i])
	}
	for _, service := range once(servicesOf(&in)) {
		key := types.NamespacedName{Namespace: name.Namespace, Name: service}
		err = errors.Join(err, c.service(ctx, snap, key))
	}
	for _, s := range once(secretsOf(&in)) {
		secret, key := new(corev1.Secret), types.NamespacedName{Namespace: name.Namespace, Name: s}
		if failed := c.Get(ctx, key, secret); failed == nil {
			snap.Secrets = append(snap.Secrets, secret)
		} else if !apierrors.IsNotFound(failed) {
			err = errors.Join(err, failed)
		}
	}
	return snap, err
}

// once returns names, each once: a snapshot has an object once.
func once(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// service adds a Service, if there is one, and its endpoints.
func (c *configurer) service(ctx context.Context, snap *translate.Snapshot, name types.NamespacedName) error {
	var service corev1.Service
	if err := c.Get(ctx, name, &service); err != nil {
		return client.IgnoreNotFound(err)
	}
	snap.Services = append(snap.Services, &service)
	var found discoveryv1.EndpointSliceList
	if err := c.List(ctx, &found, client.InNamespace(name.Namespace), client.MatchingFields{byService: name.Name}); err != nil {
		return err
	}
	for i := range found.Items {
		snap.Slices = append(snap.Slices, &found.Items[i])
	}
	return nil
}
