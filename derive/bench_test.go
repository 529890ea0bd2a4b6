package derive_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kates-go/kates/derive"
)

// These are the workloads of `make bench-derive`, to work with.

type key = types.NamespacedName

// cluster is the snapshot of the routing table.
type cluster struct {
	Services    []*corev1.Service
	Slices      []*discoveryv1.EndpointSlice
	Deployments []*appsv1.Deployment
}

func meta(prefix string, i int, set map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%06d", prefix, i), Labels: set}
}

func sliceOf(i, version int) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: meta("app", i, map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("app-%06d", i)}),
		Endpoints:  []discoveryv1.Endpoint{{Addresses: make([]string, version)}, {Addresses: []string{"10.0.0.2"}}},
	}
}

func clusterOf(n int) (c cluster) {
	for i := range n {
		c.Services = append(c.Services, &corev1.Service{ObjectMeta: meta("app", i, nil)})
		c.Slices = append(c.Slices, sliceOf(i, 1))
		c.Deployments = append(c.Deployments, &appsv1.Deployment{ObjectMeta: meta("app", i, nil)})
	}
	return c
}

func routingTable() *derive.Graph[cluster] {
	g := derive.New[cluster]("routing table")
	services := derive.Objects(g, "services", func(c *cluster) []*corev1.Service { return c.Services })
	slices := derive.Objects(g, "slices", func(c *cluster) []*discoveryv1.EndpointSlice { return c.Slices })
	deployments := derive.Objects(g, "deployments", func(c *cluster) []*appsv1.Deployment { return c.Deployments })
	slicesOf := derive.GroupBy(slices, "slices of", func(k key, s *discoveryv1.EndpointSlice) []key {
		return []key{{Namespace: k.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}}
	})
	derive.Map(services, "rows", func(r *derive.Reader, k key, _ *corev1.Service) ([]string, error) {
		ready, rollout := 0, ""
		for _, s := range slicesOf.Members(r, k).All() {
			ready += addresses(s)
		}
		if d, err := deployments.Get(r, k); err == nil {
			rollout = rolloutOf(d)
		}
		return []string{k.String(), fmt.Sprint(ready), rollout}, nil
	})
	return g
}

func addresses(s *discoveryv1.EndpointSlice) (ready int) {
	for _, e := range s.Endpoints {
		ready += len(e.Addresses)
	}
	return ready
}

func rolloutOf(d *appsv1.Deployment) string {
	return fmt.Sprintf("%d/%d updated", d.Status.UpdatedReplicas, ptr.Deref(d.Spec.Replicas, 1))
}

// loop makes the rows of a routing table as a program without a graph does.
func (c *cluster) loop() map[key][]string {
	slicesOf := make(map[key][]*discoveryv1.EndpointSlice)
	for _, s := range c.Slices {
		k := key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		slicesOf[k] = append(slicesOf[k], s)
	}
	deployments := make(map[key]*appsv1.Deployment)
	for _, d := range c.Deployments {
		deployments[key{Namespace: d.Namespace, Name: d.Name}] = d
	}
	rows := make(map[key][]string)
	for _, s := range c.Services {
		k, ready, rollout := key{Namespace: s.Namespace, Name: s.Name}, 0, ""
		for _, slice := range slicesOf[k] {
			ready += addresses(slice)
		}
		if d := deployments[k]; d != nil {
			rollout = rolloutOf(d)
		}
		rows[k] = []string{k.String(), fmt.Sprint(ready), rollout}
	}
	return rows
}

// fleet is the snapshot of pods with the policies that select them.
type fleet struct {
	Pods     []*corev1.Pod
	Policies []*policy
}

type policy struct {
	metav1.ObjectMeta
	Selector labels.Selector
	Value    int
}

type workload struct {
	IP       string
	Policies []string
	Sum      int
}

const pods, policies = 10_000, 500

func podOf(i, version int) *corev1.Pod {
	set := map[string]string{"app": fmt.Sprintf("app-%d", i%policies), "tier": fmt.Sprint(i % 3)}
	return &corev1.Pod{ObjectMeta: meta("pod", i, set), Status: corev1.PodStatus{PodIP: fmt.Sprintf("10.0.0.%d", version)}}
}

