package accumulator

import (
	"hash/fnv"
	"slices"
	"sync"

	"github.com/kates-go/kates/accumulator/stream"
)

// gates hold goroutines up at points. What happens until a gate opens is decided by the script: with all others at
// rest, that happens between two steps that are one in most runs.
type gates struct {
	mu     sync.Mutex
	shut   []gate
	held   []*heldUp
	opened bool // for good
}

// gate holds up one goroutine that comes to a point, for some steps of the script.
type gate struct {
	stream.Point
	key   Key // of points with one: this alone
	shard int // of points of a stream that lists or watches: only a stream of this shard
	skip  int // so many pass before
	steps int
}

// heldUp is a goroutine at a gate.
type heldUp struct {
	steps int
	open  chan struct{}
}

// updatePoints are those that an Update passes, the likelier the more often they are here.
var updatePoints = []stream.Point{stream.AtLook, stream.AtMerge, stream.AtLook, stream.AtTake, stream.AtLook, stream.AtComplete, stream.AtMerge, stream.AtTaken, stream.AtUpdate}

// otherPoints are those that the goroutines of streams, and own writes, pass.
var otherPoints = []stream.Point{stream.AtCommit, stream.AtListed, stream.AtSettle, stream.AtLand, stream.AtList, stream.AtWatch}

const shards = 3

// shardOf is one of a few kinds of streams.
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

// most bounds the gates that wait for somebody.
const mostGates = 4

// close puts up a gate.
func (g *gates) close(x gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut = append(g.shut, x); len(g.shut) > mostGates {
		g.shut = g.shut[1:]
	}
}

// clear takes down the gates at some points that nobody has come to.
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

// next lets one go on that has been held up for long enough. It reports whether there was one.
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

// open takes all gates down, for good.
func (g *gates) open() {
	g.mu.Lock()
	g.shut, g.opened = nil, true
	g.mu.Unlock()
	for g.next() {
	}
}
