package derived

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kates-go/kates/derive"
)

// snapshot is a type of snapshots whose objects change.
type snapshot[S any] interface {
	object(Change) (any, error)
	changed(c Change, object any) S
}

// graphed keeps results in a graph.
type graphed[S snapshot[S], V any] struct {
	now     S
	declare func() (*derive.Graph[S], derive.Collection[key, V])
	line    func(key, V) string

	graph  *derive.Graph[S]
	out    derive.Collection[key, V]
	reader *derive.Reader
}

func (g *graphed[S, V]) first() error {
	g.graph, g.out = g.declare()
	return g.update(g.now)
}

func (g *graphed[S, V]) update(now S) (err error) {
	g.reader, err = g.graph.Update(&now)
	return err
}

func (g *graphed[S, V]) object(c Change) (any, error) { return g.now.object(c) }

func (g *graphed[S, V]) next(c Change, object any) func() error {
	now := g.now.changed(c, object)
	g.now = now
	return func() error { return g.update(now) }
}

func (g *graphed[S, V]) results(yield func(string) bool) {
	for k, v := range g.out.All(g.reader) {
		if !yield(g.line(k, v)) {
			return
		}
	}
}

func (g *graphed[S, V]) values() any {
	values := make([]V, 0, g.out.Len(g.reader))
	for _, v := range g.out.All(g.reader) {
		values = append(values, v)
	}
	return values
}

func (g *graphed[S, V]) forget() {
	g.graph, g.reader = nil, nil
	g.out = derive.Collection[key, V]{}
}

// lineOf writes a result.
func lineOf[V interface{ line(key) string }](k key, v V) string { return v.line(k) }

// Names returns the contenders of a workload in this module, a plain loop first.
func Names(Workload) []string { return []string{"loop", "caches", "derive"} }

// ByName returns a contender in this module.
func ByName(name string) (string, error) {
	if !slices.Contains(Names(Routes), name) {
		return "", fmt.Errorf("there is no contender %q: say one of %s", name, strings.Join(Names(Routes), ", "))
	}
	return name, nil
}

// EntriesOfRoute is how many entries a graph has for each Service of a routing table: of the
// Service, its EndpointSlice and Deployment, their group, and the row.
const EntriesOfRoute = 5

// newContender makes a contender with its objects.
func newContender(name string, c Command) (contender, error) {
	if c.Objects < 1 || c.Workload != Routes && (c.Policies < 1 || c.Policies > c.Objects) {
		return nil, fmt.Errorf("%s of %d objects and %d policies", c.Workload, c.Objects, c.Policies)
	}
	switch string(c.Workload) + " " + name {
	case "routes loop":
		return &looped{now: newRoutes(c.Objects)}, nil
	case "routes caches":
		return &cached{now: newRoutes(c.Objects)}, nil
	case "routes derive":
		return &graphed[routesSnapshot, row]{now: newRoutes(c.Objects), declare: graphOfRoutes, line: lineOf[row]}, nil
	case "per pod loop":
		return &podsLooped{now: newCluster(c.Objects, c.Policies)}, nil
	case "per pod caches":
		return &podsCached{now: newCluster(c.Objects, c.Policies)}, nil
	case "per pod derive":
		return newPodsGraphed(newCluster(c.Objects, c.Policies)), nil
	case "per policy loop":
		return &policiesLooped{now: newCluster(c.Objects, c.Policies)}, nil
	case "per policy caches":
		return &policiesCached{now: newCluster(c.Objects, c.Policies)}, nil
	case "per policy derive":
		return &graphed[cluster, compiled]{now: newCluster(c.Objects, c.Policies), declare: graphOfPolicies, line: lineOf[compiled]}, nil
	}
	return nil, fmt.Errorf("there is no contender %q for %q", name, c.Workload)
}
