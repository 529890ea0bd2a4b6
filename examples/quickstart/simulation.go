package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// simulation is a simulated cluster: an API in memory, and somebody who rolls out an application
// in it. The rollout uses another client, so the program learns of its writes only from watches.
type simulation struct {
	client *kates.Client // the program's client
	fake   *katestest.Fake
	other  *kates.Client // the client of the rollout
	events atomic.Int64
	cancel context.CancelFunc
	done   sync.WaitGroup

	namespace string
	random    *rand.Rand
}

// late is how far the watch of ConfigMaps is behind.
const late = 400 * time.Millisecond

func startSimulation(namespace string, options ...kates.Option) (*simulation, error) {
	fake, err := katestest.NewFake(
		katestest.WithKinds(katestest.Kind{APIVersion: "quickstart.kates.io/v1", Kind: "Route"}),
		katestest.WithClientOptions(options...),
	)
	if err != nil {
		return nil, err
	}
	other, err := kates.NewClientFromDynamic(fake.Dynamic, fake.Mapper)
	if err != nil {
		fake.Close()
		return nil, err
	}
	fake.Dynamic.PrependWatchReactor("configmaps", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := fake.Dynamic.Tracker().Watch(action.GetResource(), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		return true, newLateWatch(w), nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	s := &simulation{
		client: fake.Client, fake: fake, other: other, cancel: cancel,
		namespace: namespace, random: rand.New(rand.NewPCG(1, 2)),
	}
	// these exist before the program starts
	s.put(ctx, s.service("cart"), s.deployment("cart", 1), s.slice("cart", 1))
	s.done.Go(func() { s.rollOut(ctx) })
	return s, nil
}

func (s *simulation) stop() {
	s.cancel()
	s.done.Wait()
	s.other.Close()
	s.fake.Close()
}

// written returns the number of events so far, 0 on a real cluster.
func (s *simulation) written() int {
	if s == nil {
		return 0
	}
	return int(s.events.Load())
}

// rollOut adds applications one after the other, and then changes their endpoints and versions,
// some thirty changes a second.
func (s *simulation) rollOut(ctx context.Context) {
	apps := []string{"cart", "catalog", "checkout", "search"}
	for step := 0; ctx.Err() == nil; step++ {
		app := apps[s.random.IntN(min(1+step/20, len(apps)))]
		updated := int32(step/4%4 + 1)
		s.put(ctx, s.service(app), s.deployment(app, updated), s.slice(app, int(updated)))
		if step%20 == 10 {
			s.put(ctx, s.route(app))
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

// put replaces whole objects with their status, which only a fake allows.
func (s *simulation) put(ctx context.Context, objects ...kates.Object) {
	for _, o := range objects {
		err := s.other.Update(ctx, o, nil)
		if kates.IsNotFound(err) {
			err = s.other.Create(ctx, o, nil)
		}
		if err == nil {
			s.events.Add(1)
		}
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

func (s *simulation) deployment(app string, updated int32) kates.Object {
	replicas := int32(4)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: app, Namespace: s.namespace,
			Annotations: map[string]string{"revision": fmt.Sprint(s.random.IntN(1000))},
		},
		Spec:   appsv1.DeploymentSpec{Replicas: &replicas},
		Status: appsv1.DeploymentStatus{UpdatedReplicas: updated},
	}
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

// lateWatch delivers the events of a watch late, in order.
type lateWatch struct {
	watch.Interface
	out  chan watch.Event
	stop chan struct{}
	once sync.Once
}

func newLateWatch(w watch.Interface) watch.Interface {
	l := &lateWatch{Interface: w, out: make(chan watch.Event), stop: make(chan struct{})}
	go l.run()
	return l
}

func (l *lateWatch) run() {
	defer close(l.out)
	for {
		select {
		case e := <-l.Interface.ResultChan():
			e.Object = copied(e.Object)
			select {
			case <-time.After(late):
			case <-l.stop:
				return
			}
			select {
			case l.out <- e:
			case <-l.stop:
				return
			}
		case <-l.stop:
			return
		}
	}
}

func copied(o runtime.Object) runtime.Object {
	if o == nil {
		return nil
	}
	return o.DeepCopyObject()
}

func (l *lateWatch) ResultChan() <-chan watch.Event { return l.out }

func (l *lateWatch) Stop() {
	l.once.Do(func() {
		close(l.stop)
		l.Interface.Stop()
	})
}
