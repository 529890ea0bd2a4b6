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

	"github.com/kates-go/kates/derive"
)

// route attaches an HTTPRoute to the listeners of our Gateways that its parentRefs name, and
// reports on it, for each of these parents.
func (t *translation) route(_ key, seen *gatewayv1.HTTPRoute) (*fragment, error) {
	var parents []gatewayv1.ParentReference
	listeners := map[key][]*gatewayListener{}
	for _, p := range seen.Spec.ParentRefs {
		if all, err := t.listeners.Get(t.r, parentOf(seen, p)); err == nil {
			parents, listeners[parentOf(seen, p)] = append(parents, p), all
		}
	}
	ours := func(p gatewayv1.RouteParentStatus) bool { return p.ControllerName == Controller }
	if len(parents) == 0 && !slices.ContainsFunc(seen.Status.Parents, ours) {
		return nil, derive.Skip
	}
	status := &gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{}}}
	f := &fragment{object: seen, status: status, counts: map[counted]int32{}}
	served, rules := seen, &routeRules{}
	if last, ok := t.current(seen).(*gatewayv1.HTTPRoute); ok {
		served, rules = last, t.rulesOf(last)
	}
	for _, p := range parents {
		accepted := t.attach(f, served, rules, p, listeners[parentOf(seen, p)])
		if refusal := t.refusal(seen); refusal != "" {
			accepted = isFalse(gatewayv1.RouteConditionAccepted, gatewayv1.RouteReasonUnsupportedValue, "%s", refusal)
		} else {
			t.complain(seen, accepted)
		}
		conditions := append([]metav1.Condition{accepted, rules.resolved()}, rules.partly(accepted)...)
		status.Parents = append(status.Parents, gatewayv1.RouteParentStatus{
			ParentRef: p, ControllerName: Controller, Conditions: observed(seen.Generation, conditions...),
		})
	}
	f.notes = t.notes
	return f, nil
}

// attachedTo are the Gateways that an HTTPRoute is attached to.
func attachedTo(_ key, f *fragment) []key { return f.parents }

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
	f *fragment, r *gatewayv1.HTTPRoute, rules *routeRules, p gatewayv1.ParentReference, listeners []*gatewayListener,
) metav1.Condition {
	const accepted = gatewayv1.RouteConditionAccepted
	parent := parentOf(r, p)
	named := where(listeners, func(l *gatewayListener) bool { return l.selectedBy(p) })
	if len(named) == 0 {
		return isFalse(accepted, gatewayv1.RouteReasonNoMatchingParent,
			"Gateway %s has no listener with the sectionName and port of the parentRef", parent)
	}
	allowing := where(named, func(l *gatewayListener) bool { return len(l.kinds) > 0 && t.allows(l, r.Namespace) })
	if len(allowing) == 0 {
		return isFalse(accepted, gatewayv1.RouteReasonNotAllowedByListeners,
			"no listener of Gateway %s allows HTTPRoutes of namespace %s", parent, r.Namespace)
	}
	matching := where(allowing, func(l *gatewayListener) bool { return len(hosts(r, l)) > 0 })
	if len(matching) == 0 {
		return isFalse(accepted, gatewayv1.RouteReasonNoMatchingListenerHostname,
			"no hostname of it is one of a listener of Gateway %s", parent)
	}
	verdict := rules.accepted()
	for _, l := range matching {
		if holds(verdict) && t.refusal(r) == "" {
			f.counts[counted{parent, l.index}]++
			f.parents = append(f.parents, parent)
		}
		// Of a Route of which nothing is served there is no host, either: it may be the one that
		// nginx has refused.
		if slices.ContainsFunc(rules.all, func(r routeRule) bool { return len(r.matches) > 0 }) {
			t.attachHosts(f, r, rules, l)
		}
	}
	return verdict
}

// attachHosts attaches a Route to a listener, for those hosts that no other listener has.
func (t *translation) attachHosts(f *fragment, r *gatewayv1.HTTPRoute, rules *routeRules, l *gatewayListener) {
	holders, _ := t.holders.Get(t.r)
	for _, host := range hosts(r, l) {
		if by := l.isolated(holders, host, r); by == nil {
			f.attach(l, r, rules, host)
		} else if by.Namespace != l.gateway.Namespace {
			t.problem(r, "Conflict", "host %q: Gateway %s/%s, which is older, has it with a listener of its own", cmp.Or(host, "*"), by.Namespace, by.Name)
			t.problem(by, "Conflict", "host %q: an HTTPRoute of namespace %s, which is younger, claims it", cmp.Or(host, "*"), r.Namespace)
		}
	}
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

// selectedBy reports whether a parentRef selects a listener of its Gateway.
func (l *gatewayListener) selectedBy(p gatewayv1.ParentReference) bool {
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
		n, err := t.namespaces.Get(t.r, key{Name: namespace})
		return err == nil && selects.Matches(labels.Set(n.Labels))
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
