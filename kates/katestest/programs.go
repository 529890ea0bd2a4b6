package katestest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/tested"
	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest/internal/trial"
)

// Program is a program under test: an operator, one loop of [kates.Run], a controller. It makes
// its clients from the configuration, runs until ctx ends, and closes them. A program that has
// done all its work may return nil earlier.
//
//	program := func(ctx context.Context, config *rest.Config) error {
//		client, err := kates.NewClientFromRESTConfig(config)
//		if err != nil {
//			return err
//		}
//		defer client.Close()
//		return kates.Run(ctx, client, rebuild)
//	}
type Program = func(ctx context.Context, config *rest.Config) error

// Running is a program that a test has started.
type Running struct {
	t       testing.TB
	run     *trial.Run
	options []ProgramOption
}

// Start starts a program on a server. It is stopped when the test ends, if not before. The options
// are the defaults of the methods. The program's calls are its writes, and its reads of single
// objects. These do not count: lists and watches, which cannot be told from a reflector's,
// discovery, logs, Leases (a leader renews its own for ever), and what [Ignoring] says.
//
// A test should do this in a bubble of [testing/synctest], with the server and the program in it:
//
//	synctest.Test(t, func(t *testing.T) {
//		server := katestest.NewServer(t, katestest.WithManifests(input))
//		running := katestest.Start(t, server, program)
//		running.Settles()
//		// … another input
//		running.Settles(katestest.CallLimit(3))
//	})
//
// There time passes only while the program has nothing to do, so no answer depends on how fast the
// machine is, and minutes pass at once. Outside of a bubble a program counts as settled when it
// has sent nothing for a second ([Quiet]): a slower one is judged too early.
func Start(t testing.TB, server *Server, program Program, options ...ProgramOption) *Running {
	t.Helper()
	r := &Running{t: t, options: options}
	r.run = trial.Start(t.Context(), server.Config, program, settings(options), trial.Crash{})
	t.Cleanup(func() { _ = r.run.Stop() }) // Stop says what is wrong
	return r
}

// Settles waits until the program has come to rest: it has an answer to each call, and makes no
// more. It may make [Calls] until then, counted since it was started, or has settled last. Else
// the test ends, and the failure shows the loop that the program is in: the calls of a round, what
// each has changed, and how its object differs from that of the round before.
//
// A program that rests because it fails has not settled: a watch of one of its kates clients is
// not complete, a function of a run or a controller has panicked at the last call for a key, or
// none of its calls has succeeded. Outside of a bubble these have until [Within] to pass.
//
// In a bubble it is at rest if nothing comes for 5 minutes ([Quiet]), which is longer than the
// pauses between tries of kates. A program that writes every hour needs a longer one.
func (r *Running) Settles(options ...ProgramOption) {
	r.t.Helper()
	err := r.run.Settle(settings(slices.Concat(r.options, options)))
	if err == nil {
		return
	}
	_ = r.run.Stop() // the other error comes first
	r.t.Fatal(err)
}

// Stop cancels the program's context, waits until it has returned, and breaks its connections. The
// test fails if it has not returned after a minute, or if a goroutine that it has started goes on.
// It may be called again.
func (r *Running) Stop() {
	r.t.Helper()
	if err := r.run.Stop(); err != nil {
		r.t.Fatal(err)
	}
}

// Settles starts a program, waits until it has settled, and stops it: [Start], [Running.Settles]
// and [Running.Stop]. What the server has then is the program's answer to what it had before. Once
// more with Calls(0), it shows that a restart of the program does nothing.
func Settles(t testing.TB, server *Server, program Program, options ...ProgramOption) {
	t.Helper()
	r := Start(t, server, program, options...)
	r.Settles()
	r.Stop()
}

// CrashAnywhere shows that a program may crash at any moment. First it runs until it has settled.
// Then, for each of its writes, a new program on a new server is stopped right before the write,
// and another one right after it: the server has stored the write, and the program gets no answer.
// Stopped means that its context is cancelled, its connections break, and all of its requests
// fail. It is started again on the same server, and has to settle. The objects of the server have
// to be the same in the end as without a crash. The failure names the write, and shows the
// differences.
//
// newServer is called for each run. It makes a server, with [NewServer], and whatever else the
// program needs new. Steps ([Step]) are done when the program has settled, and crashes come
// after them, too. Versions, UIDs, times, generations and made-up names may differ ([Golden]).
// Leases, events and what [Ignoring] says are not compared.
//
// It should be called in a bubble, as [Start] should. There are 2 runs for each write, or a little
// more, since each is counted where it is made.
func CrashAnywhere(t testing.TB, newServer func() *Server, program Program, options ...ProgramOption) {
	t.Helper()
	s := settingsOf(options)
	_, err := trial.Crashes(t.Context(), func() (trial.Target, error) {
		server := newServer()
		reader := rest.CopyConfig(server.Config)
		reader.Dial, reader.Transport, reader.WrapTransport = nil, inProcess{server.api}, nil
		target := trial.Target{Config: server.Config, Reader: reader, Close: server.Close}
		for _, step := range s.steps {
			target.Steps = append(target.Steps, func(ctx context.Context) error { return step(ctx, server) })
		}
		return target, nil
	}, program, s.Options)
	if err != nil {
		t.Fatal(err)
	}
}

