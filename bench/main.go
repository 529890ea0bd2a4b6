// Command bench compares kates with other ways to keep a complete picture of a cluster: `make
// bench` in the folder above, or
//
//	go run . run -sizes 1000,10000 -runs 5   # measures, and writes RESULTS.md and what belongs to it
//	go run . operator -roots 5000 -runs 3    # measures one operator on several libraries, into the same results
//	go run . gateway -ingresses 1000         # measures one gateway, written in two ways
//	go run . fleet                           # measures a fleet of 200 simulated clusters, and prints the rows for notes.md
//	go run . load -rate 5000 -for 10m        # checks and measures snapshots under a steady load, and prints the rows for notes.md
//	go run . crowd -pods 1000000             # clients of a million pods, into the same results
//	go run . sharded -pods 50000             # replicas that share them, into the same results
//	go run . builds                          # first builds of programs that use the libraries, into the same results
//	go run . derive                          # programs that keep results up to date, into the same results
//	go run . replay                          # plays recordings of a real API server, and prints a table
//	go run . report                          # writes RESULTS.md again, from the raw results
//	go run . profile -sizes 10000            # profiles of kates, at bootstrap and in churn; -consumers: of another one
//
// It starts itself as each of the consumers (`consume NAME`), operators (`operate NAME`), gateways
// (`route NAME`) and programs that keep results up to date (`derived NAME`).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kates-go/kates/bench/internal/campaign"
	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"run": measure, "report": again, "profile": profile, "consume": consume,
		"operator": operators, "operate": operate, "gateway": gateways, "route": route, "fleet": manyClusters, "load": steadyLoad, "replay": replayed, "crowd": crowd, "sharded": sharded, "builds": builds,
		"derive": deriving, "derived": contend,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("say what to do: run, operator, gateway, fleet, load, crowd, sharded, builds, derive, replay, report or profile")
	}
	return commands[args[0]](ctx, args[1:], stdout, stderr)
}

// numbers is a flag of numbers above zero, separated by commas or blanks.
type numbers []int

func (n *numbers) String() string { return strings.Trim(fmt.Sprint([]int(*n)), "[]") }

func (n *numbers) Set(text string) error {
	*n = nil
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		i, err := strconv.Atoi(word)
		if err != nil || i <= 0 {
			return fmt.Errorf("%q is not a number above zero", word)
		}
		*n = append(*n, i)
	}
	return nil
}

// settings are the flags of run and profile.
type settings struct {
	campaign.Options
	out string // the folder of the results
	add bool   // add to the existing results
}

// settingsOf parses these flags.
func settingsOf(name string, args []string, stderr io.Writer) (o settings, err error) {
	sizes, changes, cores := numbers{1000, 10000, 50000}, numbers{1, 10, 100, 1000}, numbers{1, 2, 4}
	flags := newFlags(name, stderr)
	flags.Var(&sizes, "sizes", "numbers of pods")
	flags.Var(&changes, "changes", "numbers of changes that a refresh takes in")
	flags.Var(&cores, "cores", "numbers of cores for the rate of events")
	flags.IntVar(&o.ChangesAt, "changes-at", 10000, "number of pods at which those refreshes are measured")
	flags.IntVar(&o.Runs, "runs", 5, "how often everything is measured")
	flags.IntVar(&o.Updates, "updates", 2000, "updates under a slow reconciler")
	flags.IntVar(&o.Refreshes, "refreshes", 21, "refreshes after one change, per run")
	flags.IntVar(&o.Latencies, "latencies", 200, "writes whose way into a snapshot is timed, per run")
	flags.IntVar(&o.SlowUpTo, "slow-up-to", 10000, "number of pods up to which consumers that make each snapshot anew have everything measured in every run; beyond, start and refreshes in the first")
	flags.IntVar(&o.Events, "events", 60000, "events that are replayed for each number of cores")
	flags.DurationVar(&o.Budget, "budget", 15*time.Second, "time for the refreshes, and for the latencies, of a slow consumer in a run")
	flags.DurationVar(&o.Settle, "settle", 100*time.Millisecond, "time that a change has to reach a consumer before a refresh is timed")
	consumers := flags.String("consumers", "", "which consumers (default: all)")
	flags.BoolVar(&o.add, "add", false, "keep what the results there have of other sizes, and of events per second if -cores is empty")
	if err := flags.parseMeasuring(args, &o.Note); err != nil {
		return o, err
	}
	o.out = flags.out
	o.Sizes, o.Changes, o.Cores, o.Log = sizes, changes, cores, stderr
	if o.Strict = flags.smoke; o.Strict {
		o.Sizes, o.Changes, o.ChangesAt, o.Cores, o.Runs = []int{40}, []int{1, 10}, 40, []int{2}, 1
		o.Updates, o.Refreshes, o.Latencies, o.Events, o.Settle = 60, 2, 3, 600, 50*time.Millisecond
	}
	if len(o.Sizes) == 0 || o.Runs < 1 || o.Updates < 1 || o.Refreshes < 1 || o.Latencies < 1 || o.Events < 1 {
		return o, errors.New("sizes, runs, updates, refreshes, latencies and events must be above zero")
	}
	o.Consumers, err = consumer.Select(*consumers)
	return o, err
}

