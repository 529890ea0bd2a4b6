package collect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/base/watchdog"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// Options are the options of one collector.
type Options struct {
	Pace Pace
	// QuietOwnWrites suppresses the signals of own writes. The snapshot and its deltas show them
	// all the same.
	QuietOwnWrites bool
	// Invalid is called for each object that is left out because it does not decode or was
	// rejected, once per change of the object or of the reason. It is called without locks.
	Invalid func(tables.Invalid)
	// Witness is told what the reader's user gets. Tests use it to find out whether somebody
	// writes to that. Nil: nobody is told.
	Witness Witness
	// Noted is set at the moment when the next Update may differ from the last one, also by a
	// change that is worth no signal. The reader clears Noted before an Update. While Noted is
	// false, an Update with the same predicate and a target of the same type changes nothing. Nil:
	// nobody asks.
	Noted *atomic.Bool
	// Name of the watch, for those who look at it, and Observer, which is told of each snapshot; nil:
	// nobody is.
	Name     string
	Observer Observer
	// Overdue is how long the first snapshot may take. After that, a log entry names the queries
	// that are incomplete. Default 10 s.
	Overdue time.Duration
}

// NotedOption is the option of watches that sets Options.Noted. Only package fleet has one.
// Package kates takes it as it takes a [WitnessOption].
type NotedOption interface {
	// Noted returns what is set. It belongs to one watch.
	Noted() *atomic.Bool
	// Witnessed gets what makes the witnesses of the client's watches, nil if nothing does.
	Witnessed(by func(watch string) Witness)
}

// Reader is what takes a collector's changes. S is what it has of each query.
type Reader[S any] struct {
	// User is the reader, as the streams know it: their Close closes it.
	User streamset.User
	// Shown makes a new S.
	Shown func() S
	// Invalid returns the number of objects that a snapshot leaves out. It may be called at any
	// time.
	Invalid func(S) int
	// PerKey: batches say for each key whether it is worth a signal.
	PerKey bool
	// Check returns an error if the reader cannot show some queries; nil: it is asked for nothing.
	// It is called before a change, with all queries that would be wanted then.
	Check func([]query.Query) error
	// Waiting reports whether something of the reader waits for a signal; nil: never.
	Waiting func() bool
	// Ended is called once, at the end; nil: nothing is.
	Ended func()
	// Silent: the reader does not wait for signals. It calls neither Changed nor Ensure.
	Silent bool
}

// Collector runs queries for one reader. It says when there is something new, and takes it.
//
// One goroutine reads at a time: it has the turn from Enter to Leave. All other methods are safe
// for concurrent use.
type Collector[S any] struct {
	host    query.Host
	options Options
	reader  Reader[S]
	pacer   *pacer
	links   refs.Links

	upkeep upkeep

	life
	roster[S]
	rows
	tally tally

	turn    chan struct{}  // held by the reader
	reading watchdog.Pulse // the reader's turns
	follow  chan struct{}  // holds a value when there may be names to read
}

// New makes a collector of queries, and finds their kinds. Start starts it. If a kind cannot be
// resolved, and its query is not optional, the error names the query.
func New[S any](ctx context.Context, s *streamset.Set, queries []query.Query, o Options, r Reader[S]) (*Collector[S], error) {
	if err := CauseOf(ctx); err != nil {
		return nil, err
	}
	if o.Overdue <= 0 {
		o.Overdue = 10 * time.Second
	}
	c := &Collector[S]{
		options: o, reader: r, roster: roster[S]{generation: 1, course: newCourse()},
		life:   life{finished: make(chan struct{})},
		turn:   make(chan struct{}, 1),
		follow: make(chan struct{}, 1),
		rows:   rows{streams: s, witness: o.Witness, invalid: o.Invalid},
		tally:  tally{id: watchIDs.Add(1), opened: time.Now()},
	}
	c.ended = c.Err
	c.upkeep = upkeep{
		host: &c.host, queries: c.Running, settled: c.due,
		due: make(chan struct{}, 1), editing: make(chan struct{}, 1),
	}
	c.host = query.Host{
		Streams: s, PerKey: r.PerKey, QuietOwn: o.QuietOwnWrites,
		Noted: c.Note, Wake: func() { c.Complete() }, Attend: func() { offer(c.upkeep.due) }, Follow: func() { offer(c.follow) },
		Ready: c.course.isComplete, Past: &query.Past{},
	}
	if !r.Silent {
		c.pacer = newPacer(o.Pace, c.news)
		c.host.Wake = func() {
			c.Note()
			c.pacer.poke()
		}
	}
	all, links, err := refs.Prepare(ctx, c.host, c.witnessed(queries))
	if err != nil {
		return nil, err
	}
	c.links = links
	for i, q := range all {
		c.fields = append(c.fields, c.field(queries[i].Name, q))
	}
	return c, nil
}

