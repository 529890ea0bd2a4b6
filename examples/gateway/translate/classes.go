package translate

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/derive"
)

// features are those of the Gateway API that the gateway has, by name. The conformance tests prove
// each of them.
var features = []gatewayv1.FeatureName{
	"Gateway",
	"GatewayAddressEmpty",
	"GatewayHTTPListenerIsolation",
	"GatewayHTTPSListenerDetectMisdirectedRequests",
	"GatewayPort8080",
	"GatewayStaticAddresses",
	"HTTPRoute",
	"HTTPRoute303RedirectStatusCode",
	"HTTPRoute307RedirectStatusCode",
	"HTTPRoute308RedirectStatusCode",
	"HTTPRouteBackendProtocolWebSocket",
	"HTTPRouteBackendRequestHeaderModification",
	"HTTPRouteBackendTimeout",
	"HTTPRouteDestinationPortMatching",
	"HTTPRouteHostRewrite",
	"HTTPRouteMethodMatching",
	"HTTPRouteNamedRouteRule",
	"HTTPRouteParentRefPort",
	"HTTPRoutePathRedirect",
	"HTTPRoutePathRewrite",
	"HTTPRoutePortRedirect",
	"HTTPRouteQueryParamMatching",
	"HTTPRouteRequestTimeout",
	"HTTPRouteResponseHeaderModification",
	"HTTPRouteSchemeRedirect",
	"ReferenceGrant",
}

// isOurs reports whether a GatewayClass is of this controller.
func isOurs(class *gatewayv1.GatewayClass) bool { return class.Spec.ControllerName == Controller }

// gatewayClass reports on a GatewayClass of this controller. One with parameters is not accepted,
// since there are none. Its Gateways are served all the same: they are not at fault.
func (t *translation) gatewayClass(_ key, class *gatewayv1.GatewayClass) (*fragment, error) {
	if !isOurs(class) {
		return nil, derive.Skip
	}
	accepted := isTrue(gatewayv1.GatewayClassConditionStatusAccepted, gatewayv1.GatewayClassReasonAccepted)
	if p := class.Spec.ParametersRef; p != nil {
		accepted = isFalse(gatewayv1.GatewayClassConditionStatusAccepted, gatewayv1.GatewayClassReasonInvalidParameters,
			"spec.parametersRef names %s %q: this controller has no parameters; remove it", p.Kind, p.Name)
		t.problem(class, accepted.Reason, "%s", accepted.Message)
	}
	status := &gatewayv1.GatewayClassStatus{Conditions: observed(class.Generation, accepted)}
	for _, f := range features {
		status.SupportedFeatures = append(status.SupportedFeatures, gatewayv1.SupportedFeature{Name: f})
	}
	return &fragment{object: class, status: status, notes: t.notes}, nil
}
