package e2e

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

var (
	soak = flag.Duration("soak", 12*time.Second, "how long the coherence run takes")
	seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the coherence run")
)

// ownWriters and foreignWriters of the coherence run.
const ownWriters, foreignWriters = 4, 8

// network delays and cuts the watch of pods at random. It cuts the other watches now and then.
func network(ctx context.Context, wire *wire, r *rand.Rand) {
	for ctx.Err() == nil {
		wire.set("pods", time.Duration(r.IntN(500))*time.Millisecond)
		if r.IntN(4) == 0 {
			wire.cut("pods")
		}
		if r.IntN(20) == 0 {
			wire.cut([]string{"configmaps", "hosts"}[r.IntN(2)])
		}
		pause(ctx, time.Duration(r.IntN(800))*time.Millisecond)
	}
}

// usual returns the ways that are not for the chaos run alone.
func usual() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(ways)), func(name string) bool { return ways[name].chaos })
}

// visit opens one watch after the other, reads each for a while, and closes it.
func (w *world) visit(ctx, live context.Context, t *testing.T, r *rand.Rand) (all []*witness) {
	names := usual()
	for ctx.Err() == nil {
		j, err := w.witness(live, t, names[r.IntN(len(names))], w.namespaces[r.IntN(2)])
		if !assert.NoError(t, err) {
			return all
		}
		j.name = "visitor, " + j.name
		stay, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(1500))*time.Millisecond)
		j.read(stay, 20*time.Millisecond, r)
		cancel()
		j.close()
		all = append(all, j)
	}
	return all
}

func TestG4G5G6G7UnderManyWritersWithALateWatchThatIsCut(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d", *seed)
	wire := newWire(t)
	w := newWorld(t, wire.client(t, kates.WithInterval(0)), testCluster.Config)
	var following sync.WaitGroup
	live, end := context.WithCancel(t.Context())
	defer following.Wait()
	defer end()
	h := w.follow(live, t, &following)

	ctx, cancel := context.WithTimeout(t.Context(), *soak)
	defer cancel()
	var writers, readers sync.WaitGroup
	random := func(n int) *rand.Rand { return rand.New(rand.NewPCG(*seed, uint64(n))) }
	for i := range ownWriters {
		writers.Go(func() { w.own(ctx, t, random(i)) })
	}
	for i := range foreignWriters {
		writers.Go(func() { w.foreign(ctx, random(100+i)) })
	}
	writers.Go(func() { w.kubelet(ctx, random(200)) })
	writers.Go(func() { network(ctx, wire, random(201)) })
	var stay, visitors []*witness
	for i, way := range usual() {
		j, err := w.witness(live, t, way, w.namespaces[i%2])
		require.NoError(t, err)
		stay = append(stay, j)
		readers.Go(func() { j.read(ctx, time.Duration(i%3)*150*time.Millisecond, random(300+i)) })
	}
	readers.Go(func() { visitors = w.visit(ctx, live, t, random(400)) })
	writers.Wait()
	readers.Wait()
	wire.set("pods", 0)
	for _, j := range stay {
		j.settled()
	}
	w.finish(t, h)
	looks, checked := 0, 0
	for _, j := range append(stay, visitors...) {
		looks += len(j.looks)
		checked += h.judge(t, j)
	}
	known, _ := w.known()
	t.Logf("%d own writes, %d objects, %d Updates of %d readers, %d looks at an object judged", known, len(h.states), looks, len(stay)+len(visitors), checked)
	if known < enough {
		t.Logf("too few own writes on this machine to ask for each of the %d verbs", len(ownVerbs))
		return
	}
	for _, verb := range ownVerbs {
		assert.NotZero(t, w.done[verb.name], "%s never succeeded", verb.name)
	}
}

// enough is how many own writes it takes for each verb to have its turn.
const enough = 400

// finish ends the history with an object of each kind, so that everything before it is known.
func (w *world) finish(t *testing.T, h *history) {
	t.Helper()
	for _, gvr := range worldKinds {
		for _, ns := range w.namespaces {
			k := id{gvr.Resource, ns, "z-last"}
			o := w.fresh(k, rand.New(rand.NewPCG(0, 0)))
			got, err := w.others.Resource(gvr).Namespace(ns).Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(t, err)
			h.reaches(t, k, number(got.GetResourceVersion()))
		}
	}
}
