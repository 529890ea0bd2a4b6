package report

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/translate"
)

// merged returns conditions as they are wanted. One whose status has not changed keeps its time.
func merged(now, want []metav1.Condition) []metav1.Condition {
	all := slices.Clone(now)
	for _, c := range want {
		meta.SetStatusCondition(&all, c)
	}
	return all
}

// only is merged without the conditions that are not wanted: where all are this controller's.
func only(now, want []metav1.Condition) []metav1.Condition {
	kept := slices.DeleteFunc(slices.Clone(now), func(c metav1.Condition) bool { return meta.FindStatusCondition(want, c.Type) == nil })
	return merged(kept, want)
}

func classStatus(now gatewayv1.GatewayClassStatus, want *gatewayv1.GatewayClassStatus) gatewayv1.GatewayClassStatus {
	all := *want.DeepCopy()
	all.Conditions = merged(now.Conditions, want.Conditions)
	return all
}

// gatewayStatus keeps conditions that others have set: policies do that.
func gatewayStatus(now gatewayv1.GatewayStatus, want *gatewayv1.GatewayStatus) gatewayv1.GatewayStatus {
	all := *want.DeepCopy()
	all.Conditions = merged(now.Conditions, want.Conditions)
	for i := range all.Listeners {
		l := &all.Listeners[i]
		var former []metav1.Condition
		if at := slices.IndexFunc(now.Listeners, func(n gatewayv1.ListenerStatus) bool { return n.Name == l.Name }); at >= 0 {
			former = now.Listeners[at].Conditions
		}
		l.Conditions = only(former, l.Conditions)
		for k := range l.SupportedKinds {
			l.SupportedKinds[k].Group = cmp.Or(l.SupportedKinds[k].Group, &group)
		}
	}
	return all
}

// The server's defaults, which a program's objects may lack.
var (
	group = gatewayv1.Group(gatewayv1.GroupName)
	kind  = gatewayv1.Kind("Gateway")
)

// same reports whether two references are the same one, with or without defaults.
func same(a, b gatewayv1.ParentReference) bool {
	for _, r := range []*gatewayv1.ParentReference{&a, &b} {
		r.Group, r.Kind = cmp.Or(r.Group, &group), cmp.Or(r.Kind, &kind)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// parents replaces those of this controller. Each of the others stays at its place, so that two
// controllers do not undo each other's order for ever.
func parents(now, want []gatewayv1.RouteParentStatus) []gatewayv1.RouteParentStatus {
	all := []gatewayv1.RouteParentStatus{} // the API wants a list, be it empty
	done := make([]bool, len(want))
	for _, n := range now {
		if n.ControllerName != translate.Controller {
			all = append(all, n)
			continue
		}
		i := slices.IndexFunc(want, func(w gatewayv1.RouteParentStatus) bool { return same(w.ParentRef, n.ParentRef) })
		if i >= 0 && !done[i] {
			done[i] = true
			n.Conditions = only(n.Conditions, want[i].Conditions)
			all = append(all, n)
		}
	}
	for i, w := range want {
		if !done[i] {
			w.Conditions = only(nil, w.Conditions)
			all = append(all, w)
		}
	}
	return all
}