// measure runs the campaign and writes its results.
func measure(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := settingsOf("run", args, stderr)
	if err != nil {
		return err
	}
	old, err := report.ReadFrom(o.out)
	switch {
	case err == nil:
	case o.add || !errors.Is(err, os.ErrNotExist):
		return err
	default:
		old = new(report.Results)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	r, err := campaign.Run(ctx, o.Options)
	if err != nil {
		// This may have taken hours, so the incomplete results are kept.
		return errors.Join(err, r.Write(filepath.Join(o.out, "incomplete.json")))
	}
	r.Operators, r.Gateways, r.Apart = old.Operators, old.Gateways, old.Apart // other commands measure them
	if o.add {
		r.Keep(old)
	}
	if err := report.WriteAll(r, titles(), o.out); err != nil || !o.Strict {
		return err
	}
	return report.Check(r)
}

// again writes the report from the raw results.
func again(_ context.Context, args []string, _, stderr io.Writer) error {
	flags := newFlags("report", stderr)
	out := flags.String("out", ".", "folder of the results")
	if err := flags.parse(args); err != nil {
		return err
	}
	r, err := report.ReadFrom(*out)
	if err != nil {
		return err
	}
	return report.WriteAll(r, titles(), *out)
}

// titles returns the names for people of all that is measured, in order.
func titles() report.Titles {
	all := report.Titles{Operators: operatorTitles(), Gateways: gatewayTitles(), Builds: buildTitles(), Derived: derivedTitles}
	for _, v := range consumer.Variants {
		all.Consumers = append(all.Consumers, report.Title{Consumer: v.Name, Text: v.Title, Minor: v.BootstrapOnly && !v.Shared, Fields: v.Fields})
	}
	return all
}

// profile writes profiles to a new folder, and prints its name.
func profile(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := settingsOf("profile", args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kates-profiles-*")
	if err != nil {
		return err
	}
	if err := campaign.Profile(ctx, o.Options, dir); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "go tool pprof -top %s/bootstrap.cpu   # also bootstrap.heap, churn.cpu, churn.heap\n", dir)
	return nil
}

// consume is the process of a consumer.
func consume(ctx context.Context, args []string, stdout, _ io.Writer) error {
	return serve(ctx, "consume: name one consumer", args, consumer.ByName, consumer.Serve, stdout)
}

// serve runs the one that args name, on the server that the environment names. It takes commands
// from the standard input.
func serve[V any](
	ctx context.Context, usage string, args []string, byName func(string) (V, error),
	run func(context.Context, V, *rest.Config, io.Reader, io.Writer) error, stdout io.Writer,
) error {
	v, err := named(usage, args, byName)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(campaign.KubeconfigEnv))
	if err != nil {
		return err
	}
	return run(ctx, v, config, os.Stdin, stdout)
}

// named returns the one that the only argument names.
func named[V any](usage string, args []string, byName func(string) (V, error)) (v V, err error) {
	if len(args) != 1 {
		return v, errors.New(usage)
	}
	return byName(args[0])
}