func policyOf(i, version int) *policy {
	s := labels.SelectorFromSet(labels.Set{"app": fmt.Sprintf("app-%d", i)})
	return &policy{ObjectMeta: meta("policy", i, nil), Selector: s, Value: version}
}

func fleetOf() (f fleet) {
	for i := range pods {
		f.Pods = append(f.Pods, podOf(i, 0))
	}
	for i := range policies {
		f.Policies = append(f.Policies, policyOf(i, 0))
	}
	return f
}

func perPod() *derive.Graph[fleet] {
	g := derive.New[fleet]("policies by pod")
	pods := derive.Objects(g, "pods", func(f *fleet) []*corev1.Pod { return f.Pods })
	policies := derive.Objects(g, "policies", func(f *fleet) []*policy { return f.Policies })
	selecting := derive.BySelector(policies, "selectors", func(k key, p *policy) (string, labels.Selector) { return k.Namespace, p.Selector })
	derive.Map(pods, "workloads", func(r *derive.Reader, k key, p *corev1.Pod) (workload, error) {
		w := workload{IP: p.Status.PodIP}
		for k, x := range selecting.Matching(r, k.Namespace, p.Labels).All() {
			w.Policies = append(w.Policies, k.Name)
			w.Sum += x.Value
		}
		return w, nil
	})
	return g
}

type compiled struct {
	Value int
	IPs   []string
}

func perPolicy() *derive.Graph[fleet] {
	g := derive.New[fleet]("pods by policy")
	pods := derive.Objects(g, "pods", func(f *fleet) []*corev1.Pod { return f.Pods })
	policies := derive.Objects(g, "policies", func(f *fleet) []*policy { return f.Policies })
	labeled := derive.ByLabels(pods, "labels", func(k key, p *corev1.Pod) (string, map[string]string) { return k.Namespace, p.Labels })
	derive.Map(policies, "compiled", func(r *derive.Reader, k key, p *policy) (compiled, error) {
		c := compiled{Value: p.Value}
		for _, pod := range labeled.Select(r, k.Namespace, p.Selector).All() {
			c.IPs = append(c.IPs, pod.Status.PodIP)
		}
		return c, nil
	})
	return g
}

// with returns a copy of a list with another element.
func with[T any](all []T, i int, x T) []T {
	all = append(make([]T, 0, len(all)), all...)
	all[i] = x
	return all
}

// ring returns snapshots each of which differs from the one before in one object, the first one
// from the last one too. change puts an object into a snapshot; objects has two versions of each.
// A program's snapshot has just been made, and is in the processor's caches. So there are few of
// them.
func ring[S, O any](s S, change func(s S, i int, o O) S, object func(i, version int) O) (all []S) {
	const n = 4
	var objects [2][n]O
	for i := range n {
		objects[0][i], objects[1][i] = object(i, 1), object(i, 2)
		s = change(s, i, objects[1][i])
	}
	for _, versions := range objects {
		for i, o := range versions {
			s = change(s, i, o)
			all = append(all, s)
		}
	}
	return all
}

func benchmark[S any](b *testing.B, declare func() *derive.Graph[S], snapshots ...S) {
	b.Helper()
	var g *derive.Graph[S]
	i := 0
	update := func() {
		if _, err := g.Update(&snapshots[i%len(snapshots)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	if len(snapshots) > 1 {
		g = declare()
		for range 2 * len(snapshots) {
			update()
		}
	}
	measure(b, func() {
		if len(snapshots) == 1 {
			g = declare()
		}
		update()
	})
}

func measure(b *testing.B, f func()) {
	b.Helper()
	b.ReportAllocs()
	then := cpu()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(cpu()-then)/float64(b.N), "cpu-ns/op")
}

// cpu is the CPU time of the process. Other work on the machine does not count.
func cpu() time.Duration {
	var of syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &of); err != nil {
		panic(err)
	}
	return time.Duration(of.Utime.Nano() + of.Stime.Nano())
}

func BenchmarkRoutingTable(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		c := clusterOf(n)
		b.Run(fmt.Sprintf("loop/%d", n), func(b *testing.B) { measure(b, func() { c.loop() }) })
		b.Run(fmt.Sprintf("first/%d", n), func(b *testing.B) { benchmark(b, routingTable, c) })
		b.Run(fmt.Sprintf("a slice/%d", n), func(b *testing.B) {
			at := func(i int) int { return (i + 1) * n / 5 }
			benchmark(b, routingTable, ring(c, func(c cluster, i int, s *discoveryv1.EndpointSlice) cluster {
				c.Slices = with(c.Slices, at(i), s)
				return c
			}, func(i, version int) *discoveryv1.EndpointSlice { return sliceOf(at(i), version+1) })...)
		})
	}
}

