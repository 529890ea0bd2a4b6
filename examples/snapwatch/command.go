package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/examples/snapwatch/output"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/configflags"
)

// options are the flags.
type options struct {
	config *configflags.ConfigFlags
	output *output.Flags
	narrowing
	recording

	once, plain, noColor bool
	condition            string
	timeout, interval    time.Duration
	timedGiven           bool // --timeout is given
	serve                string
	// more are options of the client that no flag sets.
	more []kates.Option
}

// narrowing are the flags that say which objects.
type narrowing struct {
	labels, fields string
	allNamespaces  bool
	namespaceGiven bool
	unknownToo     bool // --ignore-not-found
}

// recording are the flags about recordings.
type recording struct{ record, replay, speed string }

// streams are where a program reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

const long = `Watch many kinds of objects at once, in coherent snapshots.

A snapshot has all kinds as they were at one time, and is complete: the first one comes when every
kind is listed. What changes faster than snapshots are shown is coalesced, so the newest state is
never late. In a terminal it is a full screen; in a pipe, a line for each snapshot. With -o each
snapshot is printed as kubectl prints a list; -o deltas prints what has changed.

The arguments are kinds, in any form that kubectl takes, and TYPE/NAME for single objects.

A kind that is forbidden or stops being served does not hold the others up: its state says so.

Exit codes: 0 if all is well, also after q in the full screen; 1 after an error, and when --for has
timed out; 130 after ctrl-C, and 128 plus the number of other signals.`

const examples = `  # Services, deployments and pods of a namespace, in a full screen
  %[1]s svc deploy pods -n prod

  # A line for each snapshot
  %[1]s svc,deploy,pods -n prod --plain

  # What changes, in all namespaces, of what has a label
  %[1]s deploy,pods -A -l app=web -o deltas

  # The names of the pods of each snapshot
  %[1]s pods -o jsonpath='{.items[*].metadata.name}'

  # One complete snapshot, then end
  %[1]s svc,deploy,pods --once -o yaml

  # Wait until all deployments are available, and all pods ready, at the same time
  %[1]s deploy,statefulsets --for=condition=Available --timeout=5m
  %[1]s deploy/web pods --for=current

  # Record what is seen, and look at it again without a cluster
  %[1]s svc,deploy,pods -A --record rollout.recording
  %[1]s --replay rollout.recording

  # The status page of the client, on this machine only
  %[1]s svc,deploy,pods -A --serve :8080`

// newCommand makes the command. Its work is in run, with the kinds as arguments.
func newCommand(name string, run func(ctx context.Context, o *options, args []string) error) (*cobra.Command, *options) {
	o := &options{config: configflags.NewConfigFlags(true), output: output.NewFlags()}
	o.config.CacheDir = nil // the client keeps discovery in memory
	cmd := &cobra.Command{
		Use:           "snapwatch [flags] (TYPE | TYPE/NAME)...",
		Short:         "Watch many kinds of objects at once, in coherent snapshots",
		Long:          long,
		Example:       fmt.Sprintf(examples, name),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.namespaceGiven = cmd.Flags().Changed("namespace")
			o.timedGiven = cmd.Flags().Changed("timeout")
			if err := o.check(args); err != nil {
				return err
			}
			return run(cmd.Context(), o, args)
		},
	}
	// The completion command of cobra must not be taken for a kind, and is one word.
	cmd.CompletionOptions.HiddenDefaultCmd = false
	o.config.AddFlags(cmd.Flags())
	o.output.AddFlags(cmd)
	o.addFlags(cmd)
	o.complete(cmd)
	return cmd, o
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.labels, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'. For all kinds.")
	f.StringVar(&o.fields, "field-selector", "",
		"Selector (field query) to filter on. For all kinds: the server supports only some fields of each.")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If present, watch the objects of all namespaces.")
	f.BoolVar(&o.unknownToo, "ignore-not-found", false,
		"Watch kinds that the server does not serve yet, too: they are missing until it does.")
	f.BoolVar(&o.once, "once", false, "Print the first complete snapshot, and end.")
	f.BoolVar(&o.plain, "plain", false, "Print a line for each snapshot, also in a terminal.")
	f.BoolVar(&o.noColor, "no-color", false, "No colours. So does the environment variable NO_COLOR.")
	f.StringVar(&o.condition, "for", "",
		"Wait for a snapshot in which all objects satisfy a condition: one of condition=NAME[=VALUE], "+
			"jsonpath={PATH}[=VALUE], create, delete, current. Current is as the object's spec wants it.")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second,
		"With --for or --once: how long to wait. Zero means check once, negative means a week. With --once the default is no bound.")
	f.DurationVar(&o.interval, "interval", time.Second, "The least time between two snapshots.")
	f.StringVar(&o.record, "record", "", "Record what is read from the server to a file. The data of Secrets stays out of it.")
	f.StringVar(&o.replay, "replay", "",
		"Replay a recording, without a cluster. Without kinds, all that was recorded is shown.")
	f.StringVar(&o.speed, "speed", "1", "The speed of a replay: a number, or fastest.")
	f.StringVar(&o.serve, "serve", "",
		"Serve the status page of the client at this address. :8080 is on this machine only; 0.0.0.0:8080 is for all.")
	for _, name := range []string{"record", "replay"} {
		if err := cmd.MarkFlagFilename(name); err != nil {
			panic(err) // a flag of this program does not exist
		}
	}
}

