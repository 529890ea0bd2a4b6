package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/examples/snapwatch/output"
	"github.com/kates-go/kates/examples/snapwatch/screen"
	"github.com/kates-go/kates/examples/snapwatch/until"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/page"
)

// errInterrupted is ctrl-C in the full screen, where it is a key and no signal.
var errInterrupted = errors.New("interrupted")

// errIncomplete is --once with kinds that are missing or forbidden.
var errIncomplete = errors.New("not all kinds are in the snapshot")

// view is what the flags want to see.
type view struct {
	condition *until.Condition // nil without --for
	printer   output.Printer   // nil without -o
	full      bool             // the full screen
}

// view reads the flags.
func (o *options) view(s streams) (v view, err error) {
	if o.condition != "" {
		if v.condition, err = until.Parse(o.condition); err != nil {
			return v, err
		}
	}
	if o.output.Given() {
		o.output.Once = o.once || v.condition != nil
		if v.printer, err = o.output.Printer(); err != nil {
			return v, err
		}
	}
	v.full = !o.plain && !o.once && v.condition == nil && v.printer == nil && terminal(s.in) && terminal(s.out)
	return v, nil
}

// whole reports whether more than the metadata of objects is needed. Without it nothing else is
// sent, held and seen: least of all the data of Secrets.
func (v view) whole(o *options) bool {
	return o.record != "" || o.serve != "" || o.replay != "" ||
		(v.printer != nil && v.printer.Whole()) || (v.condition != nil && v.condition.Whole())
}

func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// run does what the flags say.
func (s streams) run(ctx context.Context, o *options, args []string) (err error) {
	v, err := o.view(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var warnings io.Writer
	if !v.full {
		warnings = s.err
	}
	var status *page.Page
	if o.serve != "" {
		status = page.New()
		defer status.Close()
		o.more = append(o.more, kates.WithObserver(status))
	}
	c, err := o.connect(warnings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var served *server
	if o.serve != "" {
		if served, err = serve(ctx, o.serve, handlerOf(c.client, status)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, served.close()) }()
	}
	kinds, err := o.kinds(ctx, c, v, args)
	if err != nil {
		return err
	}
	w, err := open(ctx, c.client, kinds)
	if err != nil {
		return err
	}
	defer w.acc.Close()
	w.ended = c.played(ctx)
	where := strings.TrimSpace(c.where + "  " + o.scope(c))
	if v.full {
		return s.screen(ctx, o, w, served, where)
	}
	if served != nil {
		fmt.Fprintln(s.err, "Serving "+served.url)
	}
	return s.print(ctx, o, v, w)
}

// kinds makes queries of the arguments.
func (o *options) kinds(ctx context.Context, c *connection, v view, args []string) ([]*kind, error) {
	if o.replay != "" && len(args) == 0 || o.replay != "" && !o.narrowed() {
		var wanted []asked
		if len(args) > 0 {
			var err error
			if wanted, err = parseKinds(args); err != nil {
				return nil, err
			}
		}
		return recordedQueries(ctx, c.client, o.replay, wanted, o.selection(c, v))
	}
	all, err := parseKinds(args)
	if err != nil {
		return nil, err
	}
	return resolve(ctx, c.client, all, o.selection(c, v))
}

// narrowed reports whether flags say which objects are wanted. A replay without has those that
// were recorded.
func (o *options) narrowed() bool {
	return o.namespaceGiven || o.allNamespaces || o.labels != "" || o.fields != ""
}

func (o *options) selection(c *connection, v view) selection {
	s := selection{
		namespace: o.namespace(c), labels: o.labels, fields: o.fields, unknownToo: o.unknownToo,
		metadataOnly: !v.whole(o),
	}
	if !o.output.ManagedFields {
		s.transform = kates.DropManagedFields
	}
	return s
}

// scope says which objects, for people.
func (o *options) scope(c *connection) string {
	text := "all namespaces"
	if ns := o.namespace(c); ns != "" {
		text = "namespace " + ns
	}
	if o.replay != "" && !o.narrowed() {
		text = ""
	}
	for _, s := range []string{o.labels, o.fields} {
		if s != "" {
			text += "  " + s
		}
	}
	return text
}

// print follows the watch without a full screen.
func (s streams) print(ctx context.Context, o *options, v view, w *watch) error {
	told := newProgress(s.err, time.Now())
	limit := o.deadline(time.Now())
	var wait *waiter
	if v.condition != nil {
		wait = &waiter{condition: v.condition, printer: v.printer, out: s.out, deadline: limit, once: o.timeout == 0}
	}
	return w.follow(ctx, func(f frame) (bool, error) {
		told.note(f.picture)
		switch {
		case wait != nil:
			return wait.see(w, f)
		case f.snapshot == nil && o.once && !f.at.Before(limit):
			return true, fmt.Errorf("timed out: %w", w.incomplete())
		case f.snapshot == nil:
			return f.over, nil
		}
		if err := s.show(v, f); err != nil {
			return true, err
		}
		if o.once {
			return true, absent(f)
		}
		return f.over, nil
	})
}

// absent is the error of a snapshot without some of its kinds, as kubectl get fails for these.
func absent(f frame) error {
	for _, k := range f.picture.Kinds {
		if !k.Known {
			return fmt.Errorf("%w: %s: %s", errIncomplete, k.Name, k.State) // why was told already
		}
	}
	return nil
}

// show prints one snapshot.
func (s streams) show(v view, f frame) error {
	if v.printer != nil {
		return v.printer.Print(s.out, *f.snapshot)
	}
	_, err := fmt.Fprintln(s.out, line(f.picture))
	return err
}

// deadline is when to give up.
func (o *options) deadline(now time.Time) time.Time {
	switch {
	case o.once && !o.timedGiven || o.timeout < 0:
		return now.Add(week)
	case o.timeout == 0:
		return now.Add(first)
	default:
		return now.Add(o.timeout)
	}
}

// screen follows the watch in a full screen.
func (s streams) screen(ctx context.Context, o *options, w *watch, served *server, where string) error {
	klog.SetLogger(klog.Logger{}) // what libraries log would be in the middle of the screen
	options := screen.Options{Where: where, Color: o.colors()}
	if served != nil {
		options.Page = served.url
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	model := screen.New(options)
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(s.in), tea.WithOutput(s.out),
		tea.WithoutSignalHandler())
	followed := make(chan struct{})
	go func() { // until the program ends, which cancels ctx
		defer close(followed)
		err := w.follow(ctx, func(f frame) (bool, error) {
			program.Send(screen.Frame{Picture: f.picture, Over: f.over})
			return false, nil
		})
		if err != nil {
			program.Send(screen.Failed{Err: err})
		}
	}()
	_, err := program.Run()
	over := ctx.Err() != nil // before it is cancelled here
	cancel()
	<-followed
	switch {
	case model.Interrupted:
		return errInterrupted
	case model.Err != nil:
		return model.Err
	case over: // a signal
		return nil
	}
	return err
}
