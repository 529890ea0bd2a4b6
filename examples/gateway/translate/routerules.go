package translate

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// routeRules are the rules of an HTTPRoute, and what is wrong with them.
type routeRules struct {
	all        []routeRule
	invalid    []finding // rules that are not served as they are written
	unresolved []finding // references to backends
	regexes    int       // of all
}

type routeRule struct {
	matches []routeMatch
	rule    nginx.Rule // without conditions
}

// finding is something that is wrong, with its reason in a condition.
type finding struct {
	reason gatewayv1.RouteConditionReason
	what   string
}

// rulesOf reads the rules of an HTTPRoute. A rule that cannot be served as it is written answers
// 500: a request that its filter was to look at must not go on without.
func (t *translation) rulesOf(r *gatewayv1.HTTPRoute) *routeRules {
	rules := &routeRules{}
	for _, h := range r.Spec.Hostnames {
		if !validHostname(string(h)) {
			t.problem(r, string(gatewayv1.RouteReasonUnsupportedValue), "hostname %q is not valid, and left out", h)
		}
	}
	all := r.Spec.Rules
	if len(all) == 0 {
		all = make([]gatewayv1.HTTPRouteRule, 1) // the default of the API
	}
	for i := range all {
		rule, err := t.ruleOf(r, &all[i], rules)
		if err = errors.Join(err, rules.fewRegexes(&rule)); err != nil {
			reason := gatewayv1.RouteReasonUnsupportedValue
			if errors.Is(err, errIncompatible) {
				reason = gatewayv1.RouteReasonIncompatibleFilters
			}
			rule.rule = nginx.Rule{Status: http.StatusInternalServerError}
			rules.invalid = append(rules.invalid, finding{reason, fmt.Sprintf("%d: %v", i, err)})
		}
		rules.all = append(rules.all, rule)
	}
	for _, f := range rules.invalid {
		if holds(rules.accepted()) {
			t.problem(r, string(f.reason), "rule %s", f.what)
		}
	}
	for _, f := range rules.unresolved {
		t.problem(r, string(f.reason), "%s", f.what)
	}
	return rules
}

// ruleOf reads one rule.
func (t *translation) ruleOf(r *gatewayv1.HTTPRoute, of *gatewayv1.HTTPRouteRule, rules *routeRules) (routeRule, error) {
	all, matchErr := matchesOf(of.Matches)
	rule := nginx.Rule{}
	backendErr := t.backendsOf(r, of.BackendRefs, &rule, rules)
	filterErr := filter(&rule, of.Filters)
	timeout, timeoutErr := timeoutOf(of.Timeouts)
	rule.Timeout = timeout
	switch {
	case rule.Redirect != nil:
		rule.Backends = nil
	case len(rule.Backends) == 0:
		rule.Status = http.StatusInternalServerError
	}
	err := errors.Join(matchErr, backendErr, filterErr, timeoutErr)
	for _, m := range all {
		if m.match != nginx.Prefix && replacesPrefix(&rule) {
			err = errors.Join(err, fmt.Errorf("type ReplacePrefixMatch needs matches of type PathPrefix, and %s is none", m.path))
		}
	}
	return routeRule{matches: all, rule: rule}, err
}

// backendsOf adds the backends of a rule, by weight. One that cannot be resolved answers 500.
func (t *translation) backendsOf(
	r *gatewayv1.HTTPRoute, refs []gatewayv1.HTTPBackendRef, rule *nginx.Rule, rules *routeRules,
) error {
	var all []error
	for i := range refs {
		upstream, bad := t.backendOf(r, &refs[i].BackendRef)
		if bad != nil {
			rules.unresolved = append(rules.unresolved, *bad)
		}
		backend := nginx.Backend{Upstream: upstream, Weight: int(ptr.Deref(refs[i].Weight, 1))}
		changes := nginx.Rule{}
		if err := filter(&changes, refs[i].Filters); err != nil {
			all = append(all, err)
		}
		if changes.Redirect != nil || changes.Rewrite != nil {
			all = append(all, fmt.Errorf("backend %s has a filter that only a rule can have", refs[i].Name))
		}
		backend.RequestHeaders, backend.ResponseHeaders = changes.RequestHeaders, changes.ResponseHeaders
		if backend.Weight > 0 {
			rule.Backends = append(rule.Backends, backend)
		}
	}
	return errors.Join(all...)
}

