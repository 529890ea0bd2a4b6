package kates

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/lockorder"
)

// An Option configures a client when it is made. One that makes no sense (a negative time) is an
// error of the constructor.
type Option interface{ applyToClient(*settings) }

// A WatchOption configures the watches of a client. Given to a constructor, it is the client's
// default. Given to [Client.With], it holds for the client that With returns, and one that makes
// no sense is an error of each Watch of that client. Given to [Run], it holds for that run.
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

	wrong error // the first option that makes no sense
}

type watchSettings struct {
	pace     collect.Pace
	quietOwn bool
	invalid  func(Invalid)
	// transform is for queries without one.
	transform func(Object) error
	shown     func(query string, source Object, value any)
	overdue   time.Duration
	wrong     error // the first option that makes no sense
}

// least0 returns an error if the argument of an option is negative, unless an option before was
// wrong. zero says what 0 means.
func least0[N int | int64 | time.Duration](before error, option string, n N, zero string) error {
	if before == nil && n < 0 {
		return fmt.Errorf("%s is %v: it cannot be negative; 0 %s", option, n, zero)
	}
	return before
}

// lockedSettings lets MaxAccumulatorInterval change what Watch reads.
type lockedSettings struct {
	mu lockorder.Mutex[lockorder.WatchSettings]
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

// WithScheme sets the scheme that maps Go types to kinds. Default: client-go's, with all built-in
// kinds.
func WithScheme(s *runtime.Scheme) Option { return option(func(o *settings) { o.scheme = s }) }

// WithRESTMapper sets the mapper from kinds to resources. It replaces discovery.
func WithRESTMapper(m meta.RESTMapper) Option { return option(func(o *settings) { o.mapper = m }) }

// WithNamespace sets the default namespace of Create, Get and the like. It is used for objects of
// namespaced kinds that name none. Queries do not use it. Default: "default".
func WithNamespace(namespace string) Option {
	return option(func(o *settings) { o.namespace = namespace })
}

// WithLogger sets the logger for state transitions, each of which is logged once. Those that keep
// a program from starting, and those that need somebody to act, are logged as errors. Those that
// pass by themselves are information; so is an optional kind that is refused or not served.
// Warnings of the server (deprecated versions, unknown fields) are logged as information, each
// once, unless the REST configuration has a handler of its own. Default: slog.Default.
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

// WithRateLimit limits the requests per second of the client, with bursts. It replaces the limit
// of the REST configuration. A qps below zero is no limit. By default there is none: the server
// has priority and fairness.
func WithRateLimit(qps float32, burst int) Option {
	return option(func(o *settings) {
		o.qps, o.burst = qps, burst
		o.wrong = least0(o.wrong, "the burst of WithRateLimit", burst, "is client-go's default, 10")
	})
}

// WithPagedLists fetches all initial lists in pages of a number of objects (0: 500). By default,
// lists for fields of Go types that the scheme knows come in pages, decoded one object at a time,
// and all others are streamed (KEP-3157). Both are consistent. Pages cost the server and the
// client less CPU. For untyped objects, streams save the client the memory of a page.
func WithPagedLists(size int64) Option {
	return option(func(o *settings) {
		o.streams.StreamLists, o.streamLists, o.streams.PageSize = false, false, size
		o.wrong = least0(o.wrong, "WithPagedLists", size, "is 500")
	})
}

// WithStreamedLists fetches all initial lists as a stream of events (KEP-3157); see
// [WithPagedLists].
func WithStreamedLists() Option {
	return option(func(o *settings) { o.streams.StreamLists, o.streamLists = true, true })
}

// WithCompressedLists lets the server compress large answers, above all lists, as it does for
// client-go's clients that do not stream their lists. An answer has a few times fewer bytes. A
// list takes a fifth more CPU here, and a multiple of that at the server. It pays over a slow
// network. By default nothing is compressed.
func WithCompressedLists() Option {
	return option(func(o *settings) { o.compressed = true })
}

// WithUntypedStreams watches everything as untyped objects, and converts them to the types of the
// snapshots' fields when they are shown. So does a client that is made from a dynamic.Interface.
// It takes several times the CPU and the memory. By default, objects of fields whose Go type the
// scheme knows are decoded directly from the wire.
func WithUntypedStreams() Option {
	return option(func(o *settings) { o.untyped = true })
}

// WithManagedFields keeps metadata.managedFields in fields of Go types that the scheme knows. By
// default they are nil there: they are often half of an object, few programs need them, and an
// update without them keeps them on the server.
func WithManagedFields() Option {
	return option(func(o *settings) { o.managedFields = true })
}

// WithPendingWrites limits how many own writes are held for a stream that does not show them yet.
// Past the limit the stream lists again. Default 10,000.
func WithPendingWrites(most int) Option {
	return option(func(o *settings) {
		o.streams.PendingMax = most
		o.wrong = least0(o.wrong, "WithPendingWrites", most, "is the default, 10,000")
	})
}

// WithKindPoll sets how often the client looks for an optional kind that is not served. Default 2
// s.
func WithKindPoll(d time.Duration) Option {
	return option(func(o *settings) {
		o.streams.KindPoll = d
		o.wrong = least0(o.wrong, "WithKindPoll", d, "is the default, 2s")
	})
}

// WithIdleTimeout sets how long a watch may bring nothing before the connection counts as dead.
// Servers send a bookmark about every minute. Then the server is asked for its newest version,
// and the watch is opened again. This bounds how long a half-open connection, or a cluster that
// was restored from a backup, stays unnoticed. Default 130 s.
func WithIdleTimeout(d time.Duration) Option {
	return option(func(o *settings) {
		o.streams.IdleTimeout = d
		o.wrong = least0(o.wrong, "WithIdleTimeout", d, "is the default, 130s")
	})
}

// WithGrace sets how long a stream runs on after its last user has left. Default 0.
func WithGrace(d time.Duration) Option {
	return option(func(o *settings) {
		o.streams.Grace = d
		o.wrong = least0(o.wrong, "WithGrace", d, "ends it at once")
	})
}

// WithInterval sets the least time between two signals of an accumulator. Default 1 s. The first
// change after a quiet interval is signalled at once. Zero signals every change.
func WithInterval(d time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) {
		w.pace.Interval = d
		w.wrong = least0(w.wrong, "WithInterval", d, "signals every change")
	})
}

