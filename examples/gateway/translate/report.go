package translate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/kates"
)

// fragment is what one object asks for, and what is found out about that without a look at what
// others ask for.
type fragment struct {
	notes
	object      kates.Object // as the snapshot has it
	status      any          // see Report; that of a Gateway is made with the report
	ingress     *ingress     // nil: it is no Ingress, or nothing of it is served
	gateway     *gateway     // nil: it is no Gateway
	attachments map[place][]attachment
	counts      map[counted]int32 // how often an HTTPRoute is attached to a listener
	parents     []key             // the Gateways of these
}

// places are the hosts that an object has something for.
func (f *fragment) places() []place {
	all := slices.Collect(maps.Keys(f.attachments))
	if f.ingress != nil {
		for host := range f.ingress.hosts {
			all = append(all, place{host: host})
		}
	}
	slices.SortFunc(all, place.Compare)
	return all
}

// objects are those that something is told.
func (n *notes) objects() []types.UID { return slices.Sorted(maps.Keys(n.problems)) }

// reportOf makes the report of an object.
func (t *translation) reportOf(_ derive.Nth[key], f *fragment) (Report, error) {
	r := Report{Object: f.object, Status: f.status}
	if f.gateway != nil {
		r.Status = t.gatewayStatus(f.gateway)
	}
	if f.ingress != nil {
		t.uncertified(f.ingress)
	}
	t.tellLeftOut(f.object, f.backends)
	uid := f.object.GetUID()
	all := t.problems[uid]
	for _, other := range t.told.Members(t.r, uid).All() {
		all = append(all, other.problems[uid]...)
	}
	for _, host := range t.toldAtHosts.Members(t.r, uid).All() {
		all = append(all, host.problems[uid]...)
	}
	r.Problems = sorted(all)
	return r, nil
}

// sorted returns problems in their order, each once.
func sorted(all []Problem) []Problem {
	slices.SortFunc(all, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(all)
}
