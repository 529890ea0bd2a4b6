package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// Tenant is everything that one tenant's result needs, all of it at once.
type Tenant struct {
	Namespaces []*corev1.Namespace
	Quotas     []*corev1.ResourceQuota
	Policies   []*networkingv1.NetworkPolicy
	Nodes      []*corev1.Node `kates:",optional"` // without a Key it belongs to every tenant

	Deltas []*kates.Delta
}

// queries says which objects belong to which tenant. Nodes change all the time because of the
// kubelets' heartbeats. So only a node that comes or goes brings a call; other changes are in the
// next call.
func queries(label string) []kates.RunOption {
	tenant := kates.ByLabel(label)
	return []kates.RunOption{
		kates.Query{Name: "Namespaces", LabelSelector: label, Key: tenant},
		kates.Query{Name: "Quotas", LabelSelector: label, Key: tenant},
		kates.Query{Name: "Policies", LabelSelector: label, Key: tenant},
		kates.Query{Name: "Nodes", Signal: comesOrGoes},
	}
}

// comesOrGoes is true of nodes that come or go.
var comesOrGoes = kates.SignalOf(func(old, current metav1.Object) bool { return old == nil || current == nil })

// budget is an annotation of namespaces: how many CPUs the tenant pays for there.
const budget = "tenants.example.com/cpu-budget"

// report is the result made from a tenant's snapshot.
type report struct {
	namespaces int
	cpu, paid  resource.Quantity // what it may use by its quotas, and what it pays for
	share      float64           // share of all nodes' CPUs; 0 if the nodes are not known
	open       []string          // namespaces without a policy
}

// tenant is called with a tenant's snapshot when something has changed for it.
func (p *program) tenant(_ context.Context, name string, snap *Tenant) error {
	if len(snap.Namespaces)+len(snap.Quotas)+len(snap.Policies) == 0 {
		p.gone(name)
		return nil
	}
	r, err := compute(snap)
	if err != nil {
		// this tenant is tried again, with its newest snapshot, no sooner than its backoff
		return err
	}
	p.print(name, r, snap.Deltas)
	return nil
}

func compute(snap *Tenant) (*report, error) {
	r := &report{namespaces: len(snap.Namespaces)}
	isolated := map[string]bool{}
	for _, policy := range snap.Policies {
		isolated[policy.Namespace] = true
	}
	for _, ns := range snap.Namespaces {
		if !isolated[ns.Name] {
			r.open = append(r.open, ns.Name)
		}
		if text, ok := ns.Annotations[budget]; ok {
			paid, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, fmt.Errorf("the budget of namespace %s is %q, which is no quantity", ns.Name, text)
			}
			r.paid.Add(paid)
		}
	}
	for _, quota := range snap.Quotas {
		r.cpu.Add(quota.Spec.Hard[corev1.ResourceLimitsCPU])
	}
	var all resource.Quantity
	for _, node := range snap.Nodes {
		all.Add(node.Status.Allocatable[corev1.ResourceCPU])
	}
	if !all.IsZero() {
		r.share = r.cpu.AsApproximateFloat64() / all.AsApproximateFloat64()
	}
	return r, nil
}

func (r *report) String() string {
	verdict := "isolated"
	if len(r.open) > 0 {
		verdict = "no policy in " + strings.Join(r.open, ", ")
	}
	if r.cpu.Cmp(r.paid) > 0 {
		verdict += fmt.Sprintf("; more than the %s it pays for", r.paid.String())
	}
	share := "-"
	if r.share > 0 {
		share = fmt.Sprintf("%.0f%%", 100*r.share)
	}
	return fmt.Sprintf("%10d  %6s  %6s   %-48s", r.namespaces, r.cpu.String(), share, verdict)
}
