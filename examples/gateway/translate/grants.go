package translate

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

// reference is one from a Gateway or an HTTPRoute to an object of the core group.
type reference struct {
	kind, namespace     string // of the Gateway or HTTPRoute
	toKind, toNamespace string
	toName              string
}

// granted reports whether a reference is allowed: it stays within its namespace, or a
// ReferenceGrant in the namespace that it points to allows it.
func (t *translation) granted(r reference) bool {
	if r.namespace == r.toNamespace {
		return true
	}
	for _, grant := range t.grants.Members(t.r, r.toNamespace).All() {
		if r.allowedBy(grant) {
			return true
		}
	}
	return false
}

// allowedBy reports whether a grant allows the reference.
func (r reference) allowedBy(grant *gatewayv1beta1.ReferenceGrant) bool {
	from := func(f gatewayv1beta1.ReferenceGrantFrom) bool {
		return f.Group == gatewayv1.GroupName && string(f.Kind) == r.kind && string(f.Namespace) == r.namespace
	}
	to := func(to gatewayv1beta1.ReferenceGrantTo) bool {
		return to.Group == "" && string(to.Kind) == r.toKind &&
			(to.Name == nil || *to.Name == "" || string(*to.Name) == r.toName)
	}
	return grant.Namespace == r.toNamespace &&
		slices.ContainsFunc(grant.Spec.From, from) && slices.ContainsFunc(grant.Spec.To, to)
}
