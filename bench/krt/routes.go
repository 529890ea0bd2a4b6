package main

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"istio.io/istio/pkg/kube/krt"
)

// routes is a routing table.
type routes struct {
	output[row]
	services    []*corev1.Service
	slices      []*discoveryv1.EndpointSlice
	deployments []*appsv1.Deployment

	serviceIn    krt.StaticCollection[*corev1.Service]
	sliceIn      krt.StaticCollection[*discoveryv1.EndpointSlice]
	deploymentIn krt.StaticCollection[*appsv1.Deployment]
}

// row is a row of the routing table.
type row struct{ Key, ClusterIP, Ready, Rollout string }

func (r row) ResourceName() string { return r.Key }

func (r row) line() string {
	return strings.Join([]string{r.ClusterIP, r.Key, r.Ready, r.Rollout}, "|")
}

func newRoutes(n int) *routes {
	r := &routes{}
	for i := range n {
		r.services = append(r.services, serviceOf(i, 0))
		r.slices = append(r.slices, sliceOf(i, 0))
		r.deployments = append(r.deployments, deploymentOf(i, 0))
	}
	return r
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

func (r *routes) first() {
	o := r.options()
	r.serviceIn = krt.NewStaticCollection(nil, r.services, o.WithName("services")...)
	r.sliceIn = krt.NewStaticCollection(nil, r.slices, o.WithName("slices")...)
	r.deploymentIn = krt.NewStaticCollection(nil, r.deployments, o.WithName("deployments")...)
	slicesOf := krt.NewIndex(r.sliceIn, "service", func(s *discoveryv1.EndpointSlice) []string {
		return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}
	})
	r.follow(krt.NewCollection(r.serviceIn, func(ctx krt.HandlerContext, s *corev1.Service) *row {
		key := s.Namespace + "/" + s.Name
		ready, rollout := 0, ""
		for _, s := range krt.Fetch(ctx, r.sliceIn, krt.FilterIndex(slicesOf, key)) {
			for _, e := range s.Endpoints {
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					ready += len(e.Addresses)
				}
			}
		}
		if d := krt.FetchOne(ctx, r.deploymentIn, krt.FilterKey(key)); d != nil {
			want := int32(1)
			if (*d).Spec.Replicas != nil {
				want = *(*d).Spec.Replicas
			}
			rollout = fmt.Sprintf("%d/%d updated", (*d).Status.UpdatedReplicas, want)
		}
		return &row{Key: key, ClusterIP: s.Spec.ClusterIP, Ready: fmt.Sprint(ready), Rollout: rollout}
	}, o.WithName("rows")...))
}

func (r *routes) object(c change) (func(), error) {
	switch c.Kind {
	case "service":
		s := serviceOf(c.At, c.Version)
		return func() { r.serviceIn.UpdateObject(s) }, nil
	case "slice":
		s := sliceOf(c.At, c.Version)
		return func() { r.sliceIn.UpdateObject(s) }, nil
	case "deployment":
		d := deploymentOf(c.At, c.Version)
		return func() { r.deploymentIn.UpdateObject(d) }, nil
	}
	return nil, fmt.Errorf("there is no %s in a routing table", c.Kind)
}

// forget keeps the objects, which a graph does not hold either.
func (r *routes) forget() {
	r.output.forget()
	r.serviceIn, r.sliceIn, r.deploymentIn = krt.StaticCollection[*corev1.Service]{}, krt.StaticCollection[*discoveryv1.EndpointSlice]{}, krt.StaticCollection[*appsv1.Deployment]{}
}
