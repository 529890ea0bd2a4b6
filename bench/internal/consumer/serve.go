package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/dialog"
	"github.com/kates-go/kates/bench/internal/usage"
)

// Serve runs a consumer for the commands of in, and writes the answers to out, until in ends. An
// error of the consumer is an answer. Serve's own error is about in and out.
func Serve(ctx context.Context, v Variant, config *rest.Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{consumer: v.make(), out: json.NewEncoder(out)}
	s.config = s.requests.through(config)
	if c, ok := s.consumer.(interface{ Close() }); ok {
		defer c.Close()
	}
	return dialog.Serve(in, out, func(c Command) (Answer, error) { return s.do(ctx, c) })
}

type server struct {
	consumer Consumer
	config   *rest.Config
	requests requests
	out      *json.Encoder

	idle    float64 // live heap before the start
	objects int     // of the first snapshot
	churn   *churn
	profile usage.Profile
}

func (s *server) do(ctx context.Context, c Command) (Answer, error) {
	switch c.Do {
	case Bootstrap:
		return s.bootstrap(ctx)
	case Heap:
		return Answer{Bytes: usage.LiveBytes() - s.idle, Objects: s.objects, Received: float64(s.requests.received.Load())}, nil
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
		return Answer{}, s.profile.Start(c.Path)
	case EndProfile:
		return Answer{}, s.profile.End()
	}
	return Answer{}, errors.New("there is no such command")
}
