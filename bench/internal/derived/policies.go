package derived

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// cluster is a snapshot of pods, and of policies that select some by their labels.
type cluster struct {
	Pods     []*corev1.Pod
	Policies []*policy
	// policies is how many apps the pods are of: a policy selects one.
	policies int
}

type policy struct {
	metav1.ObjectMeta
	Selector labels.Selector
	App      string // that it selects; empty: all
	Value    int
}

func newCluster(pods, policies int) cluster {
	c := cluster{policies: policies}
	for i := range pods {
		c.Pods = append(c.Pods, c.pod(i, 0))
	}
	for i := range policies {
		c.Policies = append(c.Policies, policyOf(i, 0))
	}
	return c
}

const appLabel = "app"

func (c cluster) pod(i, version int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("pod-%06d", i),
			Labels: map[string]string{appLabel: fmt.Sprintf("app-%d", i%c.policies), "tier": fmt.Sprint(i % 3)},
		},
		Status: corev1.PodStatus{PodIP: fmt.Sprintf("10.%d.0.%d", i, version)},
	}
}

func policyOf(i, version int) *policy {
	app := fmt.Sprintf("app-%d", i)
	return &policy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("policy-%06d", i)},
		Selector:   labels.SelectorFromSet(labels.Set{appLabel: app}), App: app, Value: version,
	}
}

// object makes the new version of an object.
func (c cluster) object(ch Change) (any, error) {
	switch ch.Kind {
	case Pod:
		return c.pod(ch.At, ch.Version), nil
	case Policy:
		return policyOf(ch.At, ch.Version), nil
	case Wide:
		p := policyOf(ch.At, ch.Version)
		p.Selector, p.App = labels.Everything(), ""
		return p, nil
	}
	return nil, fmt.Errorf("there is no %s among pods and policies", ch.Kind)
}

// changed returns the next snapshot, with that object.
func (c cluster) changed(ch Change, object any) cluster {
	switch o := object.(type) {
	case *corev1.Pod:
		c.Pods = with(c.Pods, ch.At, o)
	case *policy:
		c.Policies = with(c.Policies, ch.At, o)
	}
	return c
}

// secured is the result of a pod: its address, and the policies that select it.
type secured struct {
	IP       string
	Policies []string
	Sum      int
}

func securedOf(p *corev1.Pod, policies iter.Seq[*policy]) secured {
	s := secured{IP: p.Status.PodIP}
	for x := range policies {
		s.Policies = append(s.Policies, x.Name)
		s.Sum += x.Value
	}
	return s
}

func (s secured) line(k key) string {
	return fmt.Sprintf("%s|%s|%s|%d", k, s.IP, sorted(s.Policies), s.Sum)
}

// compiled is the result of a policy: its value, and the addresses that it selects.
type compiled struct {
	Value int
	IPs   []string
}

func compiledOf(p *policy, pods iter.Seq[*corev1.Pod]) compiled {
	c := compiled{Value: p.Value}
	for x := range pods {
		c.IPs = append(c.IPs, x.Status.PodIP)
	}
	return c
}

func (c compiled) line(k key) string {
	return fmt.Sprintf("%s|%d|%s", k, c.Value, sorted(c.IPs))
}

// sorted writes a list in one order, whatever order a contender has it in.
func sorted(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), ",") }
