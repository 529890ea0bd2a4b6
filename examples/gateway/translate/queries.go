package translate

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/kates-go/kates/kates"
)

// Equal queries share a watch if their functions are one value, so each of these is a variable.
var (
	// wanted is a signal for what users want. Statuses are written by this program, and by others.
	wanted = kates.AnySignal(kates.GenerationChanged, kates.LabelsChanged, kates.AnnotationsChanged)

	unannotated = kates.DropFields("metadata.annotations")
	serviceOnly = kates.DropFields("metadata.annotations", "status")

	// addresses drops what an EndpointSlice says of an endpoint beside its address and conditions:
	// it is more than half of it.
	addresses = kates.TransformOf(func(s *discoveryv1.EndpointSlice) error {
		s.Annotations = nil
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			e.DeprecatedTopology, e.Hostname, e.NodeName, e.TargetRef = nil, nil, nil, nil
		}
		return nil
	})

	// certificateOnly drops what a Secret has beside a certificate and its key.
	certificateOnly = kates.TransformOf(func(s *corev1.Secret) error {
		s.Annotations = nil
		maps.DeleteFunc(s.Data, func(key string, _ []byte) bool {
			return key != corev1.TLSCertKey && key != corev1.TLSPrivateKeyKey
		})
		return nil
	})
)

// Scheme has the Go types of a Snapshot: the client needs it.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, gatewayv1.Install, gatewayv1beta1.Install} {
		utilruntime.Must(add(s))
	}
	return s
}

// Queries are those of a Snapshot. The settings are in the ConfigMap of that name; without a name
// there are none. A Secret that may not be read counts as one that does not exist.
func Queries(settingsNamespace, settingsName string) []kates.Query {
	settings := kates.Query{Name: "Settings", Kind: "configmaps", Transform: unannotated, Namespaces: []string{}}
	if settingsName != "" {
		settings.Namespaces, settings.FieldSelector = []string{settingsNamespace}, "metadata.name="+settingsName
	}
	return []kates.Query{
		settings,
		{Name: "Classes", Signal: wanted},
		{Name: "Ingresses", Signal: wanted},
		{Name: "GatewayClasses", Signal: wanted},
		{Name: "Gateways", Signal: wanted},
		{Name: "Routes", Signal: wanted},
		{Name: "Grants", Signal: wanted},
		{Name: "Namespaces", Signal: kates.LabelsChanged, Transform: unannotated},
		{Name: "Services", Transform: serviceOnly},
		{Name: "Slices", Transform: addresses},
		{Name: "Secrets", Optional: true, Transform: certificateOnly, Refs: []kates.Ref{
			kates.RefsOf("Ingresses", secretsOfIngress), kates.RefsOf("Gateways", secretsOfGateway),
		}},
	}
}

// secretsOfIngress names the Secrets of an Ingress. Whether its class is one of this controller
// does not follow from the Ingress alone, so it is not asked.
func secretsOfIngress(in *networkingv1.Ingress) (names []types.NamespacedName) {
	for _, tls := range in.Spec.TLS {
		names = append(names, types.NamespacedName{Name: tls.SecretName})
	}
	return names
}

// secretsOfGateway names the Secrets of a Gateway.
func secretsOfGateway(g *gatewayv1.Gateway) (names []types.NamespacedName) {
	for _, l := range g.Spec.Listeners {
		if l.TLS == nil {
			continue
		}
		for _, ref := range l.TLS.CertificateRefs {
			if (ref.Group == nil || *ref.Group == "") && (ref.Kind == nil || *ref.Kind == "Secret") {
				var namespace gatewayv1.Namespace
				if ref.Namespace != nil {
					namespace = *ref.Namespace
				}
				names = append(names, types.NamespacedName{Namespace: string(namespace), Name: string(ref.Name)})
			}
		}
	}
	return names
}
