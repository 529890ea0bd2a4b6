package fleet

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// numbered makes a cluster with a config map x and a service s, whose UIDs have its number.
func numbered(t *testing.T, number string) *katestest.Fake {
	m, s := configMap("x"), service("s")
	m.UID, s.UID = types.UID("x"+number), types.UID("s"+number)
	return newCluster(t, types.UID(number), m, s)
}

// deltasOf is a snapshot's deltas in their order, by cluster and UID.
func deltasOf(snap *things) string {
	var all []string
	for _, d := range snap.Deltas {
		sign := map[kates.DeltaType]string{kates.ObjectAdd: "+", kates.ObjectUpdate: "*", kates.ObjectDelete: "-"}[d.DeltaType]
		all = append(all, fmt.Sprintf("%s%s/%s", sign, d.Cluster, d.UID))
	}
	return strings.Join(all, " ")
}

// unseenChange is what happens to a fleet of the clusters a, which is number 1, and b, number 2,
// between two Updates.
type unseenChange struct {
	do     func(f *Fleet, number map[string]*kates.Client)
	want   string // the snapshot
	deltas string
}

// later lets all that is under way happen, so that the fleet's watch has followed.
func later() {
	time.Sleep(3 * time.Second)
	synctest.Wait()
}

var unseenChanges = map[string]unseenChange{
	"one leaves while another comes": {
		func(f *Fleet, number map[string]*kates.Client) {
			f.Remove("a")
			_ = f.Set(Member{Name: "c", Client: number["3"]})
		},
		"b/svc/s, b/x, c/svc/s, c/x", "-a/x1 -a/s1 +c/x3 +c/s3",
	},
	"one leaves, and then another comes, whose name is before the others'": {
		func(f *Fleet, number map[string]*kates.Client) {
			f.Remove("b")
			later()
			_ = f.Set(Member{Name: "A", Client: number["3"]})
		},
		"A/svc/s, A/x, a/svc/s, a/x", "+A/x3 +A/s3 -b/x2 -b/s2",
	},
	"one leaves while another comes that is not complete": {
		func(f *Fleet, number map[string]*kates.Client) {
			f.Remove("a")
			_ = f.Set(Member{Name: "c", Client: number["incomplete"]})
		},
		"b/svc/s, b/x, missing c (false)", "-a/x1 -a/s1",
	},
	"all leave while as many come": {
		func(f *Fleet, number map[string]*kates.Client) {
			f.Remove("a")
			f.Remove("b")
			_ = f.Set(Member{Name: "c", Client: number["3"]})
			_ = f.Set(Member{Name: "d", Client: number["1"]})
		},
		"c/svc/s, c/x, d/svc/s, d/x", "-a/x1 -a/s1 -b/x2 -b/s2 +c/x3 +c/s3 +d/x1 +d/s1",
	},
	"one leaves, and another takes its name": {
		func(f *Fleet, number map[string]*kates.Client) {
			f.Remove("a")
			later()
			_ = f.Set(Member{Name: "a", Client: number["3"]})
		},
		"a/svc/s, a/x, b/svc/s, b/x", "-a/x1 +a/x3 -a/s1 +a/s3",
	},
	"one leaves, and another takes its name that is not complete": {
		func(f *Fleet, number map[string]*kates.Client) {
			f.Remove("a")
			later()
			_ = f.Set(Member{Name: "a", Client: number["incomplete"]})
		},
		"a/svc/s, a/x, b/svc/s, b/x, missing a (true)", "",
	},
	"one leaves and comes again": {
		func(f *Fleet, number map[string]*kates.Client) {
			f.Remove("a")
			later()
			_ = f.Set(Member{Name: "a", Client: number["1"]})
		},
		"a/svc/s, a/x, b/svc/s, b/x", "-a/x1 +a/x1 -a/s1 +a/s1",
	},
	"one comes and leaves": {
		func(f *Fleet, number map[string]*kates.Client) {
			_ = f.Set(Member{Name: "c", Client: number["3"]})
			later()
			f.Remove("c")
		},
		"a/svc/s, a/x, b/svc/s, b/x", "",
	},
	"two exchange their names": {
		func(f *Fleet, number map[string]*kates.Client) {
			_ = f.Set(Member{Name: "a", Client: number["2"]})
			_ = f.Set(Member{Name: "b", Client: number["1"]})
		},
		"a/svc/s, a/x, b/svc/s, b/x", "-a/x1 +a/x2 -a/s1 +a/s2 -b/x2 +b/x1 -b/s2 +b/s1",
	},
	"one moves to another name": {
		func(f *Fleet, number map[string]*kates.Client) {
			f.Remove("b")
			_ = f.Set(Member{Name: "c", Client: number["2"]})
		},
		"a/svc/s, a/x, c/svc/s, c/x", "-b/x2 -b/s2 +c/x2 +c/s2",
	},
}

func TestG1G7WhatHappensToClustersBetweenTwoUpdatesIsInOneSnapshotWithItsDeltas(t *testing.T) {
	for name, change := range unseenChanges {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, number := newFleet(t, Options{}), make(map[string]*kates.Client)
				for _, n := range []string{"1", "2", "3", "incomplete"} {
					k := numbered(t, n)
					var refused atomic.Bool
					refused.Store(n == "incomplete")
					on(k, "list", "services", &refused, errors.New("not now"))
					number[n] = k.Client
				}
				_ = f.Set(Member{Name: "a", Client: number["1"]})
				_ = f.Set(Member{Name: "b", Client: number["2"]})
				s := watchThings(t, f)
				before := settled(t, s)
				expect(t, before, "a/svc/s, a/x, b/svc/s, b/x")
				signalled(t, s.Changed())
				change.do(f, number)
				later()
				select {
				case <-s.Changed():
				default:
					t.Error("no signal says that clusters have come or gone")
				}
				snap := settled(t, s)
				expect(t, snap, change.want)
				if got := deltasOf(snap); got != change.deltas {
					t.Errorf("the deltas are %q, not %q", got, change.deltas)
				}
				if again := settled(t, s); len(again.Deltas) > 0 {
					t.Errorf("the deltas come again: %q", deltasOf(again))
				}
				expect(t, before, "a/svc/s, a/x, b/svc/s, b/x")
			})
		})
	}
}
