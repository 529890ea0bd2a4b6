package workload

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Web is what gateways serve: Ingresses of one host with two paths each, a Service for each path,
// and the Services' endpoints. Each change has a number, its mark, which can be read from the
// configuration that a gateway makes. Its methods may be called concurrently.
type Web struct {
	client    kubernetes.Interface
	ingresses int
	endpoints int // of each Service
}

const (
	// WebClass is the IngressClass of all Ingresses.
	WebClass = "gateway"
	// WebNamespace is that of the gateway itself, for its Lease.
	WebNamespace = "gateway"
	// WebEndpoints is how many endpoints all Services together may have: more of them would look
	// like marks.
	WebEndpoints = 1 << 16

	pathOfMark = "/v"
	everyNth   = 20 // change is one of an Ingress; the others are of endpoints
)

// NewWeb returns what to fill the server of the configuration with. It makes no request.
func NewWeb(config *rest.Config, ingresses, endpoints int) (*Web, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.ContentType, c.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make a client of the load: %w", err)
	}
	return &Web{client, ingresses, endpoints}, nil
}

// Services returns how many Services there are.
func (w *Web) Services() int { return 2 * w.ingresses }

// Fill creates everything. The class' controller is the one that is measured.
func (w *Web) Fill(ctx context.Context, controller string) error {
	err := parallel(ctx, namespaces+1, func(ctx context.Context, i int) error {
		name := WebNamespace
		if i < namespaces {
			name = Namespace(i)
		}
		_, err := w.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	})
	if err == nil {
		class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: WebClass}, Spec: networkingv1.IngressClassSpec{Controller: controller}}
		_, err = w.client.NetworkingV1().IngressClasses().Create(ctx, class, metav1.CreateOptions{})
	}
	if err == nil {
		err = parallel(ctx, w.Services(), w.fillService)
	}
	if err == nil {
		err = parallel(ctx, w.ingresses, func(ctx context.Context, i int) error {
			_, err := w.client.NetworkingV1().Ingresses(Namespace(i)).Create(ctx, webIngress(i, 0), metav1.CreateOptions{FieldManager: "helm"})
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("fill the server: %w", err)
	}
	return nil
}

func (w *Web) fillService(ctx context.Context, i int) error {
	service := Service(i)
	service.Namespace = Namespace(i / 2) // as its Ingress
	if _, err := w.client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
		return err
	}
	_, err := w.client.DiscoveryV1().EndpointSlices(service.Namespace).Create(ctx, w.slice(i, 0), metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	return err
}

// webIngress returns the i-th Ingress. The mark is in its second path.
func webIngress(i, mark int) *networkingv1.Ingress {
	path := func(path string, service int) networkingv1.HTTPIngressPath {
		return networkingv1.HTTPIngressPath{
			Path: path, PathType: new(networkingv1.PathTypePrefix),
			Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: Service(service).Name, Port: networkingv1.ServiceBackendPort{Name: "http"},
			}},
		}
	}
	name := fmt.Sprintf("app-%04d", i)
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace(i), Labels: map[string]string{"app": name}},
		Spec: networkingv1.IngressSpec{
			IngressClassName: new(WebClass),
			Rules: []networkingv1.IngressRule{{
				Host: WebHost(i),
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{path("/", 2*i), path(pathOfMark+strconv.Itoa(mark), 2*i+1)},
				}},
			}},
		},
	}
}

// slice returns the endpoints of the i-th Service. With a mark, the last address is made of it.
func (w *Web) slice(i, mark int) *discoveryv1.EndpointSlice {
	service := Service(i)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service.Name + "-x7k2p", Namespace: Namespace(i / 2),
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", "app": service.Name,
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for e := range w.endpoints {
		n := i*w.endpoints + e
		address := fmt.Sprintf("10.0.%d.%d", n>>8, n&0xff)
		if mark > 0 && e == w.endpoints-1 {
			address = fmt.Sprintf("10.%d.%d.%d", firstOfMarks+mark>>16, mark>>8&0xff, mark&0xff)
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{address},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			NodeName:   new(fmt.Sprintf("ip-10-%d-%d-%d.compute.internal", n%7, n%200, n%250)),
			Zone:       new("eu-central-1" + string(rune('a'+n%3))),
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: Namespace(i / 2), Name: PodName(n), UID: UID(n)},
		})
	}
	return s
}

// firstOfMarks is the second byte of the lowest address that is a mark. As a text it comes after
// those of the other endpoints.
const firstOfMarks = 200

// EndpointMark returns the mark in a sorted list of endpoints, 0 if there is none.
func EndpointMark(endpoints []string) int {
	if len(endpoints) == 0 {
		return 0
	}
	var a, b, c, port int
	if n, _ := fmt.Sscanf(endpoints[len(endpoints)-1], "10.%d.%d.%d:%d", &a, &b, &c, &port); n < 4 || a < firstOfMarks {
		return 0
	}
	return (a-firstOfMarks)<<16 | b<<8 | c
}

// PathMark returns the mark in a path, 0 if there is none.
func PathMark(path string) int {
	text, _ := strings.CutPrefix(path, pathOfMark)
	mark, _ := strconv.Atoi(text)
	return mark
}

// WebHost is the host of the i-th Ingress.
func WebHost(i int) string { return fmt.Sprintf("app-%04d.example.com", i) }

// WebUpstream names the endpoints of the i-th Service, as namespace.name.port.
func WebUpstream(i int) string { return fmt.Sprintf("%s.%s.80", Namespace(i/2), Service(i).Name) }

// WebChange is a change that the server has taken.
type WebChange struct {
	Ingress bool
	Key     string // the host, or the name of the endpoints
	Mark    int
	At      time.Time // when the answer was there
}

// Change makes the change of a number, which is above 0.
func (w *Web) Change(ctx context.Context, mark int) (c WebChange, err error) {
	c.Mark = mark
	object, isIngress := w.changed(mark)
	if c.Ingress = isIngress; isIngress {
		c.Key = WebHost(object)
		_, err = w.client.NetworkingV1().Ingresses(Namespace(object)).Update(ctx, webIngress(object, mark), metav1.UpdateOptions{FieldManager: "helm"})
	} else {
		c.Key = WebUpstream(object)
		_, err = w.client.DiscoveryV1().EndpointSlices(Namespace(object/2)).Update(ctx, w.slice(object, mark), metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
	}
	if c.At = time.Now(); err != nil {
		return c, fmt.Errorf("change %s: %w", c.Key, err)
	}
	return c, nil
}

// changed returns which object a change is of. The objects come in a mixed order, each as often as
// the others.
func (w *Web) changed(mark int) (object int, isIngress bool) {
	const stride = 7919 // a prime, which divides no number of objects here
	if mark%everyNth == 0 {
		return mark / everyNth * stride % w.ingresses, true
	}
	return (mark - mark/everyNth) * stride % w.Services(), false
}

// Lane is a number that all changes of one object share. They are to be made in their order.
func (w *Web) Lane(mark int) int {
	object, isIngress := w.changed(mark)
	if isIngress {
		return object
	}
	return w.ingresses + object
}

// Reported returns how many Ingresses have an address in their status.
func (w *Web) Reported(ctx context.Context) (n int, err error) {
	all, err := w.client.NetworkingV1().Ingresses("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, fmt.Errorf("look at the statuses: %w", err)
	}
	for i := range all.Items {
		if len(all.Items[i].Status.LoadBalancer.Ingress) > 0 {
			n++
		}
	}
	return n, nil
}
