package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/kates"
)

// cluster plays what stands between a Deployment and its endpoints: the controllers of Deployments
// and of EndpointSlices, the kubelets, and the containers, which are echo servers. A Pod 10.n.a.b
// is served at 127.n.a.b, since the API has no endpoints on the loopback interface.
type cluster struct {
	client  *kates.Client
	network byte // n

	mu   sync.Mutex
	pods map[string]*echo // by namespace and name
}

// wanted is a snapshot of what the cluster runs.
type wanted struct {
	Deployments []*appsv1.Deployment
	Services    []*corev1.Service
	Pods        []*corev1.Pod
}

// run plays until ctx ends, and ends the echo servers then.
func (c *cluster) run(ctx context.Context) error {
	err := kates.Run(ctx, c.client, c.reconcile, kates.WithName("cluster"))
	for _, pod := range c.pods {
		err = errors.Join(err, pod.close())
	}
	return err
}

// reconcile makes Pods for Deployments and EndpointSlices for Services. It knows no end of a Pod:
// the suite keeps its Deployments.
func (c *cluster) reconcile(ctx context.Context, snap *wanted) error {
	var errs []error
	for _, d := range snap.Deployments {
		errs = append(errs, c.deploy(ctx, d))
	}
	for _, p := range snap.Pods {
		errs = append(errs, c.start(ctx, p))
	}
	for _, s := range snap.Services {
		if len(s.Spec.Selector) > 0 {
			errs = append(errs, c.endpoints(ctx, s, snap.Pods))
		}
	}
	return errors.Join(errs...)
}

// deploy makes the Pods of a Deployment.
func (c *cluster) deploy(ctx context.Context, d *appsv1.Deployment) error {
	set := kates.OwnedSet{Owner: d, SetName: "cluster"}
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	for i := range replicas {
		pod := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
		pod.APIVersion, pod.Kind = "v1", "Pod"
		pod.Name, pod.Labels = fmt.Sprintf("%s-pod-%d", d.Name, i), d.Spec.Template.Labels
		pod.Spec.NodeName = "node"
		set.Objects = append(set.Objects, pod)
	}
	_, err := c.client.ApplyOwned(ctx, set)
	return err
}

// start starts the containers of a Pod, and says that they are ready.
func (c *cluster) start(ctx context.Context, pod *corev1.Pod) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := pod.Namespace + "/" + pod.Name
	if c.pods[key] == nil {
		e, err := startEcho(address(c.network, 2, byte(len(c.pods)+1)), pod.Namespace, pod.Name)
		if err != nil {
			return err
		}
		c.pods[key] = e
	}
	if pod.Status.PodIP != "" {
		return nil
	}
	ready := pod.DeepCopy()
	ready.Status.Phase = corev1.PodRunning
	ready.Status.PodIP = strings.Replace(c.pods[key].address, "127.", "10.", 1)
	ready.Status.PodIPs = []corev1.PodIP{{IP: ready.Status.PodIP}}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		ready.Status.Conditions = append(ready.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	return c.client.UpdateStatus(ctx, ready, nil)
}

// endpoints makes the EndpointSlice of a Service.
func (c *cluster) endpoints(ctx context.Context, s *corev1.Service, pods []*corev1.Pod) error {
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	slice.APIVersion, slice.Kind, slice.Name = "discovery.k8s.io/v1", "EndpointSlice", s.Name+"-pods"
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: s.Name}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
			Name: &p.Name, Protocol: &p.Protocol, Port: &p.TargetPort.IntVal, AppProtocol: p.AppProtocol,
		})
	}
	of := labels.SelectorFromSet(s.Spec.Selector)
	for _, p := range pods {
		if p.Namespace == s.Namespace && p.Status.PodIP != "" && of.Matches(labels.Set(p.Labels)) {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{p.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			})
		}
	}
	slices.SortFunc(slice.Endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(a.Addresses[0], b.Addresses[0]) })
	_, err := c.client.ApplyOwned(ctx, kates.OwnedSet{Owner: s, SetName: "cluster", Objects: []kates.Object{slice}})
	return err
}
