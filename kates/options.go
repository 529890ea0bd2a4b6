package kates

import (
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/accumulator/stream"
)

// An Option configures a client when it is made.
type Option interface{ applyToClient(*settings) }

// A WatchOption configures the watches of a client. Given to a constructor it is the
// client's default; given to [Client.With] it holds for the client that With returns; given to [Run], for that run.
type WatchOption interface {
	Option
	RunOption
	applyToWatch(*watchSettings)
}

type settings struct {
	scheme       *runtime.Scheme
	mapper       meta.RESTMapper
	namespace    string
	log          logr.Logger
	fieldManager string
	qps          float32
	burst        int
	streams      stream.Config
	watch        watchSettings

	untyped, managedFields, streamLists, compressed bool
}

type watchSettings struct {
	pace     accumulator.Pace
	quietOwn bool
	invalid  func(Invalid)
	// transform of queries without one
	transform func(Object) error
	shown     func(query string, source Object, value any)
	overdue   time.Duration
}

// lockedSettings lets MaxAccumulatorInterval change what Watch reads.
type lockedSettings struct {
	mu sync.Mutex
	watchSettings
}

func (l *lockedSettings) get() watchSettings {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watchSettings
}

type option func(*settings)

func (o option) applyToClient(s *settings) { o(s) }

type watchOption func(*watchSettings)

func (o watchOption) applyToClient(s *settings)     { o(&s.watch) }
func (o watchOption) applyToWatch(w *watchSettings) { o(w) }
func (o watchOption) applyToRun(r *runSettings)     { r.watch = append(r.watch, o) }

// WithScheme sets the scheme that ties Go types to kinds. Default: client-go's, with all
// built-in kinds.
func WithScheme(s *runtime.Scheme) Option { return option(func(o *settings) { o.scheme = s }) }

// WithRESTMapper sets the mapper that ties kinds to resources, in place of discovery.
func WithRESTMapper(m meta.RESTMapper) Option { return option(func(o *settings) { o.mapper = m }) }

// WithNamespace sets the default namespace of Create, Get and the like for objects of namespaced
// kinds that name none. Queries do not use it. Default: "default".
func WithNamespace(namespace string) Option {
	return option(func(o *settings) { o.namespace = namespace })
}

// WithLogger sets where state transitions are logged, once each: as errors those that keep a program from starting, and those that
// somebody has to do something about; as information what passes by itself, and that an optional kind is refused or not served. Default: slog.Default.
func WithLogger(l *slog.Logger) Option {
	return option(func(o *settings) { o.log = logr.FromSlogHandler(l.Handler()) })
}

// WithLogr is WithLogger for a logr.Logger; logr.Discard() silences the client.
func WithLogr(l logr.Logger) Option { return option(func(o *settings) { o.log = l }) }

// WithFieldManager sets the field manager of all writes (see
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers).
// Default: "kates" for Apply; for other writes the server's own choice.
func WithFieldManager(name string) Option {
	return option(func(o *settings) { o.fieldManager = name })
}

// WithRateLimit limits the client to so many requests per second, with bursts, in place of
// what the REST configuration says. A qps below zero is no limit. By default there is none:
// the server has priority and fairness.
func WithRateLimit(qps float32, burst int) Option {
	return option(func(o *settings) { o.qps, o.burst = qps, burst })
}

// WithPagedLists fetches all initial lists in pages of so many objects (0: 500). Otherwise those of fields of
// Go types that the scheme knows come in pages, decoded one object at a time, and all others streamed (KEP-3157). Both are
// consistent. Pages cost the server and the client less CPU; streams spare the client, for untyped objects, the memory of a page.
func WithPagedLists(size int64) Option {
	return option(func(o *settings) { o.streams.StreamLists, o.streamLists, o.streams.PageSize = false, false, size })
}

// WithStreamedLists fetches all initial lists as a stream of events (KEP-3157); see [WithPagedLists].
func WithStreamedLists() Option {
	return option(func(o *settings) { o.streams.StreamLists, o.streamLists = true, true })
}

