package kates

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/client/connection"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
)

// An Option configures a client when it is made. One that makes no sense (nil, a negative time) is
// an error of the constructor.
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
	warnings     *connection.Warnings // of the server
	fieldManager string
	qps          float32
	burst        int
	streams      stream.Config
	watch        watchSettings
	observers    []Observer
	observing    *observers // these, once they were asked for
	cluster      string     // its name for observers

	untyped, managedFields, streamLists, compressed bool

	maxObjectBytes int64         // 0: defaultMaxObjectBytes
	hang           time.Duration // 0: defaultHang

	refusal
}

// apply applies an option.
func (s *settings) apply(o Option) {
	if o == nil {
		s.reject(errors.New("an option is nil"))
	} else if !s.watch.applyInner(o) {
		o.applyToClient(s)
	}
}

type watchSettings struct {
	pace     collect.Pace
	quietOwn bool
	invalid  func(Invalid)
	// transform is for queries without one.
	transform Transform
	witness   func(watch string) collect.Witness // nil: there is none
	noted     *atomic.Bool                       // see collect.Options
	overdue   time.Duration
	name      string // "": by what is watched
	refusal
}

// refusal is the first option that makes no sense.
type refusal struct{ wrong error }

func (r *refusal) reject(err error) { r.wrong = cmp.Or(r.wrong, err) }

// least0 refuses a negative argument of an option. zero says what 0 means.
func least0[N int | int64 | time.Duration](r *refusal, option string, n N, zero string) {
	if n < 0 {
		r.reject(fmt.Errorf("%s is %v: it cannot be negative; 0 %s", option, n, zero))
	}
}

// apply applies an option.
func (w *watchSettings) apply(o WatchOption) {
	if o == nil {
		w.reject(errors.New("an option of With is nil"))
	} else if !w.applyInner(o) {
		o.applyToWatch(w)
	}
}

// applyInner applies an option of the library's own packages. It returns false for any other.
func (w *watchSettings) applyInner(o Option) bool {
	switch o := o.(type) {
	case collect.WitnessOption:
		w.witness = o.Witness
	case collect.NotedOption:
		w.noted = o.Noted()
		o.Witnessed(w.witness)
	default:
		return false
	}
	return true
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

// senseless is an option that makes no sense. The text says what does.
func senseless(text string) Option {
	return option(func(s *settings) { s.reject(errors.New(text)) })
}

type watchOption func(*watchSettings)

func (o watchOption) applyToClient(s *settings)     { o(&s.watch) }
func (o watchOption) applyToWatch(w *watchSettings) { o(w) }
func (o watchOption) applyToRun(r *runSettings)     { r.watch = append(r.watch, o) }

// WithScheme sets the scheme that maps Go types to kinds. Default: client-go's, with all built-in
// kinds. It is replaced, not added to: a scheme of your own needs client-go's types, too, if the
// program uses them.
//
//	s := runtime.NewScheme()
//	_ = clientgoscheme.AddToScheme(s) // k8s.io/client-go/kubernetes/scheme
//	_ = v1alpha1.AddToScheme(s)
//	client, err := kates.NewClient(config, kates.WithScheme(s))
//
// In tests, katestest.WithScheme is another option: it adds types to client-go's.
func WithScheme(s *runtime.Scheme) Option {
	if s == nil {
		return senseless("WithScheme(nil): without the option it is client-go's scheme")
	}
	return option(func(o *settings) { o.scheme = s })
}

// WithRESTMapper sets the mapper from kinds to resources. It replaces discovery.
func WithRESTMapper(m meta.RESTMapper) Option {
	if m == nil {
		return senseless("WithRESTMapper(nil): without the option the server is asked")
	}
	return option(func(o *settings) { o.mapper = m })
}

// WithNamespace sets the default namespace of Create, Get and the like. It is used for objects of
// namespaced kinds that name none. Queries do not use it. Default: "default".
func WithNamespace(namespace string) Option {
	return option(func(o *settings) { o.namespace = namespace })
}

// WithLogger sets the logger for state transitions, each of which is logged once. Those that keep
// a program from starting, and those that need somebody to act, are logged as errors. Those that
// pass by themselves are information; so is an optional kind that is refused or not served.
// Warnings of the server (deprecated versions, unknown fields) are logged as information, each
// once, unless the REST configuration has a handler of its own. Default: slog.Default. For a
// logr.Logger l use slog.New(logr.ToSlogHandler(l)).
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		return senseless("WithLogger(nil): slog.New(slog.DiscardHandler) silences the client")
	}
	return option(func(o *settings) { o.log = logr.FromSlogHandler(l.Handler()) })
}

// WithFieldManager sets the field manager of all writes (see
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers): at most 128 bytes
// of printable characters. [FieldManager] sets it for one write. Default: "kates" for Apply; for
// other writes the server's own choice.
func WithFieldManager(name string) Option {
	return option(func(o *settings) {
		o.fieldManager = name
		o.reject(managerName(name))
	})
}

