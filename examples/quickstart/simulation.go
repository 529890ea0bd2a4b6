package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// simulation is a simulated cluster: an API server in memory, and somebody who rolls out an
// application in it. The rollout uses another client, so the program learns of its writes only
// from watches.
type simulation struct {
	client *kates.Client // the program's client
	server *katestest.Server
	other  *kates.Client // the client of the rollout
	events atomic.Int64
	cancel context.CancelFunc
	done   sync.WaitGroup

	namespace string
	random    *rand.Rand
	versions  map[types.UID]string // of what the rollout has written
}

// late is how far the watch of ConfigMaps is behind.
const late = 400 * time.Millisecond

func startSimulation(namespace string, options ...kates.Option) (*simulation, error) {
	server, err := katestest.StartServer(
		katestest.WithKinds(katestest.Kind{APIVersion: "quickstart.kates.io/v1", Kind: "Route"}),
		katestest.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}),
	)
	if err != nil {
		return nil, err
	}
	faults := katestest.NewFaults(nil, 1)
	faults.On(katestest.Match{Verb: "watch", Resource: "configmaps"}).Delay(late)
	config := rest.CopyConfig(server.Config)
	config.Wrap(faults.Wrap)
	client, err := kates.NewClientFromRESTConfig(config, options...)
	other, failed := kates.NewClientFromRESTConfig(server.Config)
	if err = errors.Join(err, failed); err != nil {
		server.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &simulation{
		client: client, server: server, other: other, cancel: cancel,
		namespace: namespace, random: rand.New(rand.NewPCG(1, 2)), versions: map[types.UID]string{},
	}
	s.put(ctx, "cart", 1) // it exists before the program starts
	s.done.Go(func() { s.rollOut(ctx) })
	return s, nil
}

func (s *simulation) stop() {
	s.cancel()
	s.done.Wait()
	s.other.Close()
	s.client.Close()
	s.server.Close()
}

// written returns the number of events so far, 0 on a real cluster.
func (s *simulation) written() int {
	if s == nil {
		return 0
	}
	return int(s.events.Load())
}

// rollOut adds applications one after the other, and then changes their endpoints and versions,
// some twenty changes a second.
func (s *simulation) rollOut(ctx context.Context) {
	apps := []string{"cart", "catalog", "checkout", "search"}
	for step := 0; ctx.Err() == nil; step++ {
		app := apps[s.random.IntN(min(1+step/20, len(apps)))]
		s.put(ctx, app, int32(step/4%4+1))
		if step%20 == 10 {
			s.upsert(ctx, s.route(app))
		}
		pause(ctx, 90*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// put writes the objects of an application, with so many replicas that are updated and ready.
func (s *simulation) put(ctx context.Context, app string, updated int32) {
	d := s.deployment(app)
	s.upsert(ctx, s.service(app), d, s.slice(app, int(updated)))
	d.Status.Replicas, d.Status.UpdatedReplicas = *d.Spec.Replicas, updated
	s.wrote(d, s.other.UpdateStatus(ctx, d, d))
}

func (s *simulation) upsert(ctx context.Context, objects ...kates.Object) {
	for _, o := range objects {
		s.wrote(o, s.other.Upsert(ctx, nil, o, o))
	}
}

// wrote counts a write if it has changed the object, since that is an event of a watch.
func (s *simulation) wrote(o kates.Object, err error) {
	if err == nil && s.versions[o.GetUID()] != o.GetResourceVersion() {
		s.versions[o.GetUID()] = o.GetResourceVersion()
		s.events.Add(1)
	}
}

func (s *simulation) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.namespace, Labels: map[string]string{"app": name}}
}

func (s *simulation) service(app string) kates.Object {
	return &corev1.Service{ObjectMeta: s.meta(app), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
}

func (s *simulation) deployment(app string) *appsv1.Deployment {
	replicas, labels := int32(4), map[string]string{"app": app}
	d := &appsv1.Deployment{ObjectMeta: s.meta(app), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: app}}},
		},
	}}
	d.Annotations = map[string]string{"revision": fmt.Sprint(s.random.IntN(1000))}
	return d
}

func (s *simulation) slice(app string, ready int) kates.Object {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: s.meta(app + "-1"), AddressType: discoveryv1.AddressTypeIPv4}
	slice.Labels["kubernetes.io/service-name"] = app
	for i := range ready {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.%d.%d", s.random.IntN(250), i+1)},
		})
	}
	return slice
}

func (s *simulation) route(app string) kates.Object {
	u := kates.NewUnstructured("Route", "quickstart.kates.io/v1")
	u.SetNamespace(s.namespace)
	u.SetName(app)
	u.Object["spec"] = map[string]any{"host": app + ".example.com", "service": app}
	return u
}
