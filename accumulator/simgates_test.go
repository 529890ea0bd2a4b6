package accumulator

import (
	"hash/fnv"
	"slices"
	"sync"

	"github.com/kates-go/kates/accumulator/stream"
)

// gates hold goroutines up at points. The script decides what happens until a gate opens, while
// all others are idle. So it happens between two actions that are one in most runs.
type gates struct {
	mu     sync.Mutex
	shut   []gate
	held   []*heldUp
	opened bool // for good
}

// gate holds up one goroutine that reaches a point, for some steps of the script.
type gate struct {
	stream.Point
	key   Key // if the point has one, it must be this one
	shard int // if the point has a stream, it must be of this shard
	skip  int // the number of goroutines that pass before
	steps int
}

// heldUp is a goroutine at a gate.
type heldUp struct {
	steps int
	open  chan struct{}
}

// updatePoints are the points that an Update passes. The ones listed more often are likelier.
var updatePoints = []stream.Point{stream.AtLook, stream.AtMerge, stream.AtLook, stream.AtTake, stream.AtLook, stream.AtComplete, stream.AtMerge, stream.AtTaken, stream.AtUpdate}

// otherPoints are the points that the goroutines of streams, and own writes, pass.
var otherPoints = []stream.Point{stream.AtCommit, stream.AtListed, stream.AtSettle, stream.AtLand, stream.AtList, stream.AtWatch}

const shards = 3

// shardOf returns the shard of a stream: one of a few.
func shardOf(id stream.ID) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id.String()))
	return int(h.Sum32() % shards)
}

func (g gate) holds(m stream.Moment) bool {
	switch {
	case g.Point != m.Point:
		return false
	case m.Key != Key{}:
		return g.key == m.Key
	case m.Point == stream.AtList, m.Point == stream.AtListed, m.Point == stream.AtWatch:
		return g.shard == shardOf(m.Stream)
	}
	return true
}

// reached holds a goroutine up if there is a gate for it.
func (g *gates) reached(m stream.Moment) {
	g.mu.Lock()
	i := slices.IndexFunc(g.shut, func(x gate) bool { return x.holds(m) })
	if i < 0 || g.opened {
		g.mu.Unlock()
		return
	}
	if g.shut[i].skip > 0 {
		g.shut[i].skip--
		g.mu.Unlock()
		return
	}
	h := &heldUp{g.shut[i].steps, make(chan struct{})}
	g.shut = slices.Delete(g.shut, i, i+1)
	g.held = append(g.held, h)
	g.mu.Unlock()
	<-h.open
}

// most bounds the number of waiting gates.
const mostGates = 4

// close adds a gate.
func (g *gates) close(x gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut = append(g.shut, x); len(g.shut) > mostGates {
		g.shut = g.shut[1:]
	}
}

// clear removes the waiting gates at some points.
func (g *gates) clear(points []stream.Point) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = slices.DeleteFunc(g.shut, func(x gate) bool { return slices.Contains(points, x.Point) })
}

// step counts a step of the script.
func (g *gates) step() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.held {
		h.steps--
	}
}

// next releases a goroutine that has been held up for long enough. It reports whether there was
// one.
func (g *gates) next() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.held, func(h *heldUp) bool { return h.steps < 0 || g.opened })
	if i < 0 {
		return false
	}
	close(g.held[i].open)
	g.held = slices.Delete(g.held, i, i+1)
	return true
}

// open removes all gates, for good.
func (g *gates) open() {
	g.mu.Lock()
	g.shut, g.opened = nil, true
	g.mu.Unlock()
	for g.next() {
	}
}