// WithDebounce delays a signal until no change has come for the quiet time, but no longer than
// most (0: ten times quiet). Off by default. For [WatchEach], [RunEach] and controllers each key
// has its own delay: a key that changes waits until nothing more has changed for it, however much
// changes for others. The first turn of a key, and [Partitions.Trigger], do not wait.
func WithDebounce(quiet, most time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) {
		w.pace.Quiet, w.pace.QuietMax = quiet, most
		w.wrong = least0(w.wrong, "the quiet time of WithDebounce", quiet, "is off")
		w.wrong = least0(w.wrong, "the longest delay of WithDebounce", most, "is ten times quiet")
	})
}

// WithQuietOwnWrites suppresses the signals of the client's own writes, for a reconciler that
// would wake itself. They are in the next snapshot and its deltas all the same.
func WithQuietOwnWrites() WatchOption {
	return watchOption(func(w *watchSettings) { w.quietOwn = true })
}

// WithInvalid sets a function that is called for each object that a snapshot leaves out. Update
// calls it, once per change of the object.
func WithInvalid(f func(Invalid)) WatchOption {
	return watchOption(func(w *watchSettings) { w.invalid = f })
}

// WithTransform sets the [Query.Transform] of queries that have none. Managed fields are often
// half of an object's size, and few programs need them: WithTransform([DropManagedFields]).
func WithTransform(f func(Object) error) WatchOption {
	return watchOption(func(w *watchSettings) { w.transform = f })
}

// WithShown sets a function that is called once for each value that enters a snapshot, or that a
// lister ([NewLister]) hands out. It is for tests that detect writes to shared objects
// (katestest.DetectMutations).
func WithShown(f func(query string, source Object, value any)) WatchOption {
	return watchOption(func(w *watchSettings) { w.shown = f })
}

// WithOverdue sets how long the first snapshot may take before the log says what it waits for.
// Default 10 s.
func WithOverdue(d time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) {
		w.overdue = d
		w.wrong = least0(w.wrong, "WithOverdue", d, "is the default, 10s")
	})
}

// warnings logs what an API server warns of: a deprecated version, a field that it does not know.
// Each text is logged once, because the server repeats it with each request. See
// https://kubernetes.io/blog/2020/09/03/warnings/
type warnings struct {
	log    logr.Logger
	logged sync.Map // texts
	texts  atomic.Int64
}

// mostWarnings is how many texts are remembered. Texts may quote what was sent, so there is no
// end of them.
const mostWarnings = 1000

// HandleWarningHeader implements rest.WarningHandler. Only 299 is a warning of the server.
func (w *warnings) HandleWarningHeader(code int, _ string, text string) {
	if code != 299 || text == "" {
		return
	}
	if _, known := w.logged.Load(text); known {
		return
	}
	if w.texts.Load() < mostWarnings {
		if _, known := w.logged.LoadOrStore(text, true); known {
			return
		}
		w.texts.Add(1)
	}
	w.log.Info("the server warns", "warning", text)
}
