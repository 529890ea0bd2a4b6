package translate

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
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

// gatewayClasses reports on the GatewayClasses of this controller, and returns their names. A
// class with parameters is not accepted, since there are none. Its Gateways are served all the
// same: they are not at fault.
func (t *translation) gatewayClasses() map[gatewayv1.ObjectName]bool {
	ours := map[gatewayv1.ObjectName]bool{}
	for _, class := range t.snap.GatewayClasses {
		if class.Spec.ControllerName != Controller {
			continue
		}
		ours[gatewayv1.ObjectName(class.Name)] = true
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
		t.report(class).Status = status
	}
	return ours
}
