package translate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Endpoints follows the endpoints of a configuration from snapshot to snapshot: they change more
// often than all else, and need no reload. It says what Translate says of them, and looks only at
// what has changed. The zero value is ready. It is for one goroutine, and for the same Zone and
// Endpoint of the Options.
type Endpoints struct {
	groups groups
	known  map[string]known // by upstream's ID
}

// known is what a list of endpoints was made of. A snapshot shares the objects that have not
// changed with the one before.
type known struct {
	service      *corev1.Service
	home, remote []*discoveryv1.EndpointSlice
	list         []string
}

func (k known) sameAs(now known) bool {
	return k.service == now.service && slices.Equal(k.home, now.home) && slices.Equal(k.remote, now.remote)
}

// Of returns the endpoints of upstreams, which are named as in a Config. One whose Service or port
// is gone is left out: that takes another configuration.
func (e *Endpoints) Of(snap *Snapshot, o Options, upstreams []string) map[string][]string {
	e.groups.follow(snap.Slices)
	t := newTranslation(snap, o)
	t.slices, t.config.Upstreams = e.groups.of, make(map[string][]string, len(upstreams))
	if e.known == nil {
		e.known = make(map[string]known, len(upstreams))
	}
	for _, id := range upstreams {
		namespace, rest, _ := strings.Cut(id, ".")
		name, port, _ := strings.Cut(rest, ".")
		key := types.NamespacedName{Namespace: namespace, Name: name}
		now := known{service: snap.Services[key], home: t.slicesOf(key), remote: o.Remote[key]}
		if before, ok := e.known[id]; ok && before.sameAs(now) {
			t.config.Upstreams[id] = before.list
			continue
		}
		number, _ := strconv.ParseInt(port, 10, 32)
		if _, err := t.upstream(namespace, name, backendPort{number: int32(number)}); err != nil {
			delete(e.known, id)
			continue
		}
		now.list = t.config.Upstreams[id]
		e.known[id] = now
	}
	if len(e.known) > len(t.config.Upstreams) { // some are not asked for any more
		maps.DeleteFunc(e.known, func(id string, _ known) bool { _, asked := t.config.Upstreams[id]; return !asked })
	}
	return t.config.Upstreams
}