// managerName returns an error for a field manager that a server refuses.
func managerName(name string) error {
	if len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("the field manager %q: a name has at most 128 bytes, all of printable characters", name)
	}
	return nil
}

// WithRateLimit limits the requests per second of the client, with bursts. It replaces the limit
// of the REST configuration. A qps below zero is no limit, zero is an error. By default there is
// no limit: the server has priority and fairness.
func WithRateLimit(qps float32, burst int) Option {
	return option(func(o *settings) {
		o.qps, o.burst = qps, burst
		if qps == 0 {
			o.reject(errors.New("WithRateLimit(0, …) would allow no request: below 0 there is no limit"))
		}
		least0(&o.refusal, "the burst of WithRateLimit", burst, "is client-go's default, 10")
	})
}

// WithMaxObjects bounds the memory of a client's watches, so that a cluster with far more objects
// than expected cannot take the process down. n is how many objects all watches of the client
// together may hold, those of lists under way included. By default, and with 0, there is no bound
// for all together, and each watch may have ten million: no server stores as many. A negative n is
// an error.
//
// A list that would be more is not read any further, and a watch ends at the object that would be
// one too many. What is shown stays, deletions are not seen either, and [QueryStatus] has the
// error until there is room: the list is tried again with growing pauses, up to about half a
// minute. A query that was never complete stays incomplete: no snapshot has a part of it. Who has
// room keeps it: the client's other watches go on.
//
// Objects are counted, not bytes. One that several queries have from one watch counts once, and
// from two watches twice. While a watch lists again, the larger of what it holds and what it has
// read counts; both are in memory. A query that is replaced while it is shown needs room for both,
// old and new. A page of a list that is decoded as a whole (untyped objects, metadata) is read
// before it is counted. Own writes that the watch has not shown yet are always shown, and do not
// count; [Tuning].PendingWrites bounds them. Choose n well above what is normal.
func WithMaxObjects(n int) Option {
	return option(func(o *settings) {
		o.streams.ObjectsMax = n
		least0(&o.refusal, "WithMaxObjects", n, "is no bound")
	})
}

// WithManagedFields keeps metadata.managedFields in fields of Go types that the scheme knows. By
// default they are nil there: they are often half of an object, few programs need them, and an
// update without them keeps them on the server.
func WithManagedFields() Option {
	return option(func(o *settings) { o.managedFields = true })
}

// WithInterval sets the least time between two signals of an accumulator. Default 1 s. The first
// change after a quiet interval is signalled at once. Zero signals every change.
func WithInterval(d time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) {
		w.pace.Interval = d
		least0(&w.refusal, "WithInterval", d, "signals every change")
	})
}

// WithDebounce delays a signal until no change has come for the quiet time, but no longer than
// most, which is not less (0: ten times quiet). Off by default, and with two zeros. For
// [WatchEach], [RunEach] and controllers each key has its own delay: a key that changes waits
// until nothing more has changed for it, however much changes for others. The first turn of a key,
// and [Partitions.Trigger], do not wait.
func WithDebounce(quiet, most time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) {
		w.pace.Quiet, w.pace.QuietMax = quiet, most
		least0(&w.refusal, "the quiet time of WithDebounce", quiet, "is off")
		least0(&w.refusal, "the longest delay of WithDebounce", most, "is ten times quiet")
		if most != 0 && most < quiet {
			w.reject(fmt.Errorf("the longest delay of WithDebounce is %s, and its quiet time %s: it cannot be less; 0 is ten times quiet", most, quiet))
		}
		if most != 0 && quiet == 0 {
			w.reject(fmt.Errorf("WithDebounce(0, %s) has no quiet time: WithDebounce(0, 0) is off", most))
		}
	})
}

// WithQuietOwnWrites suppresses the signals of the client's own writes, for a reconciler that
// would wake itself. They are in the next snapshot and its deltas all the same.
func WithQuietOwnWrites() WatchOption {
	return watchOption(func(w *watchSettings) { w.quietOwn = true })
}

// WithOnInvalid sets a function that is called for each object that a snapshot leaves out, once per
// change of the object or of the reason. Update calls it, or, in a loop over keys, a goroutine of
// the loop: the function must not close the watch or the client.
func WithOnInvalid(f func(Invalid)) WatchOption {
	return watchOption(func(w *watchSettings) { w.invalid = f })
}

// WithTransform sets the [Query.Transform] of queries that have none. Managed fields are often
// half of an object's size, and few programs need them: WithTransform([DropManagedFields]).
func WithTransform(t Transform) WatchOption {
	return watchOption(func(w *watchSettings) { w.transform = t })
}

// WithOverdue sets how long the first snapshot may take before the log says what it waits for.
// Default 10 s.
func WithOverdue(d time.Duration) WatchOption {
	return watchOption(func(w *watchSettings) {
		w.overdue = d
		least0(&w.refusal, "WithOverdue", d, "is the default, 10s")
	})
}
