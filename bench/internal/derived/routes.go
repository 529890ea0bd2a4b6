package derived

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type key = types.NamespacedName

// routesSnapshot is what a routing table is made of.
type routesSnapshot struct {
	Services    []*corev1.Service
	Slices      []*discoveryv1.EndpointSlice
	Deployments []*appsv1.Deployment
}

func appOf(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("app-%06d", i)}
}

func serviceOf(i, version int) *corev1.Service {
	return &corev1.Service{ObjectMeta: appOf(i), Spec: corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.0.0.%d", version)}}
}

func sliceOf(i, version int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: appOf(i)}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: s.Name}
	for range version%7 + 1 {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}})
	}
	return s
}

func deploymentOf(i, version int) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: appOf(i), Status: appsv1.DeploymentStatus{UpdatedReplicas: int32(version)}}
}

func newRoutes(n int) (s routesSnapshot) {
	for i := range n {
		s.Services = append(s.Services, serviceOf(i, 0))
		s.Slices = append(s.Slices, sliceOf(i, 0))
		s.Deployments = append(s.Deployments, deploymentOf(i, 0))
	}
	return s
}

// object makes the new version of an object.
func (s routesSnapshot) object(c Change) (any, error) {
	switch c.Kind {
	case Service:
		return serviceOf(c.At, c.Version), nil
	case Slice:
		return sliceOf(c.At, c.Version), nil
	case Deployment:
		return deploymentOf(c.At, c.Version), nil
	}
	return nil, fmt.Errorf("there is no %s in a routing table", c.Kind)
}

// changed returns the next snapshot, with that object. It shares with this one what has not
// changed, as those of kates do.
func (s routesSnapshot) changed(c Change, object any) routesSnapshot {
	switch o := object.(type) {
	case *corev1.Service:
		s.Services = with(s.Services, c.At, o)
	case *discoveryv1.EndpointSlice:
		s.Slices = with(s.Slices, c.At, o)
	case *appsv1.Deployment:
		s.Deployments = with(s.Deployments, c.At, o)
	}
	return s
}

// with returns a list with another element.
func with[T any](all []T, i int, x T) []T {
	all = slices.Clone(all)
	all[i] = x
	return all
}

// row is a row of the routing table.
type row []string

func (r row) line(key) string { return strings.Join(r, "|") }

// rowOf makes a row. The Deployment may be nil.
func rowOf(k key, s *corev1.Service, slices func(yield func(*discoveryv1.EndpointSlice) bool), d *appsv1.Deployment) row {
	ready, rollout := 0, ""
	for s := range slices {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready += len(e.Addresses)
			}
		}
	}
	if d != nil {
		rollout = rolloutOf(d)
	}
	return row{s.Spec.ClusterIP, k.String(), fmt.Sprint(ready), rollout}
}

func rolloutOf(d *appsv1.Deployment) string {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	return fmt.Sprintf("%d/%d updated", d.Status.UpdatedReplicas, want)
}

func keyOf(o metav1.Object) key { return key{Namespace: o.GetNamespace(), Name: o.GetName()} }

// home is the key of an EndpointSlice's Service.
func home(s *discoveryv1.EndpointSlice) key {
	return key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
}
