package traffic

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const podPort = 2999

// pod is an endpoint that answers with its Service's name.
type pod struct {
	address string // in the API
	served  atomic.Int64
	server  *http.Server
}

func (w *world) pod(service string) *pod {
	at := podAddress()
	p := &pod{address: "10." + strings.TrimPrefix(at, "127.")}
	listener, err := net.Listen("tcp", net.JoinHostPort(at, fmt.Sprint(podPort)))
	require.NoError(w, err)
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		p.served.Add(1)
		fmt.Fprintf(out, "%s %s", service, p.address)
	})}
	go func() { _ = p.server.Serve(listener) }() // until the test ends, or the pod
	w.Cleanup(func() { _ = p.server.Close() })
	return p
}

// end ends a pod as a container ends: what it serves is finished.
func (w *world) end(p *pod) { require.NoError(w, p.server.Shutdown(w.Context())) }

// service is a Service with its EndpointSlice.
type service struct {
	w     *world
	name  string
	slice *discoveryv1.EndpointSlice
}

// service makes a Service with some pods.
func (w *world) service(name string, pods int) *service {
	s := &service{w: w, name: name}
	object := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(podPort)}}}}
	object.APIVersion, object.Kind, object.Name = "v1", "Service", name
	s.slice = &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(podPort)), Protocol: new(corev1.ProtocolTCP)}},
	}
	s.slice.APIVersion, s.slice.Kind, s.slice.Name = "discovery.k8s.io/v1", "EndpointSlice", name
	s.slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	for range pods {
		s.add(w.pod(name))
	}
	w.create(object, s.slice)
	return s
}

// add adds a pod that is ready. It is not written yet.
func (s *service) add(p *pod) {
	s.slice.Endpoints = append(s.slice.Endpoints, discoveryv1.Endpoint{
		Addresses:  []string{p.address},
		Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
	})
}

// terminate marks the oldest pod as terminating. It is not written yet.
func (s *service) terminate() {
	s.slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
}

// remove removes the oldest pod. It is not written yet.
func (s *service) remove() { s.slice.Endpoints = s.slice.Endpoints[1:] }

func (s *service) write() {
	s.w.Helper()
	s.w.update(s.slice)
}
