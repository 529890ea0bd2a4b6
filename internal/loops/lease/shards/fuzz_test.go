package shards

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/internal/base/asjson"
)

func FuzzALeaseOfAGroupIsReadAsItWasWritten(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"g-a","labels":{"kates.io/shards":"g"},"annotations":{"kates.io/shard-members":"b,a,,a"}},"spec":{"leaseDurationSeconds":-5}}`), "a,b")
	f.Add([]byte(`{"metadata":{"name":"g-","labels":{"kates.io/shards":"g"}},"spec":{"leaseDurationSeconds":2147483647,"renewTime":"2024-01-01T00:00:00.000001Z"}}`), "")
	f.Add([]byte(`{"metadata":{"labels":7}}`), ",")
	f.Fuzz(func(t *testing.T, data []byte, members string) {
		now := time.Unix(1700000000, 0)
		m := newMembers("self")
		var content map[string]any
		var l coordinationv1.Lease
		if utiljson.Unmarshal(data, &content) == nil && asjson.Decode(content, &l) == nil {
			if p, ok := peerOf("g", &l); ok {
				if members, is := p.claim.(set); is && !slices.IsSorted(members) {
					t.Fatalf("%s: %v", data, p.claim)
				}
				m.observe([]peer{p, p}, now)
				m.count(now)
				_ = m.others(claims{set{"self"}}, set{"self"})
				for _, o := range m.peers {
					_ = o.expiry()
				}
			}
		}
		c := &Config{Group: "g"}
		c.Namespace, c.Identity, c.LeaseDuration = "ns", members, 15*time.Second
		wanted := parseClaim(map[string]string{claimAnnotation: members})
		u, err := c.object(write{claim: wanted}, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		var written coordinationv1.Lease
		if err := asjson.Decode(u.Object, &written); err != nil {
			t.Fatalf("%v: %v", u, err)
		}
		p, ok := peerOf("g", &written)
		if !ok || p.member != member(members) || p.duration != 15*time.Second || !p.renewed.Equal(now) {
			t.Fatalf("%q: %+v", members, p)
		}
		if strings.ToValidUTF8(members, "") == members && !same(p.claim, wanted) {
			t.Fatalf("%q: %v, want %v", members, p.claim, wanted)
		}
	})
}