// ProgramOption is an option of [Start], [Settles] and [CrashAnywhere].
type ProgramOption interface{ setProgram(*programSettings) }

type programSettings struct {
	trial.Options
	ignored []Match
	steps   []func(context.Context, *Server) error
}

type programOption func(*programSettings)

func (o programOption) setProgram(s *programSettings) { o(s) }

// CallLimit is how many calls a program may make until it has settled. The default is 100.
func CallLimit(n int) ProgramOption { return programOption(func(s *programSettings) { s.Calls = n }) }

// Quiet is how long a program may make no call until it counts as settled. The default is 5
// minutes in a bubble, and one second elsewhere.
func Quiet(d time.Duration) ProgramOption {
	return programOption(func(s *programSettings) { s.Options.Quiet = d })
}

// Ignoring makes calls that match not count. If it names no verb, [CrashAnywhere] does not compare
// the objects that match, either. It may be given several times.
func Ignoring(m Match) ProgramOption {
	return programOption(func(s *programSettings) { s.ignored = append(s.ignored, m) })
}

// Step is an input that [CrashAnywhere] makes when the program has settled. The program then has
// to settle again. Steps are done in their order. The other functions ignore them.
func Step(do func(ctx context.Context, server *Server) error) ProgramOption {
	return programOption(func(s *programSettings) { s.steps = append(s.steps, do) })
}

// always are resources whose writes are no work, or have no end.
var always = []Match{{Resource: "leases.coordination.k8s.io"}}

// events are history: there may be more of them after a crash.
var events = Match{Resource: "events"}

func settings(options []ProgramOption) trial.Options { return settingsOf(options).Options }

func settingsOf(options []ProgramOption) programSettings {
	s := programSettings{ignored: slices.Clone(always), Options: trial.Options{Calls: 100, Classify: callOf}}
	s.Options.Quiet, s.Options.Within = time.Second, 30*time.Second
	if tested.InBubble() {
		s.Options.Quiet, s.Options.Within = 5*time.Minute, 24*time.Hour
	}
	for _, o := range options {
		o.setProgram(&s)
	}
	s.Idle = idle
	s.Ignored = func(c trial.Call) bool { return matchesAny(s.ignored, c) }
	uncompared := slices.DeleteFunc(append(slices.Clone(s.ignored), events), func(m Match) bool { return m.Verb != "" })
	s.Uncompared = func(c trial.Call) bool { return matchesAny(uncompared, c) }
	return s
}

func matchesAny(all []Match, c trial.Call) bool {
	r := Request{Verb: c.Verb, Group: c.Group, Resource: c.Resource, Subresource: c.Subresource, Namespace: c.Namespace, Name: c.Name, Query: c.Query}
	return slices.ContainsFunc(all, func(m Match) bool { return m.matches(r) })
}

func callOf(r *http.Request) trial.Call {
	q := requestOf(r)
	return trial.Call{Verb: q.Verb, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name, Query: q.Query}
}

// idle says why a client has nothing to do, nil if its work is done.
func idle(client any) error {
	c := client.(*kates.Client)
	for _, loop := range doors.Client(c).Loops.Reports() {
		done := loop.Ended[keyed.Succeeded] + loop.Ended[keyed.Requeued]
		for _, f := range loop.Failing {
			switch {
			case f.Panicked:
				return fmt.Errorf("the function of %s panics at each call, %d in a row so far: %s", loop.Name, f.Attempt, f.Error)
			case done == 0:
				return fmt.Errorf("no call of the function of %s has succeeded. The last error, after %d in a row: %s", loop.Name, f.Attempt, f.Error)
			}
		}
	}
	return c.Ready()
}

// inProcess sends requests to a handler, without a connection.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	p.handler.ServeHTTP(answer, r)
	return answer.Result(), nil
}
