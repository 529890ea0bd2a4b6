package derived

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/derive"
)

// perObject has the results of objects, in their order.
type perObject[V interface{ line(key) string }] struct {
	keys []key
	all  []V
}

func (p *perObject[V]) add(k key, v V) { p.keys, p.all = append(p.keys, k), append(p.all, v) }

func (p *perObject[V]) results(yield func(string) bool) {
	for i, v := range p.all {
		if !yield(v.line(p.keys[i])) {
			return
		}
	}
}

func (p *perObject[V]) values() any { return slices.Clone(p.all) }

func (p *perObject[V]) forget() { *p = perObject[V]{} }

// podsLooped looks at all policies for each pod.
type podsLooped struct {
	now cluster
	perObject[secured]
}

func (l *podsLooped) first() error { return l.make(l.now) }

func (l *podsLooped) make(now cluster) error {
	l.perObject = perObject[secured]{}
	for _, p := range now.Pods {
		l.add(keyOf(p), securedOf(p, func(yield func(*policy) bool) {
			for _, x := range now.Policies {
				if x.Selector.Matches(labels.Set(p.Labels)) && !yield(x) {
					return
				}
			}
		}))
	}
	return nil
}

func (l *podsLooped) object(c Change) (any, error) { return l.now.object(c) }

func (l *podsLooped) next(ch Change, object any) func() error {
	now := l.now.changed(ch, object)
	l.now = now
	return func() error { return l.make(now) }
}

// policiesLooped looks at all pods for each policy.
type policiesLooped struct {
	now cluster
	perObject[compiled]
}

func (l *policiesLooped) first() error { return l.make(l.now) }

func (l *policiesLooped) make(now cluster) error {
	l.perObject = perObject[compiled]{}
	for _, x := range now.Policies {
		l.add(keyOf(x), compiledOf(x, func(yield func(*corev1.Pod) bool) {
			for _, p := range now.Pods {
				if x.Selector.Matches(labels.Set(p.Labels)) && !yield(p) {
					return
				}
			}
		}))
	}
	return nil
}

func (l *policiesLooped) object(c Change) (any, error) { return l.now.object(c) }

func (l *policiesLooped) next(ch Change, object any) func() error {
	now := l.now.changed(ch, object)
	l.now = now
	return func() error { return l.make(now) }
}

// byApp has the pods of each app, and the policies that select it, by position. A program can
// write this that knows that policies select one app or all.
type byApp struct {
	now      cluster
	pods     map[string][]int
	policies map[string][]int
}

func (b *byApp) index(now cluster) {
	b.now = now
	b.pods, b.policies = make(map[string][]int), make(map[string][]int)
	for i, p := range b.now.Pods {
		b.pods[p.Labels[appLabel]] = append(b.pods[p.Labels[appLabel]], i)
	}
	for i, x := range b.now.Policies {
		b.policies[x.App] = append(b.policies[x.App], i)
	}
}

// follow takes over a snapshot, and calls the functions for each object that has changed and keeps
// its place. It returns false if one has another place: then the indexes have to be made again.
func (b *byApp) follow(now cluster, pod, policy func(at int)) bool {
	was := b.now
	b.now = now
	if len(was.Pods) != len(now.Pods) || len(was.Policies) != len(now.Policies) {
		return false
	}
	if &was.Pods[0] != &now.Pods[0] {
		for i, p := range now.Pods {
			before := was.Pods[i]
			if p == before {
				continue
			}
			if p.Name != before.Name || p.Labels[appLabel] != before.Labels[appLabel] {
				return false
			}
			pod(i)
		}
	}
	for i, x := range now.Policies {
		before := was.Policies[i]
		if x == before {
			continue
		}
		if x.Name != before.Name || x.App != before.App {
			return false
		}
		policy(i)
	}
	return true
}

// selects yields the positions of the pods that a policy selects.
func (b *byApp) selects(x *policy) iter.Seq[int] {
	return func(yield func(int) bool) {
		if x.App != "" {
			slices.Values(b.pods[x.App])(yield)
			return
		}
		for i := range b.now.Pods {
			if !yield(i) {
				return
			}
		}
	}
}

// podsCached finds policies by hand, and makes again the results of the pods concerned.
type podsCached struct {
	now cluster
	by  byApp
	perObject[secured]
}

func (c *podsCached) first() error { return c.make(c.now) }

func (c *podsCached) make(now cluster) error {
	c.perObject = perObject[secured]{}
	c.by.index(now)
	for i, p := range now.Pods {
		c.add(keyOf(p), c.of(i))
	}
	return nil
}

func (c *podsCached) of(at int) secured {
	p := c.by.now.Pods[at]
	some := slices.Concat(c.by.policies[""], c.by.policies[p.Labels[appLabel]])
	slices.Sort(some)
	return securedOf(p, func(yield func(*policy) bool) {
		for _, i := range some {
			if !yield(c.by.now.Policies[i]) {
				return
			}
		}
	})
}

