package translate

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/kates"
)

// Translator makes what there should be of one snapshot after the other, and looks only at what has
// changed. It says what Translate says. The zero value is ready. It is for one goroutine, and for
// Options with the same functions. Configurations share what has not changed: write to none.
type Translator struct {
	g    *graph
	last nginx.Config
}

// Translate makes what there should be of a snapshot. An error is a mistake in this package: then
// nothing is made.
func (t *Translator) Translate(snap *Snapshot, o Options) (*Desired, error) {
	if t.g == nil {
		t.g = newGraph()
	}
	r, err := t.g.Update(&input{Snapshot: snap, Options: o})
	if err != nil {
		return nil, err
	}
	return t.desired(r, o.ReportsOnly)
}

// Translate makes what there should be of one snapshot.
func Translate(snap *Snapshot, o Options) *Desired {
	d, err := new(Translator).Translate(snap, o)
	if err != nil {
		panic(err)
	}
	return d
}

// desired puts the parts together. They are in their order already. What has not changed is that of
// the last one.
func (t *Translator) desired(r *derive.Reader, reportsOnly bool) (*Desired, error) {
	g := t.g
	settings, err := g.settings.Get(r)
	if err = cmp.Or(g.failed(), err); err != nil {
		return nil, err
	}
	t.last.Settings = settings
	if differs(g.serverChanges, r) || t.last.Upstreams == nil {
		t.last.Servers = g.allServers(r)
	}
	if differs(g.upstreamChanges, r) || t.last.Upstreams == nil {
		t.last.Upstreams = make(map[string][]string, g.upstreams.Len(r))
		for id, of := range g.upstreams.All(r) {
			t.last.Upstreams[id] = of.served
		}
	}
	if differs(g.certificateChanges, r) || t.last.Certificates == nil {
		t.last.Certificates = g.allCertificates(r)
	}
	d := &Desired{Config: t.last}
	if reportsOnly {
		d.Config.Upstreams = map[string][]string{}
	}
	d.Reports = slices.Grow(d.Reports, g.reports.Len(r)+g.secretNews.Len(r))
	for _, report := range g.reports.All(r) {
		d.Reports = append(d.Reports, report)
	}
	for _, report := range g.secretNews.All(r) {
		d.Reports = append(d.Reports, report)
	}
	return d, nil
}

// failed says why a part could not be made, if one could not.
func (g *graph) failed() error {
	for _, node := range g.Stats().Nodes {
		if node.Invalid > 0 && node.Name != keyPairs {
			return cmp.Or(node.Example, fmt.Errorf("%s: %d parts cannot be made", node.Name, node.Invalid))
		}
	}
	return nil
}

// differs reports whether a collection has changed since the last call.
func differs[K comparable, V any](c *derive.Changes[K, V], r *derive.Reader) bool {
	defer c.Done()
	for range c.All(r) {
		return true
	}
	return false
}

// allServers are those of all sites, by address, port and host.
func (g *graph) allServers(r *derive.Reader) []nginx.Server {
	n := 0
	for _, sites := range g.servers.Groups().All(r) {
		n += sites.Len()
	}
	all := slices.Grow([]nginx.Server(nil), n)
	for at, sites := range g.servers.Groups().All(r) {
		for _, s := range sites.All() {
			all = s.appendServers(all, at)
		}
	}
	return all
}

// allCertificates are those that are wanted, by ID. Of Secrets with the same content, one is named
// as the source, whatever their order.
func (g *graph) allCertificates(r *derive.Reader) map[string]nginx.Certificate {
	all := make(map[string]nginx.Certificate, g.certificates.Len(r))
	for _, c := range g.certificates.All(r) {
		known, done := all[c.id]
		if one, other := c.Source, known.Source; !done || one.Namespace+"/"+one.Name < other.Namespace+"/"+other.Name {
			all[c.id] = c.Certificate
		}
	}
	return all
}

// translation is one run of a function of the graph.
type translation struct {
	Options // that last
	*graph
	r *derive.Reader
	notes

	// Of a host: see site.
	at    place
	owner owner
	table table
}

// notes are what a function finds out beside its result.
type notes struct {
	problems map[types.UID][]Problem // of objects
	backends []string                // upstreams that are named
	certs    []key                   // Secrets whose certificates are wanted
}

// newTranslation is what a run of a function has.
func (g *graph) newTranslation(r *derive.Reader) *translation {
	o, _ := g.options.Get(r)
	return &translation{Options: o, graph: g, r: r}
}

// each makes a method a function of the graph, for each entry of a collection.
func each[K, V, W any](g *graph, f func(*translation, K, V) (W, error)) func(*derive.Reader, K, V) (W, error) {
	return func(r *derive.Reader, k K, v V) (W, error) { return f(g.newTranslation(r), k, v) }
}

// one makes a method a function of the graph that makes one value.
func one[T any](g *graph, f func(*translation) (T, error)) func(*derive.Reader) (T, error) {
	return func(r *derive.Reader) (T, error) { return f(g.newTranslation(r)) }
}

// problem reports what is wrong with an object.
func (n *notes) problem(o kates.Object, reason, format string, args ...any) {
	n.addProblems(o.GetUID(), Problem{reason, fmt.Sprintf(format, args...)})
}

func (n *notes) addProblems(uid types.UID, some ...Problem) {
	if n.problems == nil {
		n.problems = map[types.UID][]Problem{}
	}
	n.problems[uid] = append(n.problems[uid], some...)
}

// settled returns notes whose problems are in their order, each once.
func (n notes) settled() notes {
	for uid, some := range n.problems {
		n.problems[uid] = sorted(some)
	}
	return n
}

// port returns the port to listen at for a port that objects name.
func (t *translation) port(named int) int {
	if t.Port == nil {
		return named
	}
	return t.Port(named)
}