func BenchmarkPolicies(b *testing.B) {
	f := fleetOf()
	podAt, policyAt := func(i int) int { return (i + 1) * pods / 5 }, func(i int) int { return (i + 1) * policies / 5 }
	aPod := ring(f, func(f fleet, i int, p *corev1.Pod) fleet {
		f.Pods = with(f.Pods, podAt(i), p)
		return f
	}, func(i, version int) *corev1.Pod { return podOf(podAt(i), version) })
	putPolicy := func(f fleet, _ int, p *policy) fleet {
		for i := range f.Policies {
			if f.Policies[i].Name == p.Name {
				f.Policies = with(f.Policies, i, p)
			}
		}
		return f
	}
	aPolicy := ring(f, putPolicy, func(i, version int) *policy { return policyOf(policyAt(i), version) })
	ofAll := ring(f, putPolicy, func(i, version int) *policy {
		p := policyOf(0, 4*version+i)
		p.Selector = labels.Everything()
		return p
	})
	for _, of := range []struct {
		name    string
		declare func() *derive.Graph[fleet]
	}{{"per pod", perPod}, {"per policy", perPolicy}} {
		b.Run(of.name+"/first", func(b *testing.B) { benchmark(b, of.declare, f) })
		b.Run(of.name+"/a pod", func(b *testing.B) { benchmark(b, of.declare, aPod...) })
		b.Run(of.name+"/a policy", func(b *testing.B) { benchmark(b, of.declare, aPolicy...) })
		b.Run(of.name+"/a policy of all", func(b *testing.B) { benchmark(b, of.declare, ofAll...) })
	}
}

// list is a snapshot whose objects one function looks up, in this order.
type list struct {
	Services []*corev1.Service
	Order    *[]key
}

func lengthOfNames() *derive.Graph[list] {
	g := derive.New[list]("list")
	services := derive.Objects(g, "services", func(l *list) []*corev1.Service { return l.Services })
	order := derive.Input(g, "order", func(l *list) *[]key { return l.Order }, derive.Equal(func(a, b *[]key) bool { return a == b }))
	derive.Compute(g, "length", func(r *derive.Reader) (n int, err error) {
		keys, err := order.Get(r)
		if err != nil {
			return 0, err
		}
		for _, k := range *keys {
			s, err := services.Get(r, k)
			if err != nil {
				return 0, err
			}
			n += len(s.Name)
		}
		return n, nil
	})
	return g
}

// BenchmarkLookUps runs one function that looks up 1,000 entries: those of the run before in their
// order, those in the reverse order, and half of them with as many others.
func BenchmarkLookUps(b *testing.B) {
	const n = 1000
	l := list{Services: clusterOf(2 * n).Services}
	from := func(first int) (keys []key) {
		for _, s := range l.Services[first : first+n] {
			keys = append(keys, key{Namespace: s.Namespace, Name: s.Name})
		}
		return keys
	}
	reverse := from(0)
	slices.Reverse(reverse)
	for _, of := range []struct {
		name string
		next []key
	}{{"the same order", from(0)}, {"a new order", reverse}, {"half are new", from(n / 2)}} {
		one, two, before := l, l, from(0)
		one.Order, two.Order = &before, &of.next
		b.Run(of.name, func(b *testing.B) { benchmark(b, lengthOfNames, one, two) })
	}
}
