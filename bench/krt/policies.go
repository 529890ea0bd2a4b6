package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"istio.io/istio/pkg/kube/krt"
)

// cluster has pods, and policies that select some by their labels.
type cluster struct {
	pods     []*corev1.Pod
	policies []policy
	podIn    krt.StaticCollection[*corev1.Pod]
	policyIn krt.StaticCollection[policy]
}

type policy struct {
	Name     string
	Selector map[string]string
	Value    int
}

func (p policy) ResourceName() string { return "shop/" + p.Name }

func (p policy) GetLabelSelector() map[string]string { return p.Selector }

const appLabel = "app"

func newCluster(c command) (all cluster) {
	for i := range c.Objects {
		all.pods = append(all.pods, podOf(i, 0, c.Policies))
	}
	for i := range c.Policies {
		all.policies = append(all.policies, policyOf(i, 0))
	}
	return all
}

func podOf(i, version, policies int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("pod-%06d", i),
			Labels: map[string]string{appLabel: fmt.Sprintf("app-%d", i%policies), "tier": fmt.Sprint(i % 3)},
		},
		Status: corev1.PodStatus{PodIP: fmt.Sprintf("10.%d.0.%d", i, version)},
	}
}

func policyOf(i, version int) policy {
	return policy{Name: fmt.Sprintf("policy-%06d", i), Selector: map[string]string{appLabel: fmt.Sprintf("app-%d", i)}, Value: version}
}

func (c *cluster) fill(o krt.OptionsBuilder) {
	c.podIn = krt.NewStaticCollection(nil, c.pods, o.WithName("pods")...)
	c.policyIn = krt.NewStaticCollection(nil, c.policies, o.WithName("policies")...)
}

func (c *cluster) object(ch change) (func(), error) {
	switch ch.Kind {
	case "pod":
		p := podOf(ch.At, ch.Version, len(c.policies))
		return func() { c.podIn.UpdateObject(p) }, nil
	case "policy", "wide":
		p := policyOf(ch.At, ch.Version)
		if ch.Kind == "wide" {
			p.Selector = map[string]string{}
		}
		return func() { c.policyIn.UpdateObject(p) }, nil
	}
	return nil, fmt.Errorf("there is no %s among pods and policies", ch.Kind)
}

// secured is the result of a pod.
type secured struct {
	Key, IP  string
	Policies []string
	Sum      int
}

func (s secured) ResourceName() string { return s.Key }

// line sorts, because krt gives objects in any order.
func (s secured) line() string {
	return fmt.Sprintf("%s|%s|%s|%d", s.Key, s.IP, strings.Join(slices.Sorted(slices.Values(s.Policies)), ","), s.Sum)
}

// perPod finds the policies that select a pod.
type perPod struct {
	cluster
	output[secured]
}

func (p *perPod) first() {
	o := p.options()
	p.fill(o)
	p.follow(krt.NewCollection(p.podIn, func(ctx krt.HandlerContext, pod *corev1.Pod) *secured {
		s := secured{Key: pod.Namespace + "/" + pod.Name, IP: pod.Status.PodIP}
		for _, x := range krt.Fetch(ctx, p.policyIn, krt.FilterSelects(pod.Labels)) {
			s.Policies = append(s.Policies, x.Name)
			s.Sum += x.Value
		}
		return &s
	}, o.WithName("secured")...))
}

// compiled is the result of a policy.
type compiled struct {
	Key   string
	Value int
	IPs   []string
}

func (c compiled) ResourceName() string { return c.Key }

func (c compiled) line() string {
	return fmt.Sprintf("%s|%d|%s", c.Key, c.Value, strings.Join(slices.Sorted(slices.Values(c.IPs)), ","))
}

// perPolicy finds the pods that a policy selects: by their labels, or by an index that is written
// for such policies.
type perPolicy struct {
	cluster
	output[compiled]
	indexed bool
}

func (p *perPolicy) first() {
	o := p.options()
	p.fill(o)
	byApp := krt.NewIndex(p.podIn, "app", func(pod *corev1.Pod) []string { return []string{pod.Labels[appLabel]} })
	p.follow(krt.NewCollection(p.policyIn, func(ctx krt.HandlerContext, x policy) *compiled {
		c := compiled{Key: x.ResourceName(), Value: x.Value}
		which := krt.FilterLabel(x.Selector)
		if p.indexed {
			which = krt.FilterIndex(byApp, x.Selector[appLabel])
		}
		for _, pod := range krt.Fetch(ctx, p.podIn, which) {
			c.IPs = append(c.IPs, pod.Status.PodIP)
		}
		return &c
	}, o.WithName("compiled")...))
}