func (c *podsCached) follow(now cluster) error {
	again := func(at int) { c.all[at] = c.of(at) }
	if !c.by.follow(now, again, func(at int) {
		for i := range c.by.selects(c.by.now.Policies[at]) {
			again(i)
		}
	}) {
		return c.make(now)
	}
	return nil
}

func (c *podsCached) object(ch Change) (any, error) { return c.now.object(ch) }

func (c *podsCached) next(ch Change, object any) func() error {
	now := c.now.changed(ch, object)
	c.now = now
	return func() error { return c.follow(now) }
}

func (c *podsCached) forget() { *c = podsCached{now: c.now} }

// policiesCached finds pods by hand, and makes again the results of the policies concerned.
type policiesCached struct {
	now cluster
	by  byApp
	perObject[compiled]
}

func (c *policiesCached) first() error { return c.make(c.now) }

func (c *policiesCached) make(now cluster) error {
	c.perObject = perObject[compiled]{}
	c.by.index(now)
	for i, x := range now.Policies {
		c.add(keyOf(x), c.of(i))
	}
	return nil
}

func (c *policiesCached) of(at int) compiled {
	x := c.by.now.Policies[at]
	return compiledOf(x, func(yield func(*corev1.Pod) bool) {
		for i := range c.by.selects(x) {
			if !yield(c.by.now.Pods[i]) {
				return
			}
		}
	})
}

func (c *policiesCached) follow(now cluster) error {
	again := func(at int) { c.all[at] = c.of(at) }
	if !c.by.follow(now, func(at int) {
		for _, i := range slices.Concat(c.by.policies[""], c.by.policies[c.by.now.Pods[at].Labels[appLabel]]) {
			again(i)
		}
	}, again) {
		return c.make(now)
	}
	return nil
}

func (c *policiesCached) object(ch Change) (any, error) { return c.now.object(ch) }

func (c *policiesCached) next(ch Change, object any) func() error {
	now := c.now.changed(ch, object)
	c.now = now
	return func() error { return c.follow(now) }
}

func (c *policiesCached) forget() { *c = policiesCached{now: c.now} }

// podsGraphed is a graph, with the selection of each pod at hand.
type podsGraphed struct {
	graphed[cluster, secured]
	selecting derive.Selecting[key, *policy]
}

func newPodsGraphed(now cluster) *podsGraphed {
	p := &podsGraphed{}
	p.graphed = graphed[cluster, secured]{now: now, line: lineOf[secured]}
	p.declare = func() (*derive.Graph[cluster], derive.Collection[key, secured]) {
		g := derive.New[cluster]("policies by pod")
		pods := derive.Objects(g, "pods", func(c *cluster) []*corev1.Pod { return c.Pods })
		policies := derive.Objects(g, "policies", func(c *cluster) []*policy { return c.Policies })
		p.selecting = derive.BySelector(policies, "selectors", func(k key, x *policy) (string, labels.Selector) { return k.Namespace, x.Selector })
		return g, derive.Map(pods, "secured", func(r *derive.Reader, k key, pod *corev1.Pod) (secured, error) {
			return securedOf(pod, second(p.selecting.Matching(r, k.Namespace, pod.Labels).All())), nil
		})
	}
	return p
}

func (p *podsGraphed) forget() {
	p.graphed.forget()
	p.selecting = derive.Selecting[key, *policy]{}
}

// own runs the function for each pod, without the graph.
func (p *podsGraphed) own() (func(), error) {
	selected := make([]derive.Group[key, *policy], len(p.now.Pods))
	for i, pod := range p.now.Pods {
		selected[i] = p.selecting.Matching(p.reader, pod.Namespace, pod.Labels)
	}
	all := make([]secured, len(p.now.Pods))
	return func() {
		for i, pod := range p.now.Pods {
			all[i] = securedOf(pod, second(selected[i].All()))
		}
	}, nil
}

// graphOfPolicies is a graph of a result per policy.
func graphOfPolicies() (*derive.Graph[cluster], derive.Collection[key, compiled]) {
	g := derive.New[cluster]("pods by policy")
	pods := derive.Objects(g, "pods", func(c *cluster) []*corev1.Pod { return c.Pods })
	policies := derive.Objects(g, "policies", func(c *cluster) []*policy { return c.Policies })
	labeled := derive.ByLabels(pods, "labels", func(k key, p *corev1.Pod) (string, map[string]string) { return k.Namespace, p.Labels })
	return g, derive.Map(policies, "compiled", func(r *derive.Reader, k key, x *policy) (compiled, error) {
		return compiledOf(x, second(labeled.Select(r, k.Namespace, x.Selector).All())), nil
	})
}
