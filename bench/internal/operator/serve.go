package operator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/dialog"
	"github.com/kates-go/kates/bench/internal/usage"
)

// Command asks an operator's process for something. Commands and answers are lines of JSON. Every
// command has one answer.
type Command struct {
	Do What `json:"do"`
	// Workers is how many reconciles may run at a time.
	Workers int `json:"workers,omitempty"`
	// Path is where to write profiles: Path.cpu and Path.heap.
	Path string `json:"path,omitempty"`
}

// What is a command's verb.
type What string

// These are the verbs, with the fields of the Answer that they fill. An error of the operator is
// in the answer to the next command.
const (
	// Start starts the operator, and does not wait for it: CPU before the start.
	Start What = "start"
	// Count returns the counts: CPU, PeakBytes, Counts.
	Count What = "count"
	// Heap measures the live heap, without what was live before the start: Bytes.
	Heap What = "heap"
	// Profile starts a CPU profile. EndProfile writes it and a heap profile.
	Profile    What = "profile"
	EndProfile What = "endprofile"
)

// Answer holds the results.
type Answer struct {
	dialog.Outcome
	CPU       float64 `json:"cpu,omitempty"`
	PeakBytes float64 `json:"peakBytes,omitempty"`
	Bytes     float64 `json:"bytes,omitempty"`
	Counts    Counts  `json:"counts,omitzero"`
}

// Serve runs an operator for the commands of in, and writes the answers to out, until in ends. An
// error of the operator is an answer. Serve's own error is about in and out. When Serve returns,
// the operator has ended.
func Serve(ctx context.Context, v Variant, config *rest.Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{variant: v, config: config, ended: make(chan error, 1)}
	defer func() {
		cancel()
		if s.running {
			<-s.ended
		}
	}()
	return dialog.Serve(in, out, func(c Command) (Answer, error) { return s.do(ctx, c) })
}

type server struct {
	variant Variant
	config  *rest.Config
	meter   Meter
	profile usage.Profile
	idle    float64 // live heap before the start
	running bool
	ended   chan error
}

func (s *server) do(ctx context.Context, c Command) (a Answer, err error) {
	select {
	case err := <-s.ended:
		s.running = false
		return Answer{}, fmt.Errorf("the operator has ended: %w", err)
	default:
	}
	switch c.Do {
	case Start:
		if s.running {
			return Answer{}, errors.New("it runs")
		}
		s.idle, s.running = usage.LiveBytes(), true
		a.CPU, err = usage.CPUSeconds()
		go func() { s.ended <- s.run(ctx, c.Workers) }() // ends with ctx
		return a, err
	case Count:
		return s.count()
	case Heap:
		return Answer{Bytes: usage.LiveBytes() - s.idle}, nil
	case Profile:
		return Answer{}, s.profile.Start(c.Path)
	case EndProfile:
		return Answer{}, s.profile.End()
	}
	return Answer{}, errors.New("there is no such command")
}

// run never returns nil: an operator that ends without an error has ended too early.
func (s *server) run(ctx context.Context, workers int) error {
	err := s.variant.run(ctx, s.meter.Through(s.config), workers, &s.meter)
	return errors.Join(err, context.Cause(ctx), errEnded)
}

var errEnded = errors.New("it does not run any more")

func (s *server) count() (a Answer, err error) {
	a.Counts = s.meter.Counts()
	if a.CPU, err = usage.CPUSeconds(); err != nil {
		return a, err
	}
	a.PeakBytes, err = usage.PeakBytes()
	return a, err
}
