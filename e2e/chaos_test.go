package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var spacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// inProtobuf is the label of requests whose answers are in protobuf.
const inProtobuf = "short"

// log collects what a client logs.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(what))
}

// chaos is a run with faults.
type chaos struct {
	*testing.T
	*trouble
	*world
	log     *log
	history *history
	quiet   *rest.Config // without faults
	stay    []*witness
	// unfollow ends the history of the server's objects.
	unfollow func()
}

// newChaos makes a world whose client meets faults. The client shares no connection, so that the
// test can check that none is left at the end.
func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{T: t, log: &log{}, quiet: rest.CopyConfig(testCluster.Config), trouble: &trouble{
		faults: katestest.NewFaults(t, seed), network: katestest.NewNetwork(t), made: map[string]int{}, rules: map[string][]*katestest.Rule{},
	}}
	c.quiet.Dial = katestest.NewNetwork(t).DialContext
	config := rest.CopyConfig(testCluster.Config)
	config.Dial = c.network.DialContext
	config.Wrap(c.faults.Wrap)
	if seed%2 == 1 {
		plain(config)
	}
	client, err := tapped(kates.NewClientFromRESTConfig(config, kates.WithInterval(0), kates.Tuning{IdleTimeout: 3 * time.Second},
		kates.WithLogger(slog.New(secrecy.Handler(slog.NewTextHandler(c.log, nil))))))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	c.world = newWorld(t, client, c.quiet)
	c.strips, c.faulty = true, byFault
	c.unsettled = func() int { return c.log.count("own write not settled") }
	for i, ns := range c.namespaces {
		c.team(ns, "flips", true)
		c.team(ns, "stays", i == 0)
	}
	return c
}

// team adds a namespace to those that a label selects, or removes it.
func (c *chaos) team(ns, label string, in bool) {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label)
	if in {
		patch = fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, label, c.label)
	}
	// It is not cut short: a patch that is given up here may reach the server behind the next one.
	_, err := c.others.Resource(spacesResource).Patch(c.Context(), ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	assert.NoError(c, err)
}

// flip adds and removes the second namespace again and again. At the end it is selected.
func (c *chaos) flip(ctx context.Context, r *rand.Rand) {
	for in := false; ctx.Err() == nil; in = !in {
		c.team(c.namespaces[1], "flips", in)
		pause(ctx, time.Duration(r.IntN(1500))*time.Millisecond)
	}
	c.team(c.namespaces[1], "flips", true)
}

// edit adds, removes and replaces the queries of a watch. At the end all are there.
func (c *chaos) edit(ctx context.Context, j *witness, r *rand.Rand) {
	hosts, pods := j.queries[2].Query, j.queries[0].Query
	for there := true; ctx.Err() == nil || !there; there = !there {
		pods.Namespaces = c.namespaces[:1+r.IntN(2)]
		if !assert.NoError(c, j.acc.Replace(c.Context(), pods)) {
			return
		}
		pause(ctx, time.Duration(r.IntN(800))*time.Millisecond)
		change := func() error { return j.acc.Remove(c.Context(), "Hosts") }
		if !there {
			change = func() error { return j.acc.Add(c.Context(), hosts) }
		}
		if !assert.NoError(c, change()) {
			return
		}
		pause(ctx, time.Duration(r.IntN(800))*time.Millisecond)
	}
	pods.Namespaces = c.namespaces
	assert.NoError(c, j.acc.Replace(c.Context(), pods))
}

// visit opens one watch after the other, reads each for a while, and closes it. The faults may
// make the opening fail.
func (c *chaos) visit(ctx context.Context, r *rand.Rand) (all []*witness) {
	names := slices.Sorted(maps.Keys(ways))
	for ctx.Err() == nil {
		name := names[r.IntN(len(names))]
		stay, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(2500))*time.Millisecond)
		opening := c.Context()
		if ways[name].lookUp {
			opening = stay
		}
		j, err := c.witness(opening, c.T, name, c.namespaces[r.IntN(2)])
		if err == nil {
			j.name = "visitor, " + j.name
			j.read(stay, 20*time.Millisecond, r)
			j.close()
			all = append(all, j)
		}
		cancel()
	}
	return all
}

