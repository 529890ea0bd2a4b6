package derived

import (
	"fmt"
	"iter"
	"slices"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kates-go/kates/derive"
)

// looped makes all rows of each snapshot, as the function routingTable of examples/quickstart
// does.
type looped struct {
	now  routesSnapshot
	rows []row
}

func (l *looped) first() error { return l.make(l.now) }

func (l *looped) make(now routesSnapshot) error {
	ready := map[string]int{}
	for _, slice := range now.Slices {
		service := slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[service] += len(e.Addresses)
			}
		}
	}
	rollout := map[string]string{}
	for _, d := range now.Deployments {
		rollout[d.Namespace+"/"+d.Name] = rolloutOf(d)
	}
	l.rows = nil
	for _, s := range now.Services {
		name := s.Namespace + "/" + s.Name
		l.rows = append(l.rows, row{s.Spec.ClusterIP, name, fmt.Sprint(ready[name]), rollout[name]})
	}
	sort.Slice(l.rows, func(i, j int) bool { return l.rows[i][1] < l.rows[j][1] })
	return nil
}

func (l *looped) object(c Change) (any, error) { return l.now.object(c) }

func (l *looped) next(ch Change, object any) func() error {
	now := l.now.changed(ch, object)
	l.now = now
	return func() error { return l.make(now) }
}

func (l *looped) results(yield func(string) bool) {
	for _, r := range l.rows {
		if !yield(r.line(key{})) {
			return
		}
	}
}

func (l *looped) values() any { return l.rows }

func (l *looped) forget() { l.rows = nil }

// cached has what a program has that does by hand what a graph does, for objects that change: the
// EndpointSlices of each Service, and a row per Service, which is made again if something of it
// has changed. If an object comes or goes, all is made again.
type cached struct {
	now         routesSnapshot
	was         routesSnapshot // that the rows are made of
	services    map[key]*corev1.Service
	slicesOf    map[key][]*discoveryv1.EndpointSlice
	deployments map[key]*appsv1.Deployment
	rows        map[key]row
}

func (c *cached) first() error { return c.all(c.now) }

func (c *cached) all(now routesSnapshot) error {
	c.services, c.rows = make(map[key]*corev1.Service), make(map[key]row)
	c.slicesOf, c.deployments = make(map[key][]*discoveryv1.EndpointSlice), make(map[key]*appsv1.Deployment)
	for _, s := range now.Slices {
		c.slicesOf[home(s)] = append(c.slicesOf[home(s)], s)
	}
	for _, d := range now.Deployments {
		c.deployments[keyOf(d)] = d
	}
	for _, s := range now.Services {
		c.services[keyOf(s)] = s
	}
	for k := range c.services {
		c.make(k)
	}
	c.was = now
	return nil
}

func (c *cached) make(k key) {
	if s := c.services[k]; s != nil {
		c.rows[k] = rowOf(k, s, slices.Values(c.slicesOf[k]), c.deployments[k])
	}
}

func (c *cached) follow(now routesSnapshot) error {
	dirty := make(map[key]bool)
	inPlace := replaced(c.was.Services, now.Services, func(_, s *corev1.Service) bool {
		c.services[keyOf(s)], dirty[keyOf(s)] = s, true
		return true
	}) && replaced(c.was.Deployments, now.Deployments, func(_, d *appsv1.Deployment) bool {
		c.deployments[keyOf(d)], dirty[keyOf(d)] = d, true
		return true
	}) && replaced(c.was.Slices, now.Slices, func(was, s *discoveryv1.EndpointSlice) bool {
		group := slices.Clone(c.slicesOf[home(s)])
		i := slices.Index(group, was)
		if i < 0 {
			return false
		}
		group[i] = s
		c.slicesOf[home(s)], dirty[home(s)] = group, true
		return true
	})
	if !inPlace {
		return c.all(now)
	}
	for k := range dirty {
		c.make(k)
	}
	c.was = now
	return nil
}

// replaced calls a function for each object that another of its name has replaced. It returns
// false if an object comes or goes, or if the function does.
func replaced[T any, P interface {
	*T
	GetNamespace() string
	GetName() string
}](was, now []P, f func(was, is P) bool) bool {
	if len(was) != len(now) {
		return false
	}
	if len(was) == 0 || &was[0] == &now[0] {
		return true
	}
	for i, is := range now {
		if is == was[i] {
			continue
		}
		if is.GetName() != was[i].GetName() || is.GetNamespace() != was[i].GetNamespace() || !f(was[i], is) {
			return false
		}
	}
	return true
}

func (c *cached) object(ch Change) (any, error) { return c.now.object(ch) }

func (c *cached) next(ch Change, object any) func() error {
	now := c.now.changed(ch, object)
	c.now = now
	return func() error { return c.follow(now) }
}

func (c *cached) results(yield func(string) bool) {
	for k, r := range c.rows {
		if !yield(r.line(k)) {
			return
		}
	}
}

func (c *cached) values() any {
	rows := make([]row, 0, len(c.rows))
	for _, r := range c.rows {
		rows = append(rows, r)
	}
	return rows
}

func (c *cached) forget() { *c = cached{was: c.was, now: c.now} }

// graphOfRoutes is a graph of a routing table.
func graphOfRoutes() (*derive.Graph[routesSnapshot], derive.Collection[key, row]) {
	g := derive.New[routesSnapshot]("routing table")
	services := derive.Objects(g, "services", func(s *routesSnapshot) []*corev1.Service { return s.Services })
	slices := derive.Objects(g, "slices", func(s *routesSnapshot) []*discoveryv1.EndpointSlice { return s.Slices })
	deployments := derive.Objects(g, "deployments", func(s *routesSnapshot) []*appsv1.Deployment { return s.Deployments })
	slicesOf := derive.GroupBy(slices, "slices of", func(_ key, s *discoveryv1.EndpointSlice) []key { return []key{home(s)} })
	rows := derive.Map(services, "rows", func(r *derive.Reader, k key, s *corev1.Service) (row, error) {
		d, err := deployments.Get(r, k)
		if err != nil {
			d = nil
		}
		return rowOf(k, s, second(slicesOf.Members(r, k).All()), d), nil
	})
	return g, rows
}

// second yields the second ones of pairs.
func second[K, V any](pairs iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range pairs {
			if !yield(v) {
				return
			}
		}
	}
}
