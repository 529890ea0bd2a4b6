package sim

import (
	"hash/fnv"
	"slices"
	"sync"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// Gates hold goroutines up at points. The script decides what happens until a gate opens, while
// all others are idle. So it happens between two actions that are one in most runs.
type Gates struct {
	mu     sync.Mutex
	shut   []Gate
	held   []*heldUp
	opened bool // for good
}

// Gate holds up one goroutine that reaches a point, for some steps of the script.
type Gate struct {
	stream.Point
	Key   object.Key // if the point has one, it must be this one
	Shard int        // if the point has a stream, it must be of this shard
	Skip  int        // the number of goroutines that pass before
	Steps int
}

// heldUp is a goroutine at a gate.
type heldUp struct {
	steps int
	open  chan struct{}
}

// UpdatePoints are the points that an Update passes. The ones listed more often are likelier.
var UpdatePoints = []stream.Point{stream.AtTake, stream.AtTake, stream.AtTake, stream.AtTake, stream.AtTake, stream.AtComplete, stream.AtTake, stream.AtTaken, stream.AtUpdate}

// OtherPoints are the points that the goroutines of streams, and own writes, pass.
var OtherPoints = []stream.Point{stream.AtCommit, stream.AtListed, stream.AtSettle, stream.AtLand, stream.AtList, stream.AtWatch}

// Shards is the number of shards that streams are divided into, for gates.
const Shards = 3

// shardOf returns the shard of a stream: one of a few.
func shardOf(id stream.ID) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id.String()))
	return int(h.Sum32() % Shards)
}

func (g Gate) holds(m stream.Moment) bool {
	switch {
	case g.Point != m.Point:
		return false
	case m.Key != object.Key{}:
		return g.Key == m.Key
	case m.Point == stream.AtList, m.Point == stream.AtListed, m.Point == stream.AtWatch:
		return g.Shard == shardOf(m.Stream)
	}
	return true
}

// Reached holds a goroutine up if there is a gate for it.
func (g *Gates) Reached(m stream.Moment) {
	g.mu.Lock()
	i := slices.IndexFunc(g.shut, func(x Gate) bool { return x.holds(m) })
	if i < 0 || g.opened {
		g.mu.Unlock()
		return
	}
	if g.shut[i].Skip > 0 {
		g.shut[i].Skip--
		g.mu.Unlock()
		return
	}
	h := &heldUp{g.shut[i].Steps, make(chan struct{})}
	g.shut = slices.Delete(g.shut, i, i+1)
	g.held = append(g.held, h)
	g.mu.Unlock()
	<-h.open
}

// mostGates bounds the number of waiting gates.
const mostGates = 4

// Close adds a gate.
func (g *Gates) Close(x Gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut = append(g.shut, x); len(g.shut) > mostGates {
		g.shut = g.shut[1:]
	}
}

// Clear removes the waiting gates at some points.
func (g *Gates) Clear(points []stream.Point) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = slices.DeleteFunc(g.shut, func(x Gate) bool { return slices.Contains(points, x.Point) })
}

// Step counts a step of the script.
func (g *Gates) Step() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.held {
		h.steps--
	}
}

// Next releases a goroutine that has been held up for long enough. It reports whether there was
// one.
func (g *Gates) Next() bool {
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

// Release removes the gates that there are. Next releases those that are held up.
func (g *Gates) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = nil
	for _, h := range g.held {
		h.steps = -1
	}
}

// Open removes all gates, for good.
func (g *Gates) Open() {
	g.mu.Lock()
	g.shut, g.opened = nil, true
	g.mu.Unlock()
	for g.Next() {
	}
}