// backendOf returns the upstream of a reference, or what is wrong with it.
func (t *translation) backendOf(r *gatewayv1.HTTPRoute, ref *gatewayv1.BackendRef) (string, *finding) {
	bad := func(reason gatewayv1.RouteConditionReason, format string, args ...any) (string, *finding) {
		return "", &finding{reason, fmt.Sprintf("backendRef %s: ", ref.Name) + fmt.Sprintf(format, args...)}
	}
	if group, kind := ptr.Deref(ref.Group, ""), ptr.Deref(ref.Kind, "Service"); group != "" || kind != "Service" {
		return bad(gatewayv1.RouteReasonInvalidKind, "kind %s of group %q is no Service", kind, group)
	}
	namespace := string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(r.Namespace)))
	if !t.granted(reference{"HTTPRoute", r.Namespace, "Service", namespace, string(ref.Name)}) {
		return bad(gatewayv1.RouteReasonRefNotPermitted,
			"no ReferenceGrant in namespace %s allows it to HTTPRoutes of namespace %s", namespace, r.Namespace)
	}
	if ref.Port == nil {
		return bad(gatewayv1.RouteReasonBackendNotFound, "it names no port")
	}
	id, err := t.upstream(namespace, string(ref.Name), backendPort{number: *ref.Port})
	if err != nil {
		return bad(gatewayv1.RouteReasonBackendNotFound, "%v", err)
	}
	service, err := t.services.Get(t.r, key{Namespace: namespace, Name: string(ref.Name)})
	if err != nil {
		return bad(gatewayv1.RouteReasonBackendNotFound, "%v", err)
	}
	for _, p := range service.Spec.Ports {
		if protocol := ptr.Deref(p.AppProtocol, ""); p.Port == *ref.Port && protocol == "kubernetes.io/h2c" {
			return bad(gatewayv1.RouteReasonUnsupportedProtocol, "appProtocol %s of port %d is not served", protocol, p.Port)
		}
	}
	t.backends = append(t.backends, id)
	return id, nil
}

// timeoutOf is the shorter one of a rule's timeouts. nginx has none for a request as a whole: it
// is the longest time without a byte to or from the endpoint. A timeout of 0 is none, for which
// nginx has a very long one.
func timeoutOf(of *gatewayv1.HTTPRouteTimeouts) (time.Duration, error) {
	const none = 365 * 24 * time.Hour
	if of == nil {
		return 0, nil
	}
	shortest := time.Duration(0)
	for _, d := range []*gatewayv1.Duration{of.Request, of.BackendRequest} {
		if d == nil {
			continue
		}
		timeout, err := time.ParseDuration(string(*d))
		if err != nil || timeout < 0 {
			return 0, fmt.Errorf("timeout %q is no duration", *d)
		}
		if timeout == 0 || timeout > none {
			timeout = none
		}
		if shortest == 0 || timeout < shortest {
			shortest = timeout
		}
	}
	return shortest, nil
}

// at is a rule for one of its matches, at a listener. A redirect goes to the listener's scheme and
// port if the rule has none, and not to those that nginx happens to listen at.
func (r *routeRule) at(l *gatewayListener, m routeMatch) nginx.Rule {
	rule := r.rule
	rule.Conditions = m.conditions
	if rule.Redirect == nil {
		return rule
	}
	wellKnown := map[string]int{"http": 80, "https": 443}
	to, scheme := *rule.Redirect, "http"
	if l.tls {
		scheme = "https"
	}
	if to.Port == 0 && to.Scheme == "" {
		to.Port = int(l.Port)
	}
	if to.Scheme == "" {
		to.Scheme = scheme
	}
	if to.Port == wellKnown[to.Scheme] {
		to.Port = 0
	}
	rule.Redirect = &to
	return rule
}

// accepted says whether a Route can be served at all: it has a rule that can.
func (r *routeRules) accepted() metav1.Condition {
	if n := len(r.invalid); n > 0 && n == len(r.all) {
		return isFalse(gatewayv1.RouteConditionAccepted, r.invalid[0].reason, "rule %s", join(r.invalid))
	}
	return isTrue(gatewayv1.RouteConditionAccepted, gatewayv1.RouteReasonAccepted)
}

// partly is the condition of an accepted Route some of whose rules are not served as written.
func (r *routeRules) partly(accepted metav1.Condition) []metav1.Condition {
	if len(r.invalid) == 0 || !holds(accepted) {
		return nil
	}
	c := isTrue(gatewayv1.RouteConditionPartiallyInvalid, gatewayv1.RouteReasonUnsupportedValue)
	c.Message = message("Dropped Rule %s; its requests are answered with 500", join(r.invalid))
	return []metav1.Condition{c}
}

// resolved says whether all references to backends can be followed.
func (r *routeRules) resolved() metav1.Condition {
	if len(r.unresolved) == 0 {
		return isTrue(gatewayv1.RouteConditionResolvedRefs, gatewayv1.RouteReasonResolvedRefs)
	}
	return isFalse(gatewayv1.RouteConditionResolvedRefs, r.unresolved[0].reason, "%s", join(r.unresolved))
}

func join(all []finding) string {
	var texts []string
	for _, f := range all {
		texts = append(texts, f.what)
	}
	return strings.Join(texts, "; ")
}
