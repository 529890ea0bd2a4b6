package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/dialog"
	"github.com/kates-go/kates/bench/internal/operator"
	"github.com/kates-go/kates/bench/internal/usage"
	"github.com/kates-go/kates/examples/gateway/nginx"
)

// Command asks a gateway's process for something. Commands and answers are lines of JSON. Every
// command has one answer.
type Command struct {
	Do What `json:"do"`
	// Address is where nginx listens, Dir where its files are.
	Address string `json:"address,omitempty"`
	Dir     string `json:"dir,omitempty"`
	// Path is where to write profiles: Path.cpu and Path.heap.
	Path string `json:"path,omitempty"`
}

// What is a command's verb.
type What string

// These are the verbs, with the fields of the Answer that they fill. An error of the gateway is in
// the answer to the next command.
const (
	// Start starts the gateway and waits until a configuration is active: Seconds, and as Count.
	Start What = "start"
	// Count returns what was used and done so far: CPU, NginxCPU, PeakBytes, Counts, Stats,
	// Applied, Pushes.
	Count What = "count"
	// See returns which changes have come into effect since the last time: Seen.
	See What = "see"
	// Judge says what is served, and measures the live heap: Fingerprint, Bytes.
	Judge What = "judge"
	// Profile starts a CPU profile. EndProfile writes it and a heap profile.
	Profile    What = "profile"
	EndProfile What = "endprofile"
)

// Answer holds the results.
type Answer struct {
	dialog.Outcome
	Seconds     float64         `json:"seconds,omitempty"`
	CPU         float64         `json:"cpu,omitempty"`
	NginxCPU    float64         `json:"nginxCPU,omitempty"`
	PeakBytes   float64         `json:"peakBytes,omitempty"`
	Bytes       float64         `json:"bytes,omitempty"`
	Counts      operator.Counts `json:"counts,omitzero"`
	Stats       nginx.Stats     `json:"stats,omitzero"`
	Applied     int             `json:"applied,omitempty"`
	Pushes      int             `json:"pushes,omitempty"`
	Seen        []Seen          `json:"seen,omitempty"`
	Fingerprint string          `json:"fingerprint,omitempty"`
}

// Serve runs a gateway for the commands of in, and writes the answers to out, until in ends. An
// error of the gateway is an answer. When Serve returns, the gateway and its nginx have ended.
func Serve(ctx context.Context, v Variant, config *rest.Config, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{variant: v, config: config, ended: make(chan error, 1)}
	defer func() {
		cancel()
		err = errors.Join(err, s.close())
	}()
	return dialog.Serve(in, out, func(c Command) (Answer, error) { return s.do(ctx, c) })
}

type server struct {
	variant Variant
	config  *rest.Config
	meter   operator.Meter
	profile usage.Profile
	dir     string
	nginx   *nginx.Nginx // nil before the start
	web     *Web
	running bool
	ended   chan error
}

func (s *server) close() error {
	if s.running {
		<-s.ended
	}
	if s.nginx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.nginx.Close(ctx)
}

func (s *server) do(ctx context.Context, c Command) (Answer, error) {
	select {
	case err := <-s.ended:
		s.running = false
		return Answer{}, err
	default:
	}
	if s.web == nil && c.Do != Start && c.Do != Profile {
		return Answer{}, errors.New("it has not been started")
	}
	switch c.Do {
	case Start:
		return s.start(ctx, c)
	case Count:
		return s.count()
	case See:
		return Answer{Seen: s.web.Take()}, nil
	case Judge:
		print, err := s.web.Fingerprint()
		return Answer{Fingerprint: print, Bytes: usage.LiveBytes()}, err
	case Profile:
		return Answer{}, s.profile.Start(c.Path)
	case EndProfile:
		return Answer{}, s.profile.End()
	}
	return Answer{}, errors.New("there is no such command")
}

func (s *server) start(ctx context.Context, c Command) (a Answer, err error) {
	if s.running {
		return Answer{}, errors.New("it runs")
	}
	begun := time.Now()
	s.dir = c.Dir
	if s.nginx, err = nginx.Open(nginx.Options{Dir: c.Dir}); err != nil {
		return Answer{}, err
	}
	s.web, s.running = newWeb(s.nginx, c.Address), true
	go func() { s.ended <- s.run(ctx) }() // ends with ctx
	select {
	case <-s.web.active:
	case err := <-s.ended:
		s.running = false
		return Answer{}, err
	}
	took := time.Since(begun).Seconds()
	a, err = s.count()
	a.Seconds = took
	return a, err
}

// run never returns nil: a gateway that ends without an error has ended too early.
func (s *server) run(ctx context.Context) error {
	err := s.variant.run(ctx, s.meter.Through(s.config), s.web)
	return fmt.Errorf("the gateway has ended: %w", errors.Join(err, context.Cause(ctx), errEnded))
}

var errEnded = errors.New("it does not run any more")

func (s *server) count() (a Answer, err error) {
	a.Counts, a.Stats = s.meter.Counts(), s.web.Stats()
	a.Applied, a.Pushes = s.web.Counts()
	var wrong [3]error
	a.CPU, wrong[0] = usage.CPUSeconds()
	a.PeakBytes, wrong[1] = usage.PeakBytes()
	a.NginxCPU, wrong[2] = nginxSeconds(s.dir)
	return a, errors.Join(wrong[:]...)
}
