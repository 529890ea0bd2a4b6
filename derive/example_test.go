package derive_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/derive"
)

// name is the key of an object.
type name = types.NamespacedName

// Shop is the snapshot of a routing table.
type Shop struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	Routes   []Route
}

// Route is a kind of the program's own.
type Route struct{ Namespace, Name, Service, Host string }

// A routing table has one row per Service. A change of an EndpointSlice makes one row again.
func Example_routingTable() {
	g := derive.New[Shop]("routing table")
	services := derive.Objects(g, "services", func(s *Shop) []*corev1.Service { return s.Services })
	endpoints := derive.Objects(g, "slices", func(s *Shop) []*discoveryv1.EndpointSlice { return s.Slices })
	routes := derive.Slice(g, "routes", func(s *Shop) []Route { return s.Routes },
		func(r Route) name { return name{Namespace: r.Namespace, Name: r.Name} })

	slicesOf := derive.GroupBy(endpoints, "slices of", func(k name, s *discoveryv1.EndpointSlice) []name {
		return []name{{Namespace: k.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}}
	})
	routesOf := derive.GroupBy(routes, "routes of", func(k name, r Route) []name {
		return []name{{Namespace: k.Namespace, Name: r.Service}}
	})
	rows := derive.Map(services, "rows", func(r *derive.Reader, k name, _ *corev1.Service) (string, error) {
		var hosts []string
		for _, route := range routesOf.Members(r, k).All() {
			hosts = append(hosts, route.Host)
		}
		ready := 0
		for _, s := range slicesOf.Members(r, k).All() {
			ready += len(s.Endpoints)
		}
		return fmt.Sprintf("%s %s %d", cmp.Or(strings.Join(hosts, ","), "-"), k, ready), nil
	})
	changes := derive.ChangesOf(rows)

	update := func(snapshot Shop) {
		r, err := g.Update(&snapshot)
		if err != nil {
			fmt.Println(err)
			return
		}
		for change := range changes.All(r) {
			fmt.Println(*change.New)
		}
		changes.Done()
	}
	snapshot := Shop{
		Services: []*corev1.Service{service("cart"), service("web")},
		Slices:   []*discoveryv1.EndpointSlice{endpointSlice("cart", 1), endpointSlice("web", 2)},
		Routes:   []Route{{"shop", "front", "web", "shop.example.com"}},
	}
	update(snapshot)
	fmt.Println("web has three endpoints now:")
	snapshot.Slices = []*discoveryv1.EndpointSlice{snapshot.Slices[0], endpointSlice("web", 3)}
	update(snapshot)
	why := g.Explain("rows", "shop/web")
	fmt.Println("because of", why.Because)
	// Output:
	// - shop/cart 1
	// shop.example.com shop/web 2
	// web has three endpoints now:
	// shop.example.com shop/web 3
	// because of slices of shop/web
}

// Cluster is the snapshot of a policy compiler.
type Cluster struct {
	Pods     []*corev1.Pod
	Policies []Policy
}

// Policy selects pods of its namespace.
type Policy struct {
	Namespace, Name string
	Pods            metav1.LabelSelector
	Allow           string
}

// class is what policies see of a pod: all pods of a class have the same policies.
type class struct{ namespace, labels string }

// A policy compiler finds the policies of each pod. Policies are compiled once for all pods with
// the same labels, so a new replica costs a look-up, and a change of a policy costs one run for
// each class that it selects.
func Example_policyCompiler() {
	g := derive.New[Cluster]("policies")
	pods := derive.Objects(g, "pods", func(c *Cluster) []*corev1.Pod { return c.Pods })
	policies := derive.Slice(g, "policies", func(c *Cluster) []Policy { return c.Policies },
		func(p Policy) name { return name{Namespace: p.Namespace, Name: p.Name} })

	selecting := derive.BySelector(policies, "selectors", func(k name, p Policy) (string, labels.Selector) {
		s, err := metav1.LabelSelectorAsSelector(&p.Pods)
		if err != nil {
			s = labels.Nothing()
		}
		return k.Namespace, s
	})
	classOf := func(p *corev1.Pod) class {
		return class{p.Namespace, labels.FormatLabels(p.Labels)}
	}
	classes := derive.GroupBy(pods, "classes", func(_ name, p *corev1.Pod) []class { return []class{classOf(p)} })
	compiled := derive.Map(classes.Keys(), "compiled", func(r *derive.Reader, c class, _ struct{}) (string, error) {
		set, err := labels.ConvertSelectorToLabelsMap(c.labels)
		if err != nil {
			return "", err
		}
		var allowed []string
		for _, p := range selecting.Matching(r, c.namespace, set).All() {
			allowed = append(allowed, p.Allow)
		}
		slices.Sort(allowed)
		fmt.Println("compiled", c.labels)
		return strings.Join(slices.Compact(allowed), ","), nil
	})
	workloads := derive.Map(pods, "workloads", func(r *derive.Reader, _ name, p *corev1.Pod) (string, error) {
		allowed, err := compiled.Get(r, classOf(p))
		return p.Status.PodIP + ": " + allowed, err
	})

	cluster := Cluster{
		Pods: []*corev1.Pod{replica("db-0", "db", "10.0.0.1"), replica("web-0", "web", "10.0.0.2"), replica("web-1", "web", "10.0.0.3")},
		Policies: []Policy{
			{"prod", "all", metav1.LabelSelector{}, "dns"},
			{"prod", "web", metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, "internet"},
		},
	}
	r, err := g.Update(&cluster)
	if err != nil {
		fmt.Println(err)
		return
	}
	for k, w := range workloads.All(r) {
		fmt.Println(k.Name, w)
	}
	// One more replica: its class is compiled already.
	cluster.Pods = append(slices.Clip(cluster.Pods), replica("web-2", "web", "10.0.0.4"))
	if r, err = g.Update(&cluster); err != nil {
		fmt.Println(err)
		return
	}
	w, err := workloads.Get(r, name{Namespace: "prod", Name: "web-2"})
	fmt.Println("web-2", w, err)
	// Unordered output:
	// compiled app=db
	// compiled app=web
	// db-0 10.0.0.1: dns
	// web-0 10.0.0.2: dns,internet
	// web-1 10.0.0.3: dns,internet
	// web-2 10.0.0.4: dns,internet <nil>
}

func service(of string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: of}}
}

func endpointSlice(of string, n int) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: of + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: of}},
		Endpoints:  make([]discoveryv1.Endpoint, n),
	}
}

func replica(of, app, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: of, Labels: map[string]string{"app": app}},
		Status:     corev1.PodStatus{PodIP: ip},
	}
}