// WithCompressedLists lets the server compress large answers, lists above all, as client-go's clients do that do not
// stream their lists: a few times fewer bytes, for a fifth more of the CPU that a list takes here, and a multiple of that at the
// server. It pays over a slow network. By default nothing is compressed.
func WithCompressedLists() Option {
	return option(func(o *settings) { o.compressed = true })
}

// WithUntypedStreams has everything watched as untyped objects, and converted to the types of snapshots' fields when it is
// shown, as on a client that is made of a dynamic.Interface. It takes several times the CPU and the memory.
// By default the objects of fields whose Go type the scheme knows are decoded straight from the wire.
func WithUntypedStreams() Option {
	return option(func(o *settings) { o.untyped = true })
}

// WithManagedFields keeps metadata.managedFields in fields of Go types that the scheme knows. By default they are nil there: they are
// often half of an object, few programs need them, and an update without them keeps them on the server.
func WithManagedFields() Option {
	return option(func(o *settings) { o.managedFields = true })
}

// WithPendingWrites caps how many own writes are held for a stream that does not
// show them; past it the stream lists again. Default 10,000.
func WithPendingWrites(most int) Option {
	return option(func(o *settings) { o.streams.PendingMax = most })
}

// WithKindPoll sets how often an optional kind that is not served is looked for.
// Default 2 s.
func WithKindPoll(d time.Duration) Option {
	return option(func(o *settings) { o.streams.KindPoll = d })
}

// WithIdleTimeout sets how long a watch may bring nothing, not even a bookmark (servers send one about
// every minute), before the connection counts as dead: the server is asked how far it is, and
// the watch opened anew. It bounds how long a half-open connection, or a cluster that
// was restored from a backup, can go unnoticed. Default 130 s.
func WithIdleTimeout(d time.Duration) Option {
	return option(func(o *settings) { o.streams.IdleTimeout = d })
}

// WithGrace keeps a stream running for so long after its last user has left. Default 0.
func WithGrace(d time.Duration) Option {
	return option(func(o *settings) { o.streams.Grace = d })
}

// WithInterval sets the least time between two signals of an accumulator. Default
// 1 s. The first change after a quiet interval is signalled at once. Zero signals every change.
func WithInterval(d time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) { w.pace.Interval = max(d, 0) })
}

// WithDebounce holds a signal back until no change has come for the quiet time, but no
// longer than most (0: ten times quiet). Off by default. For [WatchEach], [RunEach] and controllers it is each key's own: a key that changes
// waits until nothing more has changed for it, however much changes for others; what there is at first, and [Partitions.Activate], does not wait.
func WithDebounce(quiet, most time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) { w.pace.Quiet, w.pace.QuietMax = max(quiet, 0), max(most, 0) })
}

// WithQuietOwnWrites keeps the client's own writes from signalling, for a reconciler that
// would wake itself. They are in the next snapshot and its deltas all the same.
func WithQuietOwnWrites() WatchOption {
	return watchOption(func(w *watchSettings) { w.quietOwn = true })
}

// WithInvalid sets a function that is told of each object that a snapshot leaves out. It is
// called from within Update, once per change of the object.
func WithInvalid(f func(Invalid)) WatchOption {
	return watchOption(func(w *watchSettings) { w.invalid = f })
}

// WithTransform sets the [Query.Transform] of queries that have none. Managed fields are often
// half of an object's size, and few programs need them: WithTransform([DropManagedFields]).
func WithTransform(f func(Object) error) WatchOption {
	return watchOption(func(w *watchSettings) { w.transform = f })
}

// WithShown sets a function that is told of each value that enters a snapshot, once: for
// tests that look whether somebody writes to what is shared
// (katestest.DetectMutations).
func WithShown(f func(query string, source Object, value any)) WatchOption {
	return watchOption(func(w *watchSettings) { w.shown = f })
}

// WithOverdue sets how long the first snapshot may take before it is logged what it
// waits for. Default 10 s.
func WithOverdue(d time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) { w.overdue = d })
}