// offer puts a value into a channel that holds at most one.
func offer(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // one waits already
	}
}

func (c *Collector[S]) field(name string, q query.Running) *Field[S] {
	return &Field[S]{Name: name, Query: q, Shown: c.reader.Shown()}
}

// Start joins the streams. The collector runs until ctx ends, or Close. After an error nothing
// runs.
func (c *Collector[S]) Start(ctx context.Context) error {
	life := c.begin(ctx)
	if err := c.host.Streams.Enter(c.reader.User); err != nil {
		c.life.end(err)
		return err
	}
	for _, f := range c.fields {
		if err := f.Query.Connect(); err != nil {
			c.end(err)
			return err
		}
	}
	c.Go(func() { c.upkeep.run(life) })
	if c.links.Any() {
		c.Go(func() { c.following(life) })
	}
	c.watch(ctx, c.end, c.options.Overdue, c.logOverdue)
	c.host.Wake()
	return nil
}

// Changed signals that there is something new to take. It holds at most one signal, and is closed
// when the collector ends. A signal may be spurious, but none is lost.
func (c *Collector[S]) Changed() <-chan struct{} { return c.pacer.out }

// Signalled returns when the last signal was given. While one waits to be received, no other is.
func (c *Collector[S]) Signalled() time.Time {
	_, last := c.pacer.given()
	return last
}

// Ensure makes sure that a signal follows.
func (c *Collector[S]) Ensure() {
	c.Note()
	c.pacer.ensure()
}

// Note notes that the next Update may show something else than the last one did.
func (c *Collector[S]) Note() {
	if c.options.Noted != nil {
		c.options.Noted.Store(true)
	}
}

// AtRest reports whether there is nothing to take that has not been shown, and will not be unless
// Note is called. It belongs to the reader's turn.
func (c *Collector[S]) AtRest() bool {
	if c.changed() || len(c.waiting()) > 0 {
		return false
	}
	return !slices.ContainsFunc(c.Fields(), func(f *Field[S]) bool { return !f.Query.State().AtRest })
}

// readable reports whether a query can be read: it is complete, or was complete once and
// some of it can be read.
func (c *Collector[S]) readable(f *Field[S]) bool {
	if f.Present {
		return true
	}
	phase := f.phase()
	return phase >= query.Complete || phase == query.Partial && f.counted.Load()
}

// Complete reports whether every query has its whole first list (G1). Once true, it stays true.
func (c *Collector[S]) Complete() bool {
	for !c.course.isComplete() {
		fields, generation := c.FieldsNow()
		for _, f := range fields {
			if f.phase() < query.Complete {
				return false
			}
		}
		c.pass(generation)
	}
	return true
}

// pass notes that the queries of a generation are complete, unless there are others by now.
func (c *Collector[S]) pass(generation int) {
	c.roster.mu.Lock()
	defer c.roster.mu.Unlock()
	if c.generation == generation {
		c.course.reach(complete)
	}
}

