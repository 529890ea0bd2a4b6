package derive

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/guard"
)

// Graph holds values that are derived from snapshots of type S. [New] makes one; sources and
// derived nodes are declared on it, then [Graph.Update] is called with each snapshot.
//
// A graph belongs to one goroutine at a time, that of the loop over snapshots: a second Update
// that runs at the same time is an error. Only [Graph.Stats] and [Graph.Explain] may be called
// from any goroutine at any time.
type Graph[S any] struct {
	c *core
	// feeds read the fields of a snapshot, by the index of their node.
	feeds map[int]func(*S) error
}

// GraphOption is an option of [New].
type GraphOption func(*core)

// Verified makes each Update end with [Graph.Verify], whose finding is the error of the Update. It
// is for tests: it costs two evaluations from scratch.
func Verified() GraphOption { return func(c *core) { c.verified = true } }

// Audit makes each Update run n functions again, one entry after the other in turn, and compare
// what they return with what the graph has. What it finds is in [Stats], and stops nothing. Each
// value that a function returns is hashed as a whole, so that a write to it is found, too.
func Audit(n int) GraphOption { return func(c *core) { c.audits = n } }

// New returns a graph without nodes. Errors and the status page show its name.
func New[S any](name string, o ...GraphOption) *Graph[S] {
	g := &Graph[S]{c: &core{name: name, unsound: true}, feeds: make(map[int]func(*S) error)}
	for _, set := range o {
		set(g.c)
	}
	return g
}

// Any is a graph of any type of snapshot. Only [Graph] implements it.
type Any interface {
	Stats() Stats
	Explain(node, key string) Explanation
	graph() *core
}

func (g *Graph[S]) graph() *core { return g.c }

// node is a source or a derived collection or value.
type node interface {
	head() *header
	// settle forgets what the last Update has changed.
	settle()
	// evaluate takes over the changes of the nodes that this one reads, and runs what has to run.
	// A source has done so already.
	evaluate()
	// reset forgets everything.
	reset()
	// size returns the number of valid and of invalid entries.
	size() (valid, invalid int)
	// explain returns what the node knows of a key.
	explain(key string) (Explanation, bool)
}

// checked is a node whose functions can be run again.
type checked interface {
	// checks is the number of rows.
	checks() int
	// check runs the function of a row again, and returns what is wrong with it.
	check(row int) *finding
}

// header is what all nodes have.
type header struct {
	c          *core
	index      int32
	kind, name string
	counts     counts
}

func (h *header) head() *header { return h }

// core is a graph without its type of snapshot.
type core struct {
	name    string
	nodes   []node
	mistake error // of a declaration
	begun   bool  // an Update was called: nothing is declared any more

	rec recorder
	// coming is how many functions of a node run after another, the one that runs included. What
	// they need comes in blocks.
	coming    int
	readers   []Reader
	askBlock  []ask
	cellBlock any // a *[]cellOf[K, V]

	reader   *Reader // that the last Update has returned
	updates  uint32
	unsound  bool // no Update has ended, or the last one did not: the next one is a first one
	verified bool
	audits   int
	audited  int // where the next audit begins
	impure   []string
	impures  uint64

	// updating and explaining keep Update and Explain apart.
	updating   atomic.Bool
	explaining atomic.Int32
	stats      atomic.Pointer[Stats]
}

// declare adds a node.
func (c *core) declare(n node, kind, name string) {
	h := n.head()
	h.c, h.kind, h.name, h.index = c, kind, name, int32(len(c.nodes))
	switch {
	case c.begun:
		c.wrong("%q is declared after the first Update", name)
	case name == "":
		c.wrong("a node of kind %s has no name", kind)
	default:
		for _, other := range c.nodes {
			if other.head().name == name {
				c.wrong("two nodes have the name %q", name)
			}
		}
	}
	c.nodes = append(c.nodes, n)
}

// wrong keeps the first mistake of the declarations. Each Update returns it.
func (c *core) wrong(format string, args ...any) {
	if c.mistake == nil {
		c.mistake = fmt.Errorf("derive: graph %q: %w", c.name, fmt.Errorf(format, args...))
	}
}

// Update brings all nodes up to date with a snapshot, and returns a [Reader] of the results, which
// ends with the next Update. It runs the functions whose inputs or look-ups have changed since the
// last Update, and no other. Snapshots may be skipped, or be older than the last one.
//
// It keeps the slices of the snapshot, and writes to nothing in it. An error is a mistake of a
// declaration or of the use: a function's error, and its panic, are its entry's. After an
// error of the evaluation the next Update is a first one.
func (g *Graph[S]) Update(s *S) (*Reader, error) {
	c := g.c
	if s == nil {
		return nil, fmt.Errorf("derive: graph %q: Update of a nil snapshot", c.name)
	}
	if err := c.enter("another Update is running"); err != nil {
		return nil, err
	}
	defer c.updating.Store(false)
	if c.mistake != nil {
		return nil, c.mistake
	}
	c.begun = true
	if c.reader != nil {
		c.reader.ended = true
	}
	if c.unsound || c.rec.number > lastNumber {
		c.reset()
	}
	c.unsound = true
	c.updates++
	if err := g.evaluate(s); err != nil {
		return nil, fmt.Errorf("derive: graph %q: %w", c.name, err)
	}
	c.unsound = false
	c.reader = &Reader{c: c, before: int32(len(c.nodes))}
	if c.audits > 0 {
		c.audit(c.audits)
	}
	c.publish()
	if c.verified {
		if err := c.verify(); err != nil {
			c.unsound, c.reader.ended = true, true
			return nil, err
		}
	}
	return c.reader, nil
}

// enter keeps all others out until updating is false again.
func (c *core) enter(refusal string) error {
	if !c.updating.CompareAndSwap(false, true) {
		return fmt.Errorf("derive: graph %q: %s", c.name, refusal)
	}
	for c.explaining.Load() > 0 {
		// An explanation looks at each key of a node, and calls no function of the program.
		runtime.Gosched()
	}
	return nil
}

// evaluate brings the nodes up to date, in the order in which they were declared.
func (g *Graph[S]) evaluate(s *S) error {
	then := time.Now()
	for i, n := range g.c.nodes {
		h := n.head()
		h.counts.resetRuns()
		n.settle()
		if feed := g.feeds[i]; feed != nil {
			if err := guard.Named("the field or the key of "+h.name+" panicked", func() error { return feed(s) }); err != nil {
				return err
			}
		}
		n.evaluate()
		now := time.Now()
		h.counts.took(now.Sub(then))
		then = now
	}
	return nil
}

// Reset makes the next Update a first one: it runs every function.
func (g *Graph[S]) Reset() error {
	if err := g.c.enter("Reset during an Update"); err != nil {
		return err
	}
	defer g.c.updating.Store(false)
	g.c.unsound = true
	return nil
}

func (c *core) reset() {
	for _, n := range c.nodes {
		n.reset()
	}
	c.rec = recorder{}
	c.audited = 0
}

// called runs a function of the program. A panic is an error.
func (h *header) called(f func() error) error {
	return guard.Handle(f, func(p *guard.Panic) error {
		p.What = "the function of " + h.name + " panicked"
		return p
	})
}
