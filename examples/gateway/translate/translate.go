// Package translate makes the configuration of nginx, and what the status of each object should
// say, of one snapshot. The result is a pure function of the snapshot and Options: no I/O, no
// clock. What is made of what stands in graph.go. A [Translator] keeps the parts, and makes again
// those that a change concerns; [Translate] makes all of them.
package translate

import (
	"net/netip"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// Controller is the name of this controller in IngressClasses, GatewayClasses and statuses.
const Controller = "gateway.example.com/kates"

// Snapshot is everything that the configuration is made of, all of it at once.
type Snapshot struct {
	Classes   []*networkingv1.IngressClass
	Ingresses []*networkingv1.Ingress

	GatewayClasses []*gatewayv1.GatewayClass        `kates:",optional"`
	Gateways       []*gatewayv1.Gateway             `kates:",optional"`
	Routes         []*gatewayv1.HTTPRoute           `kates:",optional"`
	Grants         []*gatewayv1beta1.ReferenceGrant `kates:",optional"`

	Namespaces []*kates.PartialObjectMetadata `kates:"namespaces"` // which Routes a Gateway allows
	Services   []*corev1.Service
	Slices     []*discoveryv1.EndpointSlice
	Secrets    []*corev1.Secret    // those that Ingresses and Gateways name
	Settings   []*corev1.ConfigMap // one at most
}

// Options are what a snapshot does not say.
type Options struct {
	// Address is the one to listen at for what has none of its own. The zero value: all.
	Address netip.Addr
	// Port returns the port to listen at for a port that objects name: 8080 for 80, say. nil: the
	// same one.
	Port func(int) int
	// Addresses are those that Gateways get, one each. If there are none, all Gateways share all
	// addresses of the machine, and of two equal listeners the older Gateway has it.
	Addresses []netip.Addr
	// Published are the addresses that statuses show where a Gateway has none of its own, and
	// those of Ingresses: IP addresses or names.
	Published []string
	// Now is the time by which certificates are judged. Zero: their dates are not looked at.
	Now time.Time
	// Zone of this replica. Empty: endpoints are not chosen by their zones.
	Zone string
	// Machine is what objects get nothing of.
	Machine Machine
	// Endpoint changes the address of an endpoint. nil: none, and endpoints on this machine are left
	// out. The demonstration has its endpoints on the loopback interface, which the API server
	// refuses in an EndpointSlice.
	Endpoint func(address string) string
	// Remote has endpoints of other clusters.
	Remote []fleet.Object[*discoveryv1.EndpointSlice]
	// ReportsOnly: the configuration is not wanted, so it has no endpoints.
	ReportsOnly bool
	// Refused has the objects that nginx has refused, by UID. A refusal counts for the
	// version that the snapshot has.
	Refused map[types.UID]Refusal
}

// Refusal is nginx' refusal of an object.
type Refusal struct {
	Version string // the resource version of the object that it counts for
	Message string // of nginx
	// Held: the message is about another object of the namespace. Nothing of the namespace that is
	// new is served until nginx has checked all of that.
	Held bool
	// LastGood is the last version that nginx took: it is served instead. nil: none.
	LastGood kates.Object
}

// lasting are the options without those that have a place of their own in the graph.
func (o Options) lasting() Options {
	o.Now, o.Remote, o.ReportsOnly, o.Refused = time.Time{}, nil, false, nil
	return o
}

// sameOptions compares options but for their functions, which stay.
func sameOptions(a, b Options) bool {
	a.Port, a.Endpoint, b.Port, b.Endpoint = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// Desired is what there should be.
type Desired struct {
	Config nginx.Config
	// Reports are by kind, namespace and name. Each Ingress, GatewayClass, Gateway and Route of
	// this controller has one, each Secret that they use, and the settings if they are wrong.
	Reports []Report
}

// Report is what the status and the events of an object should say.
type Report struct {
	Object kates.Object // as the snapshot has it
	// Status is the status that it should have: *IngressStatus of networking/v1, or
	// *GatewayClassStatus, *GatewayStatus or *HTTPRouteStatus of the Gateway API. Conditions have no
	// times. Of an HTTPRoute it has the parents of this controller alone. nil: leave it as it is.
	Status any
	// Problems are what is wrong with it, in a stable order.
	Problems []Problem
	// Pending: nginx has refused the object as it was, and has not judged it as it is. So nothing
	// new is known of it. Package loops sets it.
	Pending bool
}

// Problem is one thing that is wrong with an object. It never harms another object.
type Problem struct {
	Reason  string // in CamelCase, as of an event
	Message string
}