// news reports whether a signal is worth giving.
func (c *Collector[S]) news() bool {
	if !c.Complete() {
		return false
	}
	if n, _ := c.pacer.given(); n == 0 {
		return true // also if the reader has taken a snapshot before
	}
	for _, f := range c.Fields() {
		if f.Query.State().News {
			return true
		}
	}
	return c.changed() || c.due() || c.reader.Waiting != nil && c.reader.Waiting()
}

// Ready is nil once the first snapshot is complete, and stays nil. Before that, the error says
// which queries are incomplete and why.
func (c *Collector[S]) Ready() error {
	if c.Complete() {
		return nil
	}
	var why []string
	for _, st := range c.incomplete() {
		text := fmt.Sprintf("query %q (%s): %s", st.Name, plain.Line(st.Kind), st.State)
		if st.Error != "" {
			text += ": " + plain.Line(st.Error)
		}
		why = append(why, text)
	}
	return fmt.Errorf("incomplete: %s", strings.Join(why, "; "))
}

// Readied is closed once the first snapshot is complete.
func (c *Collector[S]) Readied() <-chan struct{} { return c.course.completed }

// logOverdue logs that there is no snapshot yet: as an error if a query has failed, else as
// information.
func (c *Collector[S]) logOverdue() {
	why := c.Ready()
	if why == nil || c.Err() != nil {
		return
	}
	log, what := c.host.Streams.Logger().WithValues("after", c.options.Overdue.String()), "still no complete snapshot"
	if slices.ContainsFunc(c.incomplete(), func(q query.Status) bool { return q.Error != "" }) {
		log.Error(why, what)
	} else {
		log.Info(what, "waiting", why.Error())
	}
}

// Status returns the state of each query that is wanted, in the order of the queries. Of a query
// that was replaced it is the state of the new one.
func (c *Collector[S]) Status() []query.Status {
	entries := c.entries()
	all := make([]query.Status, len(entries))
	for i, e := range entries {
		all[i] = e.wanted().Query.Status()
		all[i].Invalid = c.reader.Invalid(e.fields()[0].Shown)
		all[i].Changing = e.next != nil
	}
	return all
}

// Sync returns when every stream is as new as the server was at the call, or with ctx's error. A
// resource that does not exist, or that the client may not read, is no error if the server says so
// again: what is shown of it stays.
func (c *Collector[S]) Sync(ctx context.Context) error {
	var all []*stream.Listener
	for _, q := range c.Running() {
		all = append(all, q.Listeners()...)
	}
	return stream.SyncAll(ctx, all)
}

// Close ends the collector, and waits until all its goroutines have ended. Streams that have no
// other listener end too.
func (c *Collector[S]) Close() {
	c.end(stream.ErrClosed)
	<-c.finished
	c.tasks.Wait()
}

func (c *Collector[S]) end(cause error) {
	if !c.life.end(cause) {
		return
	}
	c.Note()
	for _, q := range c.Running() {
		q.Close()
	}
	c.host.Streams.Leave(c.reader.User)
	if c.pacer != nil {
		c.pacer.close()
	}
	if c.reader.Ended != nil {
		c.reader.Ended()
	}
	close(c.finished)
}

// Watch is a user of streams that runs queries: every reader of a collector.
type Watch interface {
	// Ready is nil once every query has its whole first list, and stays nil.
	Ready() error
	// Status returns the state of each query, in their order.
	Status() []query.Status
	// Inspect returns what the watch has and has done.
	Inspect() Inspection
	// Names returns the names of the objects that the streams of a query show, in order, and nil if
	// there is no such query. Examine returns what there is of one of them, or of any other name.
	Names(query string) []object.Key
	Examine(query string, key object.Key) (Examined, bool)
	// LeftOut returns some of the objects of a query that the reader leaves out, most of them at
	// most, in order.
	LeftOut(query string, most int) []tables.Invalid
}

// Of returns the watches of a set, in no particular order.
func Of(s *streamset.Set) (all []Watch) {
	for _, u := range s.Users() {
		if w, ok := u.(Watch); ok {
			all = append(all, w)
		}
	}
	return all
}
