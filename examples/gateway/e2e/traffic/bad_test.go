package traffic

import (
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// makeBad makes an object of each kind of mistake, on the hosts of healthy objects.
func (w *world) makeBad() {
	w.Helper()
	service := ingress("bad-service", "one.test", to{"/bad-service", "nowhere"})

	long := ingress("bad-path", "one.test", to{"/bad-path" + strings.Repeat("x", 5000), "a"})

	broken := w.authority.secret("bad-tls", "bad.test")
	broken.Data[corev1.TLSPrivateKeyKey] = w.authority.secret("", "bad.test").Data[corev1.TLSPrivateKeyKey]
	secure := withTLS(ingress("bad-tls", "bad.test", to{"/", "a"}), broken.Name)

	grant := route("bad-grant", "routes.test", to{"/bad-grant", "a"})
	grant.Spec.Rules[0].BackendRefs[0].Namespace = new(gatewayv1.Namespace("default"))

	w.create(service, long, broken, secure, grant)
}

// reported is what the gateway says of objects.
type reported struct {
	Routes []*gatewayv1.HTTPRoute
	Events []*eventsv1.Event `kates:"events.events.k8s.io"`
}

// seesBad waits until each mistake is reported on its object.
func (w *world) seesBad() {
	w.Helper()
	snapshots, err := kates.Watch[reported](w.Context(), w.client,
		kates.Query{Name: "Routes", Namespace: w.namespace}, kates.Query{Name: "Events", Namespace: w.namespace})
	require.NoError(w, err)
	defer snapshots.Close()
	katestest.Until(w, snapshots, func(s *reported) bool {
		return s.event("bad-service", "InvalidBackend") && s.event("bad-path", "Refused") &&
			s.event("bad-tls", "InvalidCertificate") && s.condition("bad-grant", gatewayv1.RouteReasonRefNotPermitted)
	}, katestest.Within(patience))
}

func (s *reported) event(ingress, reason string) bool {
	for _, e := range s.Events {
		if e.Regarding.Kind == "Ingress" && e.Regarding.Name == ingress && e.Reason == reason && e.Type == corev1.EventTypeWarning {
			return true
		}
	}
	return false
}

func (s *reported) condition(route string, reason gatewayv1.RouteConditionReason) bool {
	for _, r := range s.Routes {
		for _, p := range r.Status.Parents {
			c := meta.FindStatusCondition(p.Conditions, string(gatewayv1.RouteConditionResolvedRefs))
			if r.Name == route && c != nil && c.Status == metav1.ConditionFalse && c.Reason == string(reason) {
				return true
			}
		}
	}
	return false
}
