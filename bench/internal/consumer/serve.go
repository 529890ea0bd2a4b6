package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"

	"k8s.io/client-go/rest"
)

// Serve runs a consumer for the commands of in, and writes the answers to out, until in ends. An
// error of the consumer is an answer; Serve's own is of in and out.
func Serve(ctx context.Context, v Variant, config *rest.Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{consumer: v.make(), out: json.NewEncoder(out)}
	s.config = s.requests.through(config)
	commands := json.NewDecoder(in)
	for {
		var c Command
		if err := commands.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a command: %w", err)
		}
		answer, err := s.do(ctx, c)
		if err != nil {
			answer = Answer{Error: fmt.Sprintf("%s: %v", c.Do, err)}
		}
		if err := s.out.Encode(answer); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
}

type server struct {
	consumer Consumer
	config   *rest.Config
	requests requests
	out      *json.Encoder

	idle    float64 // live heap before the start
	objects int     // of the first snapshot
	churn   *churn
	profile *profile
}

func (s *server) do(ctx context.Context, c Command) (Answer, error) {
	switch c.Do {
	case Bootstrap:
		return s.bootstrap(ctx)
	case Heap:
		return Answer{Bytes: liveBytes() - s.idle, Objects: s.objects}, nil
	case Drain:
		_, err := s.drain(ctx)
		return Answer{}, err
	case Refresh:
		return s.refresh(ctx, c)
	case Await:
		return s.await(ctx, c)
	case Churn:
		return s.startChurn(ctx, c)
	case Settle:
		return s.settle(c)
	case Own:
		return s.own(ctx, c)
	case Profile:
		return Answer{}, s.startProfile(c.Path)
	case EndProfile:
		return Answer{}, s.endProfile()
	}
	return Answer{}, errors.New("there is no such command")
}

// profile is of the CPU from its start, and of the heap at its end.
type profile struct {
	path string
	cpu  *os.File
}

func (s *server) startProfile(path string) error {
	f, err := os.Create(path + ".cpu")
	if err != nil {
		return err
	}
	s.profile = &profile{path: path, cpu: f}
	return pprof.StartCPUProfile(f)
}

func (s *server) endProfile() error {
	if s.profile == nil {
		return errors.New("none was started")
	}
	p := s.profile
	s.profile = nil
	pprof.StopCPUProfile()
	if err := p.cpu.Close(); err != nil {
		return err
	}
	liveBytes() // a heap profile is of the last collection
	f, err := os.Create(p.path + ".heap")
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}
