package withruntime

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
)

// parts are those of all Ingresses. Reconcilers write them, and the writer reads them.
type parts struct {
	changed chan struct{} // has a value when the configuration may have to change
	moved   chan struct{} // has one when endpoints may have to be sent

	mu  sync.Mutex
	all map[types.NamespacedName]*part
}

// part is what one Ingress asks for. It is not changed.
type part struct {
	ingress *networkingv1.Ingress
	config  *nginx.Config
	report  *translate.Report // nil: the Ingress is another controller's
}

func newParts() *parts {
	return &parts{changed: make(chan struct{}, 1), moved: make(chan struct{}, 1), all: map[types.NamespacedName]*part{}}
}

// put replaces a part, and says whether its report is another one.
func (p *parts) put(name types.NamespacedName, in *networkingv1.Ingress, d *translate.Desired) bool {
	one := &part{ingress: in, config: &d.Config}
	if len(d.Reports) > 0 {
		one.report = &d.Reports[0]
	}
	p.mu.Lock()
	before := p.all[name]
	p.all[name] = one
	p.mu.Unlock()
	p.signal()
	return before == nil || !sameReport(before.report, one.report)
}

func sameReport(a, b *translate.Report) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equality.Semantic.DeepEqual(a.Status, b.Status) && slices.Equal(a.Problems, b.Problems)
}

func (p *parts) remove(name types.NamespacedName) {
	p.mu.Lock()
	delete(p.all, name)
	p.mu.Unlock()
	p.signal()
}

func (p *parts) get(name types.NamespacedName) *part {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[name]
}

func (p *parts) signal() {
	select {
	case p.changed <- struct{}{}:
	default: // one waits
	}
	p.signalEndpoints()
}

func (p *parts) signalEndpoints() {
	select {
	case p.moved <- struct{}{}:
	default: // one waits
	}
}

// endpoints returns those of all parts.
func (p *parts) endpoints() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string][]string{}
	for _, one := range p.all {
		maps.Copy(all, one.config.Upstreams)
	}
	return all
}

// config puts the parts together. Of two Ingresses with the same path of a host, the older one has
// it.
func (p *parts) config() *nginx.Config {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.all))
	p.mu.Unlock()
	slices.SortFunc(all, func(a, b *part) int {
		return cmp.Or(a.ingress.CreationTimestamp.Time.Compare(b.ingress.CreationTimestamp.Time),
			strings.Compare(a.ingress.Namespace, b.ingress.Namespace), strings.Compare(a.ingress.Name, b.ingress.Name))
	})
	whole := translate.Translate(&translate.Snapshot{}, translate.Options{}).Config // the settings
	at := map[listener]int{}
	for _, one := range all {
		maps.Copy(whole.Upstreams, one.config.Upstreams)
		maps.Copy(whole.Certificates, one.config.Certificates)
		for _, s := range one.config.Servers {
			key := listener{s.Address, s.Port, s.TLS, s.Host}
			if i, taken := at[key]; taken {
				whole.Servers[i] = merged(whole.Servers[i], s)
				continue
			}
			at[key] = len(whole.Servers)
			whole.Servers = append(whole.Servers, s)
		}
	}
	slices.SortFunc(whole.Servers, func(a, b nginx.Server) int {
		return cmp.Or(strings.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), strings.Compare(a.Host, b.Host))
	})
	return &whole
}

type listener struct {
	address string
	port    int
	tls     bool
	host    string
}

// merged adds the locations of a server that the older one does not have.
func merged(older, s nginx.Server) nginx.Server {
	older.Certificate = cmp.Or(older.Certificate, s.Certificate)
	older.Locations = slices.Clone(older.Locations) // they are those of a part
	for _, l := range s.Locations {
		if !slices.ContainsFunc(older.Locations, func(has nginx.Location) bool { return has.Path == l.Path && has.Match == l.Match }) {
			older.Locations = append(older.Locations, l)
		}
	}
	order := map[nginx.PathMatch]int{nginx.Exact: 0, nginx.Prefix: 1, nginx.Regex: 2}
	slices.SortStableFunc(older.Locations, func(a, b nginx.Location) int {
		return cmp.Or(cmp.Compare(order[a.Match], order[b.Match]), cmp.Compare(len(b.Path), len(a.Path)), strings.Compare(a.Path, b.Path))
	})
	return older
}
