package main

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// simulation is a simulated cluster: an API server in memory, and an administrator of tenants
// with another client.
type simulation struct {
	label string
	admin *kates.Client
}

// simulate returns a client of the simulated cluster, and a function that ends both.
func simulate(label string, options ...kates.Option) (client *kates.Client, stop func(), err error) {
	server, err := katestest.StartServer()
	if err != nil {
		return nil, nil, err
	}
	client, err = kates.NewClientFromRESTConfig(server.Config, options...)
	admin, failed := kates.NewClientFromRESTConfig(server.Config)
	if err = errors.Join(err, failed); err != nil {
		server.Close()
		return nil, nil, err
	}
	s := &simulation{label: label, admin: admin}
	ctx, cancel := context.WithCancel(context.Background())
	s.populate(ctx)
	var done sync.WaitGroup
	done.Go(func() { s.change(ctx) })
	return client, func() {
		cancel()
		done.Wait()
		admin.Close()
		client.Close()
		server.Close()
	}, nil
}

// populate makes what exists before the program starts.
func (s *simulation) populate(ctx context.Context) {
	s.put(ctx, node("node-1"), node("node-2"))
	s.put(ctx, s.namespace("shop", "red", "4"), s.quota("shop", "red", "4"), s.policy("shop", "red"))
	s.put(ctx, s.namespace("shop-dev", "red", "1"), s.quota("shop-dev", "red", "1"), s.policy("shop-dev", "red"))
	s.put(ctx, s.namespace("search", "blue", "2"), s.quota("search", "blue", "2"), s.policy("search", "blue"))
	s.put(ctx, s.namespace("kube-system", "", ""), s.quota("kube-system", "", "1")) // of no tenant
}

// change makes a change every now and then, over and over.
func (s *simulation) change(ctx context.Context) {
	steps := []func(){
		func() { s.put(ctx, s.quota("shop", "red", "6")) }, // more than the tenant pays for
		func() { s.put(ctx, s.namespace("shop", "red", "6"), s.quota("kube-system", "", "2")) },
		func() { s.put(ctx, s.namespace("mail", "green", "1")) }, // a new tenant, not isolated
		func() { s.put(ctx, s.policy("mail", "green"), s.quota("mail", "green", "1")) },
		func() { s.put(ctx, s.namespace("search", "blue", "two")) }, // blue cannot be computed
		func() { s.put(ctx, node("node-3")) },                       // belongs to all tenants
		func() { s.put(ctx, s.namespace("search", "blue", "2")) },
		func() { // a namespace that moves to another tenant
			s.put(ctx, s.namespace("shop-dev", "blue", "1"), s.quota("shop-dev", "blue", "1"), s.policy("shop-dev", "blue"))
		},
		func() { s.remove(ctx, s.namespace("mail", "", "")) }, // with all that is in it
		func() { s.remove(ctx, node("node-3")) },
		func() {
			s.put(ctx, s.namespace("shop-dev", "red", "1"), s.quota("shop-dev", "red", "1"), s.policy("shop-dev", "red"))
		},
		func() { s.put(ctx, s.namespace("shop", "red", "4"), s.quota("shop", "red", "4")) },
	}
	for step := 0; ; step++ {
		select {
		case <-time.After(200 * time.Millisecond):
			steps[step%len(steps)]()
		case <-ctx.Done():
			return
		}
	}
}

// put makes objects, or changes them.
func (s *simulation) put(ctx context.Context, objects ...kates.Object) {
	for _, o := range objects {
		_ = s.admin.Upsert(ctx, nil, o, nil) // fails only when ctx ends
	}
}

func (s *simulation) remove(ctx context.Context, o kates.Object) {
	_ = s.admin.Delete(ctx, o, nil) // fails only when ctx ends
}

// meta returns the metadata of an object of a tenant, or of none.
func (s *simulation) meta(namespace, name, tenant string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if tenant != "" {
		m.Labels = map[string]string{s.label: tenant}
	}
	return m
}

func (s *simulation) namespace(name, tenant, cpus string) kates.Object {
	ns := &corev1.Namespace{ObjectMeta: s.meta("", name, tenant)}
	if cpus != "" {
		ns.Annotations = map[string]string{budget: cpus}
	}
	return ns
}

func (s *simulation) quota(namespace, tenant, cpus string) kates.Object {
	q := &corev1.ResourceQuota{ObjectMeta: s.meta(namespace, "limits", tenant)}
	if cpus != "" {
		q.Spec.Hard = corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse(cpus)}
	}
	return q
}

func (s *simulation) policy(namespace, tenant string) kates.Object {
	return &networkingv1.NetworkPolicy{ObjectMeta: s.meta(namespace, "isolated", tenant)}
}

func node(name string) kates.Object {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}},
	}
}
