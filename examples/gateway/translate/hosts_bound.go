package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/examples/gateway/nginx"
)

// nginx has no room for all hosts: its tables spread them over buckets by a hash that anybody can
// compute, and a bucket has a bound. Hosts of the oldest objects stay. Which hosts stay
// follows from those alone that are in a bucket with too many.

// buckets are those of a host.
func (p place) buckets() (all []string) {
	for in := range nginx.Buckets(p.host) {
		all = append(all, p.address+" "+in[0])
	}
	slices.Sort(all)
	return all
}

// fullBucket returns the hosts of a bucket if they would not all fit, were they at one port.
func (t *translation) fullBucket(name string, all derive.Group[place, *site]) (hosts []place, err error) {
	bytes, known := 0, map[string]bool{}
	for p := range all.All() {
		hosts = append(hosts, p)
		for in, takes := range nginx.Buckets(p.host) {
			if p.address+" "+in[0] == name && !known[in[1]] {
				known[in[1]] = true
				bytes += takes
			}
		}
	}
	if bytes <= nginx.BucketBytes {
		return nil, derive.Skip
	}
	return hosts, nil
}

// hostsWithoutRoom are those that are left out.
func (t *translation) hostsWithoutRoom() (map[listener]bool, error) {
	var all []*server
	seen := map[place]bool{}
	for _, hosts := range t.full.All(t.r) {
		for _, p := range hosts {
			if s, err := t.sites.Get(t.r, p); err == nil && !seen[p] {
				seen[p] = true
				all = append(all, s.servers...)
			}
		}
	}
	slices.SortFunc(all, func(a, b *server) int {
		return cmp.Or(older(a.first, b.first), strings.Compare(a.at.host, b.at.host),
			cmp.Compare(a.at.port, b.at.port), strings.Compare(a.at.address, b.at.address))
	})
	type table struct {
		door
		bucket string
	}
	without, used, known := map[listener]bool{}, map[table]int{}, map[table]map[string]bool{}
	for _, s := range all {
		takes, at := nginx.Buckets(s.at.host), door{s.at.address, s.at.port}
		for in, bytes := range takes {
			if b := (table{at, in[0]}); !known[b][in[1]] && used[b]+bytes > nginx.BucketBytes {
				without[s.at] = true
			}
		}
		for in, bytes := range takes {
			b := table{at, in[0]}
			if without[s.at] || known[b][in[1]] {
				continue
			}
			if known[b] == nil {
				known[b] = map[string]bool{}
			}
			known[b][in[1]], used[b] = true, used[b]+bytes
		}
	}
	return without, nil
}

// withinBounds is a site without what nginx has no room for, or cannot listen at.
func (t *translation) withinBounds(at place, of *site) (*site, error) {
	without, err := t.crowded.Get(t.r)
	s := &site{notes: of.notes}
	s.problems = nil
	for uid, some := range of.problems {
		s.addProblems(uid, some...)
	}
	for _, one := range of.servers {
		if without[one.at] {
			for _, uid := range one.objects {
				s.addProblems(uid, Problem{"TooManyHosts", fmt.Sprintf("host %q is left out: nginx has no room for it beside those of older objects with the same hash", at.host)})
			}
			continue
		}
		for uid, some := range one.problems {
			s.addProblems(uid, some...)
		}
		if !one.taken {
			s.servers = append(s.servers, one)
		}
	}
	return s, err
}
