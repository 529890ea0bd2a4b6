package translate

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/kates"
)

// translation is one call of Translate.
type translation struct {
	Options
	snap     *Snapshot
	config   nginx.Config
	owners   map[place]owner // of hosts
	attached []attachment    // of Gateways first, then of Routes, each from the oldest
	table    table
	reports  map[types.UID]*Report
	leaves   map[string]*x509.Certificate // the host's own, by the ID of the certificate
	slices   map[types.NamespacedName][]*discoveryv1.EndpointSlice
	leftOut  map[string][]string // addresses of endpoints on this machine, by upstream's ID
}

func newTranslation(snap *Snapshot, o Options) *translation {
	return &translation{
		Options: o, snap: snap, owners: map[place]owner{}, table: table{}, reports: map[types.UID]*Report{},
		leaves: map[string]*x509.Certificate{}, leftOut: map[string][]string{},
		config: nginx.Config{Upstreams: map[string][]string{}, Certificates: map[string]nginx.Certificate{}},
	}
}

// Translate makes what there should be of a snapshot.
func Translate(snap *Snapshot, o Options) *Desired {
	t := newTranslation(snap, o)
	t.settings()
	ingresses := t.ingresses()
	t.gateways() // who has which host follows from all of them
	t.serveIngresses(ingresses)
	t.serveGateways()
	t.boundRegexes()
	t.boundHosts()
	servers, lost := t.table.servers()
	t.reportDisputes(lost)
	t.config.Servers = t.withoutTaken(servers)
	for i := range t.config.Servers {
		if s := &t.config.Servers[i]; s.Address == "" && o.Address.IsValid() {
			s.Address = o.Address.String()
		}
	}
	return &Desired{Config: t.config, Reports: t.sorted()}
}

// report returns the report of an object of ours, which is empty at first.
func (t *translation) report(o kates.Object) *Report {
	r := t.reports[o.GetUID()]
	if r == nil {
		r = &Report{Object: o}
		t.reports[o.GetUID()] = r
	}
	return r
}

// problem reports what is wrong with an object.
func (t *translation) problem(o kates.Object, reason, format string, args ...any) {
	r := t.report(o)
	if p := (Problem{reason, fmt.Sprintf(format, args...)}); !slices.Contains(r.Problems, p) {
		r.Problems = append(r.Problems, p)
	}
}

// sorted returns the reports by kind, namespace and name of their objects.
func (t *translation) sorted() []Report {
	byName := make(map[[3]string]*Report, len(t.reports))
	for _, r := range t.reports {
		slices.SortFunc(r.Problems, func(a, b Problem) int {
			return cmp.Or(strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
		})
		of := sourceOf(r.Object)
		byName[[3]string{of.Kind, of.Namespace, of.Name}] = r
	}
	var all []Report
	for _, name := range slices.SortedFunc(maps.Keys(byName), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		all = append(all, *byName[name])
	}
	return all
}

// port returns the port to listen at for a port that objects name.
func (t *translation) port(named int) int {
	if t.Port == nil {
		return named
	}
	return t.Port(named)
}
