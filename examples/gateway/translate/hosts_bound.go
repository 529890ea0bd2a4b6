package translate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/kates"
)

// boundHosts leaves out hosts for which nginx has no room. Its tables spread hosts over buckets by
// a hash that anybody can compute, and a bucket has a bound. Hosts of the oldest objects stay.
func (t *translation) boundHosts() {
	all := make([]listener, 0, len(t.table))
	for l := range t.table {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b listener) int {
		return cmp.Or(older(t.table[a].first, t.table[b].first), strings.Compare(a.host, b.host),
			cmp.Compare(a.port, b.port), strings.Compare(a.address, b.address))
	})
	type place struct {
		address string
		port    int
		bucket  string
	}
	used, known := map[place]int{}, map[place]map[string]bool{}
	for _, l := range all {
		takes, fits := nginx.Buckets(l.host), true
		for in, bytes := range takes {
			at := place{l.address, l.port, in[0]}
			fits = fits && (known[at][in[1]] || used[at]+bytes <= nginx.BucketBytes)
		}
		if !fits {
			t.withoutHost(l)
			continue
		}
		for in, bytes := range takes {
			at := place{l.address, l.port, in[0]}
			if known[at] == nil {
				known[at] = map[string]bool{}
			}
			if !known[at][in[1]] {
				known[at][in[1]], used[at] = true, used[at]+bytes
			}
		}
	}
}

// withoutHost leaves out a host, and says so of the objects that have rules there.
func (t *translation) withoutHost(l listener) {
	objects := map[kates.Object]bool{t.table[l].first: true}
	for _, entries := range t.table[l].paths {
		for _, e := range entries {
			objects[e.object] = true
		}
	}
	for o := range objects {
		t.problem(o, "TooManyHosts", "host %q is left out: nginx has no room for it beside those of older objects with the same hash", l.host)
	}
	delete(t.table, l)
}