// This is the coherence run with faults of every kind. It runs alone: otherwise the test cannot
// tell whether one of its watches or goroutines is left.
func TestG4G5G6G7G11UnderChaos(t *testing.T) {
	t.Logf("seed %d", *seed)
	goroutines := goleak.IgnoreCurrent()
	t.Run("run", func(t *testing.T) {
		c := newChaos(t, *seed)
		baseline := watchesOf(t, c.quiet)
		visitors := c.run()
		c.heal()
		healed := time.Now()
		for _, j := range c.stay {
			j.settled()
		}
		t.Logf("all is as the server has it %s after the last fault", time.Since(healed).Round(time.Second))
		c.judge(visitors)
		c.unfollow()
		for _, j := range c.stay {
			j.close()
		}
		assert.Empty(t, c.client.Status().Queries)
		poll(t, func() bool { return maps.Equal(baseline, watchesOf(t, c.quiet)) }, "the server serves no more watches than before (G11)",
			func() any { return baseline }, func() any { return watchesOf(t, c.quiet) })
		assert.Empty(t, c.faults.Open(katestest.Match{Verb: "watch"}))
		assert.Zero(t, c.log.count("history went back"))
	})
	assert.NoError(t, goleak.Find(goroutines), "G11")
}

// run runs all readers and writers, for as long as the flag says.
func (c *chaos) run() (visitors []*witness) {
	var following, writers, readers sync.WaitGroup
	live, end := context.WithCancel(c.Context())
	c.unfollow = func() {
		end()
		following.Wait()
	}
	c.Cleanup(c.unfollow)
	c.history = c.follow(live, c.T, &following)
	random := func(n int) *rand.Rand { return rand.New(rand.NewPCG(*seed, uint64(n))) }
	for i, name := range slices.Sorted(maps.Keys(ways)) {
		j, err := c.witness(c.Context(), c.T, name, c.namespaces[i%2])
		require.NoError(c, err)
		c.stay = append(c.stay, j)
	}
	edited, err := c.witness(c.Context(), c.T, "a set of namespaces", "")
	require.NoError(c, err)
	edited.name = "edited"
	edited.queries[0].lenient = func(ns string) bool { return ns != c.namespaces[0] }
	c.stay = append(c.stay, edited)

	ctx, cancel := context.WithTimeout(c.Context(), *soak)
	defer cancel()
	for i, j := range c.stay {
		readers.Go(func() { j.read(ctx, time.Duration(i%3)*150*time.Millisecond, random(300+i)) })
	}
	readers.Go(func() { visitors = c.visit(ctx, random(400)) })
	readers.Go(func() { c.edit(ctx, edited, random(401)) })
	for i := range ownWriters {
		writers.Go(func() { c.own(ctx, c.T, random(i)) })
	}
	for i := range foreignWriters {
		writers.Go(func() { c.foreign(ctx, random(100+i)) })
	}
	writers.Go(func() { c.kubelet(ctx, random(200)) })
	writers.Go(func() { c.flip(ctx, random(201)) })
	for i := range 3 {
		writers.Go(func() { c.make(ctx, random(210+i)) })
	}
	writers.Wait()
	readers.Wait()
	return visitors
}

// heal ends all faults.
func (c *chaos) heal() {
	c.faults.Heal()
	c.network.Delay(0)
}

// judge checks what all readers have seen, and logs how much that was.
func (c *chaos) judge(visitors []*witness) {
	c.finish(c.T, c.history)
	looks, checked := 0, 0
	for _, j := range append(slices.Clone(c.stay), visitors...) {
		looks += len(j.looks)
		checked += c.history.judge(c.T, j)
	}
	text, sum := c.counts()
	known, _ := c.known()
	c.Logf("%d faults: %s", sum, text)
	c.Logf("%d own writes, %d more of unknown outcome, %d objects, %d Updates of %d readers, %d looks at an object judged",
		known, c.lost, len(c.history.states), looks, len(c.stay)+len(visitors), checked)
	assert.NotZero(c, c.lost)
	assert.Greater(c, sum, 10)
	if c.Failed() {
		c.Logf("%s\n%s", c.client.Status(), strings.ToValidUTF8(c.log.text.String(), "?"))
	}
}