// check refuses flags that do not go together.
func (o *options) check(args []string) error {
	switch {
	case o.record != "" && o.replay != "":
		return errors.New("--record and --replay cannot be used together")
	case o.once && o.condition != "":
		return errors.New("--once and --for cannot be used together: --for ends with the snapshot that satisfies it")
	case o.timedGiven && !o.once && o.condition == "":
		return errors.New("--timeout is for --for and --once")
	case o.interval <= 0:
		return fmt.Errorf("--interval=%s is not a time above 0", o.interval)
	case o.plain && o.output.Given():
		return errors.New("--plain and -o cannot be used together")
	case len(args) == 0 && o.replay == "":
		return errNoKinds
	}
	if n := o.config.Namespace; n != nil && *n != "" && !o.allNamespaces {
		if wrong := validation.IsDNS1123Label(*n); len(wrong) > 0 {
			return fmt.Errorf("invalid namespace %q: %s", *n, wrong[0])
		}
	}
	return nil
}

// namespace is where objects are watched; empty for all.
func (o *options) namespace(c *connection) string {
	if o.allNamespaces {
		return ""
	}
	return c.namespace
}

// Run runs the program with its arguments, its name included, until it is done or the context
// ends. It returns the exit code.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	s := streams{in: in, out: out, err: errOut}
	return execute(ctx, args, s, nil)
}

// execute is Run. The function may change the options before the program runs.
func execute(ctx context.Context, args []string, s streams, change func(*options)) int {
	name := nameOf(args)
	cmd, o := newCommand(name, s.run)
	if change != nil {
		change(o)
	}
	cmd.SetArgs(oneDash(args[1:]))
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage", err, name)
	})
	err := cmd.ExecuteContext(ctx)
	var sig signalled
	switch {
	case errors.Is(err, errInterrupted):
		return 130
	case errors.As(context.Cause(ctx), &sig):
		return 128 + int(sig)
	case err != nil:
		fmt.Fprintln(s.err, message(err))
		return 1
	}
	return 0
}

// nameOf is how the program was called: a plugin of kubectl says so.
func nameOf(args []string) string {
	if strings.HasPrefix(filepath.Base(args[0]), "kubectl-") {
		return "kubectl snapwatch"
	}
	return "snapwatch"
}

// oneDash lets the long flags of recordings and the page be written with one dash. Without this
// -serve would be -s erve: the address of a server.
func oneDash(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(arg, "=")
		if slices.Contains([]string{"-record", "-replay", "-serve"}, name) {
			args[i] = "-" + arg
		}
	}
	return args
}

// message is an error as kubectl prints it. What a server says is told from what went wrong here.
func message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Reason != "" {
		return plain.Line(fmt.Sprintf("Error from server (%s): %s", status.Status().Reason, status.Status().Message))
	}
	lines := strings.Split("error: "+err.Error(), "\n")
	for i := range lines {
		lines[i] = plain.Line(lines[i])
	}
	return strings.Join(lines, "\n")
}

// colors reports whether colours are wanted: https://no-color.org.
func (o *options) colors() bool {
	return !o.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
