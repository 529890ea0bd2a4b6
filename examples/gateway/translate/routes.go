package translate

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// route attaches an HTTPRoute to the listeners of our Gateways that its parentRefs name, and
// reports on it, for each of these parents.
func (t *translation) route(observedRoute *gatewayv1.HTTPRoute, gateways map[types.NamespacedName]*gateway) {
	var parents []gatewayv1.ParentReference
	for _, p := range observedRoute.Spec.ParentRefs {
		if gateways[parentOf(observedRoute, p)] != nil {
			parents = append(parents, p)
		}
	}
	ours := func(p gatewayv1.RouteParentStatus) bool { return p.ControllerName == Controller }
	if len(parents) == 0 && !slices.ContainsFunc(observedRoute.Status.Parents, ours) {
		return
	}
	status := &gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{}}}
	t.report(observedRoute).Status = status
	served, rules := observedRoute, &routeRules{}
	if last, ok := t.current(observedRoute).(*gatewayv1.HTTPRoute); ok {
		served, rules = last, t.rulesOf(last)
	}
	for _, p := range parents {
		accepted := t.attach(served, rules, p, gateways[parentOf(observedRoute, p)])
		if refusal := t.refusal(observedRoute); refusal != "" {
			accepted = isFalse(gatewayv1.RouteConditionAccepted, gatewayv1.RouteReasonUnsupportedValue, "%s", refusal)
		} else {
			t.complain(observedRoute, accepted)
		}
		conditions := append([]metav1.Condition{accepted, rules.resolved()}, rules.partly(accepted)...)
		status.Parents = append(status.Parents, gatewayv1.RouteParentStatus{
			ParentRef: p, ControllerName: Controller, Conditions: observed(observedRoute.Generation, conditions...),
		})
	}
}

// parentOf names the Gateway of a parentRef. It has no name if the parent is of another kind.
func parentOf(r *gatewayv1.HTTPRoute, p gatewayv1.ParentReference) types.NamespacedName {
	if ptr.Deref(p.Group, gatewayv1.GroupName) != gatewayv1.GroupName || ptr.Deref(p.Kind, "Gateway") != "Gateway" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{
		Namespace: string(ptr.Deref(p.Namespace, gatewayv1.Namespace(r.Namespace))), Name: string(p.Name),
	}
}

// attach attaches a Route to the listeners of a parent, and says whether it is accepted.
func (t *translation) attach(
	r *gatewayv1.HTTPRoute, rules *routeRules, p gatewayv1.ParentReference, g *gateway,
) metav1.Condition {
	const accepted = gatewayv1.RouteConditionAccepted
	named := where(g.listeners, func(l *gatewayListener) bool { return l.named(p) })
	if len(named) == 0 {
		return isFalse(accepted, gatewayv1.RouteReasonNoMatchingParent,
			"Gateway %s/%s has no listener with the sectionName and port of the parentRef", g.Namespace, g.Name)
	}
	allowing := where(named, func(l *gatewayListener) bool { return len(l.kinds) > 0 && t.allows(l, r.Namespace) })
	if len(allowing) == 0 {
		return isFalse(accepted, gatewayv1.RouteReasonNotAllowedByListeners,
			"no listener of Gateway %s/%s allows HTTPRoutes of namespace %s", g.Namespace, g.Name, r.Namespace)
	}
	matching := where(allowing, func(l *gatewayListener) bool { return len(hosts(r, l)) > 0 })
	if len(matching) == 0 {
		return isFalse(accepted, gatewayv1.RouteReasonNoMatchingListenerHostname,
			"no hostname of it is one of a listener of Gateway %s/%s", g.Namespace, g.Name)
	}
	verdict := rules.accepted()
	for _, l := range matching {
		if holds(verdict) && t.refusal(r) == "" {
			l.attached++
		}
		for _, host := range hosts(r, l) {
			// Of a Route of which nothing is served there is no host, either: it may be the one that
			// nginx has refused.
			if !slices.ContainsFunc(rules.all, func(r routeRule) bool { return len(r.matches) > 0 }) {
				continue
			}
			if by := l.isolated(host, r); by == nil {
				t.claimHosts(l.attach(r, rules, host))
			} else if by.Namespace != l.gateway.Namespace {
				t.problem(r, "Conflict", "host %q: Gateway %s/%s, which is older, has it with a listener of its own", cmp.Or(host, "*"), by.Namespace, by.Name)
				t.problem(by.observed, "Conflict", "host %q: an HTTPRoute of namespace %s, which is younger, claims it", cmp.Or(host, "*"), r.Namespace)
			}
		}
	}
	return verdict
}

func where(all []*gatewayListener, is func(*gatewayListener) bool) []*gatewayListener {
	return slices.Collect(func(yield func(*gatewayListener) bool) {
		for _, l := range all {
			if is(l) && !yield(l) {
				return
			}
		}
	})
}

// named reports whether a parentRef selects a listener of its Gateway.
func (l *gatewayListener) named(p gatewayv1.ParentReference) bool {
	return ptr.Deref(p.SectionName, l.Name) == l.Name && ptr.Deref(p.Port, l.Port) == l.Port
}

// allows reports whether a listener allows Routes of a namespace.
func (t *translation) allows(l *gatewayListener, namespace string) bool {
	from, selector := gatewayv1.NamespacesFromSame, (*metav1.LabelSelector)(nil)
	if a := l.AllowedRoutes; a != nil && a.Namespaces != nil {
		from, selector = ptr.Deref(a.Namespaces.From, from), a.Namespaces.Selector
	}
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return namespace == l.gateway.Namespace
	case gatewayv1.NamespacesFromSelector:
		selects, err := metav1.LabelSelectorAsSelector(selector) // none selects nothing
		if err != nil {
			return false
		}
		for _, n := range t.snap.Namespaces {
			if n.Name == namespace {
				return selects.Matches(labels.Set(n.Labels))
			}
		}
	}
	return false
}

// hosts are those that a Route and a listener both have: "" is the one for all hosts.
func hosts(r *gatewayv1.HTTPRoute, l *gatewayListener) []string {
	if len(r.Spec.Hostnames) == 0 {
		return []string{l.host}
	}
	var both []string
	for _, h := range r.Spec.Hostnames {
		if host, ok := intersection(l.host, strings.ToLower(string(h))); ok && validHostname(string(h)) {
			both = append(both, host)
		}
	}
	slices.Sort(both)
	return slices.Compact(both)
}

// addRules adds the rules of a Route to a server.
func (a attachment) addRules(s *serverRules) {
	for i, rule := range a.rules.all {
		for _, m := range rule.matches {
			s.add(path{m.match, m.path}, entry{rule: rule.at(a.gatewayListener, m), object: a.object, index: i})
		}
	}
}
