package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/configflags"
	"github.com/kates-go/kates/kates/katestest"
)

// connection is a client, and what belongs to it.
type connection struct {
	client *kates.Client
	// namespace of the kubeconfig, or of -n.
	namespace string
	// where says which cluster it is, for people.
	where    string
	recorder *katestest.Recorder
	player   *katestest.Player
	// stop ends the goroutine that waits for the end of a replay, and waits for it.
	stop func()
}

// options of all clients. What goes wrong is shown as the state of a kind, and not logged.
func (o *options) clientOptions() []kates.Option {
	return append([]kates.Option{
		kates.WithLogger(slog.New(slog.DiscardHandler)),
		kates.WithInterval(o.interval),
	}, o.more...)
}

// connect makes the client that the flags name. It sends no request.
func (o *options) connect(warnings io.Writer) (*connection, error) {
	if o.replay != "" {
		return o.play()
	}
	c := &connection{}
	if err := c.record(o, warnings); err != nil {
		return nil, err
	}
	loader := o.config.ToRawKubeConfigLoader()
	var err error
	if c.namespace, _, err = loader.Namespace(); err != nil {
		return nil, c.discard(err)
	}
	if raw, err := loader.RawConfig(); err == nil {
		c.where = raw.CurrentContext
	}
	if given := o.config.Context; given != nil && *given != "" {
		c.where = *given
	}
	return c, nil
}

// record makes the client, and has what it reads written to a file if that is wanted.
func (c *connection) record(o *options, warnings io.Writer) error {
	var once sync.Once
	var failed error
	wrap := o.config.WrapConfigFn
	o.config.WrapConfigFn = func(config *rest.Config) *rest.Config {
		if wrap != nil {
			config = wrap(config)
		}
		config = rest.CopyConfig(config)
		config.WarningHandler = rest.NoWarnings{}
		if warnings != nil {
			config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
		}
		if o.record != "" {
			once.Do(func() { c.recorder, failed = katestest.Record(config, o.record) })
		}
		return config
	}
	defer func() { o.config.WrapConfigFn = wrap }()
	client, err := configflags.NewClientFromConfigFlags(o.config, o.clientOptions()...)
	if err = errors.Join(err, failed); err != nil {
		if client != nil {
			client.Close()
		}
		return c.discard(err)
	}
	c.client = client
	return nil
}

// discard closes what there is already.
func (c *connection) discard(err error) error { return errors.Join(err, c.close()) }

// close ends the client, then the recording. The error says that the file is not whole.
func (c *connection) close() error {
	if c.stop != nil {
		c.stop()
	}
	if c.client != nil {
		c.client.Close()
	}
	if c.recorder == nil {
		return nil
	}
	if err := c.recorder.Close(); err != nil {
		return fmt.Errorf("the recording is not whole: %w", err)
	}
	return nil
}

// play makes a client of a recording.
func (o *options) play() (*connection, error) {
	speed, err := o.replaySpeed()
	if err != nil {
		return nil, err
	}
	player, err := katestest.NewPlayer(o.replay, katestest.Speed(speed))
	if err != nil {
		return nil, err
	}
	client, err := kates.NewClientFromRESTConfig(player.Config(), o.clientOptions()...)
	if err != nil {
		return nil, err
	}
	c := &connection{client: client, player: player, where: "replay of " + o.replay}
	if n := o.config.Namespace; n != nil {
		c.namespace = *n
	}
	return c, nil
}

// replaySpeed is the speed of a replay.
func (o *options) replaySpeed() (float64, error) {
	if o.speed == "fastest" {
		return katestest.Fastest, nil
	}
	speed, err := strconv.ParseFloat(o.speed, 64)
	if err != nil || speed <= 0 || math.IsInf(speed, 0) || math.IsNaN(speed) {
		return 0, fmt.Errorf("--speed=%s is not a speed: use a number above 0, such as 2 for twice as fast, or fastest", o.speed)
	}
	return speed, nil
}

// played returns a channel that is closed when a replay is over and the watch has taken it in.
func (c *connection) played(ctx context.Context) <-chan struct{} {
	if c.player == nil {
		return nil
	}
	ended, stopped := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	c.stop = func() { cancel(); <-stopped }
	go func() { // until the replay is over, or stop
		defer close(stopped)
		if c.player.Wait(ctx) == nil && c.client.Sync(ctx) == nil {
			close(ended)
		}
	}()
	return ended
}
