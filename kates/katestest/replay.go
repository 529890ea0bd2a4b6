package katestest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest/internal/recording"
)

// Player plays a recording back: it is an API server in memory, for clients that list and watch
// what was recorded. [Replay] and [NewPlayer] make one.
//
// A list, or a watch, is answered if one of the same path and the same selectors was recorded, by
// any client, in any encoding, as a list, in pages or as a streamed list. Objects of built-in
// kinds that came in protobuf are also there for clients that want JSON. What was not recorded is
// a 404 that says so, and names what there is. Writes are refused (405).
//
// The player does not repeat the answers one by one: it knows the objects at each time of the
// recording, the position, and answers what is asked, in any order:
//
//   - A list shows the objects at the position. It has no pages, whatever the limit. For a version
//     that is not reached the answer is the server's own ("Too large resource version"). What was
//     listed only later in the recording is shown as it was then.
//   - A streamed list begins with the same objects.
//   - A watch goes on from any version that the recording knows, also from one between two events,
//     and brings what follows at the times at which it was recorded. From an older version, and
//     from one behind the end of the recording, the answer is 410 Expired.
//   - The watches stay open until the client ends them, or their timeoutSeconds are over. The ends
//     and failures of the recorded connections are not played: [Faults] makes others. If something
//     was missed while no watch was open, watches end with 410 there, and clients list again.
//   - A request that always failed, fails as it did.
//   - Discovery, OpenAPI, the version, and gets of single objects are the latest answers at the
//     position.
//
// A recording that goes beyond a restore from a backup is not played rightly after it, since
// versions come again there.
//
// # Time
//
// The position goes on with the clock of package time, times the speed, from the first request on.
// At [Stopped] it waits for [Player.Step] and [Player.To]. At [Fastest] it goes to the next moment
// whenever somebody waits in each open watch and all of them have been read: so the order between
// watches is kept, and no time is lost.
//
// At every speed, a client that has read everything up to a position has the same objects. In a
// synctest bubble that is easy to come by, and snapshots are then the same to the byte:
//
//	for player.Step() {
//		synctest.Wait() // the client has taken in what came
//		changed, err := snapshots.Update(ctx, &snapshot)
//		...
//	}
//
// Without that, which of the states a slow reader sees is a matter of timing, as it is with a
// server; every snapshot consists of states that were recorded, and the last one is the same.
//
// A Player has no goroutine, does no I/O, and is safe for concurrent use.
type Player struct{ player *recording.Player }

// Speeds of a replay, beside finite ones: 1 is that of the recording.
const (
	Stopped = 0.0
	Fastest = recording.Fastest
)

// ReplayOption says how a recording is played.
type ReplayOption func(*replayConfig) error

type replayConfig struct{ speed float64 }

// Speed sets the speed. Without it, it is 1.
func Speed(factor float64) ReplayOption {
	return func(c *replayConfig) error {
		c.speed = factor
		return checkSpeed(factor)
	}
}

func checkSpeed(factor float64) error {
	if !(factor >= 0) || math.IsInf(factor, 0) { // NaN is neither
		return fmt.Errorf("a replay at speed %v: it must be 0 (Stopped) or more, or Fastest", factor)
	}
	return nil
}

// Replay plays a recording that [Record] has made. A file that cannot be read fails the test at
// once.
//
//	player := katestest.Replay(t, "testdata/rollout.recording", katestest.Speed(katestest.Stopped))
//	client, err := kates.NewClientFromRESTConfig(player.Config())
func Replay(t testing.TB, file string, options ...ReplayOption) *Player {
	t.Helper()
	p, err := NewPlayer(file, options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// NewPlayer is [Replay] for programs that are not tests.
func NewPlayer(file string, options ...ReplayOption) (*Player, error) {
	c := replayConfig{speed: 1}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("replay: an option is nil")
		}
		if err := option(&c); err != nil {
			return nil, err
		}
	}
	r, err := recording.Load(file)
	if err != nil {
		return nil, err
	}
	return &Player{recording.NewPlayer(r, c.speed)}, nil
}

// Config returns a configuration for clients of the replay.
func (p *Player) Config() *rest.Config {
	return &rest.Config{Host: "http://replay.invalid", Transport: p.player, QPS: -1}
}

// At returns the position: a time since the start of the recording. Before the first request it is
// when the first answer was recorded.
func (p *Player) At() time.Duration { return p.player.At() }

// Moments returns the positions at which something happens, in order. Several things may have been
// recorded at one moment.
func (p *Player) Moments() []time.Duration { return p.player.Moments() }

// Step goes to the next moment. It is false if there is none. It is for [Stopped], and works at
// any speed.
func (p *Player) Step() bool { return p.player.Step() }

// To goes to a position; not back. It is for [Stopped], and works at any speed.
func (p *Player) To(at time.Duration) { p.player.To(at) }

// SetSpeed changes the speed from now on. It panics if the factor is negative or no number.
func (p *Player) SetSpeed(factor float64) {
	if err := checkSpeed(factor); err != nil {
		panic("katestest: " + err.Error())
	}
	p.player.SetSpeed(factor)
}

// Wait returns when everything was played, and the clients have read all of their open watches, of
// which there is one at least. What they have read, they may still be taking in: kates'
// Client.Sync waits for that. If ctx ends first, the error is its cause and says how far the
// replay is.
func (p *Player) Wait(ctx context.Context) error { return p.player.Wait(ctx) }
