package podlogs

import (
	"hash/maphash"
	"time"
)

const (
	// overlap is how much older than the newest line a line may be that comes after it: the
	// runtime writes the two outputs of a container one beside the other.
	overlap = time.Second
	// mostRemembered bounds the memory of a container that writes a lot.
	mostRemembered = 1 << 14
)

// line is what is remembered of a piece of a log.
type line struct {
	at   time.Time
	hash uint64 // of the piece as it was sent, with its timestamp
}

// given remembers the lines of a log that a resumed stream may repeat.
type given struct {
	seed   maphash.Seed
	lines  []line    // in the order in which they were given
	newest time.Time // zero: none was given
	from   time.Time // older ones were given, and are forgotten
}

func newGiven() *given { return &given{seed: maphash.MakeSeed()} }

// line returns what is remembered of a piece.
func (g *given) line(p piece) line {
	at := p.at
	if at.IsZero() { // a line that the kubelet has added
		at = g.newest
	}
	return line{at, maphash.Bytes(g.seed, p.raw)}
}

// add notes that a line was given, and forgets those that no stream repeats any more.
func (g *given) add(l line) {
	g.lines = append(g.lines, l)
	if l.at.After(g.newest) {
		g.newest = l.at
	}
	if from := g.newest.Add(-overlap).Truncate(time.Second); from.After(g.from) {
		g.from = from
	}
	old := max(0, len(g.lines)-mostRemembered)
	if old > 0 {
		if after := g.lines[old-1].at.Add(1); after.After(g.from) {
			g.from = after
		}
	}
	for old < len(g.lines) && g.lines[old].at.Before(g.from) {
		old++
	}
	g.lines = g.lines[old:]
}

// since is where a stream resumes, in whole seconds. ok is false if nothing was given.
func (g *given) since() (at time.Time, ok bool) {
	return g.newest.Add(-overlap).Truncate(time.Second), !g.newest.IsZero()
}

// replay recognises what a resumed stream repeats.
type replay struct {
	from time.Time
	left map[line]int // how often each line may be repeated; nil: the replay is over
}

// replay returns what the next stream may repeat.
func (g *given) replay() *replay {
	r := &replay{from: g.from, left: make(map[line]int, len(g.lines))}
	for _, l := range g.lines {
		r.left[l]++
	}
	return r
}

// repeats reports whether a stream repeats a line that was given. What was given are the first
// lines of a stream, so after the first new one all are new.
func (r *replay) repeats(l line) bool {
	switch {
	case r.left == nil:
		return false
	case l.at.Before(r.from):
		return true
	case r.left[l] > 0:
		r.left[l]--
		return true
	}
	r.left = nil
	return false
}
