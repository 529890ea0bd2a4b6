package accumulator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// process is a program on the simulated server, from its start to its end.
type process struct {
	*testing.T
	*sim.Server
	files   *sim.Files
	config  stream.Config
	streams *streamset.Set
	a       *Accumulator
	snap    one
}

// start starts it. Its streams are kept in the files.
func (p *process) start(queries ...query.Query) {
	p.Helper()
	if len(queries) == 0 {
		queries = []query.Query{sim.Query("A", "as")}
	}
	config := p.config
	if config.Source == nil {
		config.Source = sim.Plain(p.Source)
	}
	if config.Warm == nil {
		config.Warm = sim.Warm(p.files)
	}
	config.Warm.Store = p.files
	p.streams = streamset.New(config)
	p.a, p.snap = watching(p.T, p.streams, collect.Options{}, queries...), one{}
}

// end ends it, and its streams are written.
func (p *process) end() { p.streams.Close() }

// kill ends it, and nothing is written.
func (p *process) kill() {
	kept := p.files.Copy()
	p.streams.Close()
	p.files = kept
}

// shows expects a complete snapshot with objects of these names.
func (p *process) shows(names ...string) {
	p.Helper()
	synctest.Wait()
	update(p.T, p.a, &p.snap)
	assert.Equal(p, names, sim.Names(p.snap.A))
}

// began returns how the stream has begun.
func (p *process) began() string {
	synctest.Wait()
	return p.a.Status()[0].Start
}

// asWatched returns the objects with their versions, and those of the server.
func (p *process) sameAsServer() {
	p.Helper()
	synctest.Wait()
	update(p.T, p.a, &p.snap)
	var shown, there []string
	for _, o := range p.snap.A {
		shown = append(shown, sim.VersionOf(o))
	}
	p.Mu.Lock()
	for _, o := range p.At("as", p.Rev) {
		there = append(there, sim.VersionOf(o))
	}
	p.Mu.Unlock()
	assert.ElementsMatch(p, there, shown)
}

// lives runs a test with a process that has watched the objects a, b and c, and has ended.
func lives(t *testing.T, f func(p *process)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &process{T: t, Server: sim.New(), files: &sim.Files{}}
		for _, name := range []string{"a", "b", "c"} {
			p.Create("as", sim.Thing(name))
		}
		f(p)
		p.end()
	})
}

func afterALife(t *testing.T, f func(p *process)) {
	t.Helper()
	lives(t, func(p *process) {
		p.start()
		p.shows("a", "b", "c")
		assert.Equal(t, "list: nothing is kept of it", p.began())
		p.end()
		f(p)
	})
}

func TestG1G2AWarmStartListsNothingAndShowsThePresent(t *testing.T) {
	afterALife(t, func(p *process) {
		lists := opened(p.Server)
		p.Remove("as", "a")
		p.Touch("as", "b", 7)
		p.Create("as", sim.Thing("d"))
		p.start()
		p.shows("b", "c", "d")
		p.sameAsServer()
		assert.Equal(p, "warm", p.began())
		assert.Equal(p, lists, opened(p.Server), "nothing was listed")
		p.Create("as", sim.Thing("e"))
		p.shows("b", "c", "d", "e")
		assert.Equal(p, 0, p.a.Status()[0].Restarts)
	})
}

// The status says so before the first snapshot is there, which a reader may take at once.
func TestTheStatusBesideTheFirstSnapshotSaysThatTheStartWasWarm(t *testing.T) {
	afterALife(t, func(p *process) {
		open := make(chan struct{})
		p.config.Points = func(m stream.Moment) {
			if m.Point == stream.AtListed {
				<-open
			}
		}
		p.start()
		assert.Equal(p, "warm", p.began())
		close(open)
		p.shows("a", "b", "c")
		assert.Equal(p, "warm", p.began())
	})
}

func TestG1NothingIsShownBeforeAQuietWatchHasReachedThePresent(t *testing.T) {
	afterALife(t, func(p *process) {
		p.Create("bs", sim.Thing("other")) // the version moves, and the kind is quiet
		p.start()
		sim.After(900 * time.Millisecond)
		assert.False(p, signalled(p.a))
		assert.False(p, update(p.T, p.a, &p.snap).Changed)
		sim.After(200 * time.Millisecond)
		p.shows("a", "b", "c")
		assert.Equal(p, "warm", p.began())
	})
}

func TestG1AKindThatIsBusyIsCompleteAtOnceAndOneThatHasNotChangedToo(t *testing.T) {
	afterALife(t, func(p *process) {
		p.start() // the server is where the file ends
		p.shows("a", "b", "c")
		assert.Equal(p, "warm", p.began())
		p.end()
		p.Touch("as", "a", 1)
		began := time.Now()
		p.start()
		p.sameAsServer()
		assert.Equal(p, "warm", p.began())
		assert.Zero(p, time.Since(began))
	})
}

func TestG2ABookmarkThatRepeatsAnOldVersionIsNotThePresent(t *testing.T) {
	afterALife(t, func(p *process) {
		p.Create("bs", sim.Thing("other"))
		old := 2
		p.Bookmarked = func(newest int) int {
			if old--; old >= 0 {
				return newest - 1
			}
			return newest
		}
		p.start()
		sim.After(3 * time.Second)
		assert.False(p, signalled(p.a))
		sim.After(6 * time.Second)
		p.shows("a", "b", "c")
		assert.Equal(p, "warm", p.began())
	})
}

func TestG1EachQueryIsCompleteBeforeTheFirstSignal(t *testing.T) {
	lives(t, func(p *process) {
		queries := []query.Query{sim.Query("A", "as"), sim.Query("B", "bs")}
		p.Create("bs", sim.Thing("x"))
		p.Create("bs", sim.Thing("y"))
		p.start(queries...)
		synctest.Wait()
		p.end()
		p.Touch("as", "a", 1) // A is there at once, and B is not
		p.start(queries...)
		assert.False(p, signalled(p.a))
		sim.After(2 * time.Second)
		assert.True(p, signalled(p.a))
		var snap two
		update(p.T, p.a, &snap)
		assert.Len(p, snap.A, 3)
		assert.Len(p, snap.B, 2)
		for _, q := range p.a.Status() {
			assert.Equal(p, "warm", q.Start)
		}
	})
}

func TestG4OwnWritesBeforeAWarmStartIsCompleteAreInTheFirstSnapshot(t *testing.T) {
	afterALife(t, func(p *process) {
		p.Create("bs", sim.Thing("other"))
		p.Late(1500 * time.Millisecond)
		p.start()
		synctest.Wait()
		o := sim.NewClient(p.Server, p.streams)
		require.True(p, o.Delete("as", "a", 0, true))
		o.Put("as", sim.Thing("own"), 0)
		sim.After(time.Second)
		assert.False(p, update(p.T, p.a, &p.snap).Changed)
		sim.After(600 * time.Millisecond) // the deletion has come, and the creation has not
		p.shows("b", "c", "own")
		assert.Equal(p, "warm", p.began())
		p.Late(0)
		sim.After(time.Minute)
		p.sameAsServer()
	})
}

func TestG4OwnWritesOfTheLastProcessAreInTheFirstSnapshotThoughItsWatchHadNotShownThem(t *testing.T) {
	lives(t, func(p *process) {
		p.start()
		p.shows("a", "b", "c")
		p.Late(time.Hour)
		o := sim.NewClient(p.Server, p.streams)
		o.Put("as", sim.Thing("own"), 0)
		p.shows("a", "b", "c", "own")
		p.end() // the file has what the watch has shown
		p.Late(0)
		p.start()
		p.shows("a", "b", "c", "own")
		assert.Equal(p, "warm", p.began())
	})
}

func TestG5AStreamThatHasBegunWarmGoesOnAsAnyOther(t *testing.T) {
	afterALife(t, func(p *process) {
		p.Touch("as", "a", 1)
		p.start()
		p.sameAsServer()
		for i := range 5 {
			p.Cut()
			p.Touch("as", "b", i)
			sim.After(time.Minute)
			p.sameAsServer()
		}
		lists := opened(p.Server)
		p.Mu.Lock()
		p.Oldest = p.Rev
		p.Mu.Unlock()
		p.Touch("as", "c", 1)
		p.Cut()
		p.Mu.Lock()
		p.Oldest = p.Rev
		p.Mu.Unlock()
		sim.After(time.Minute)
		p.sameAsServer()
		assert.GreaterOrEqual(p, opened(p.Server), lists)
	})
}

func TestG1AServerThatIsAwayAtTheStartIsWaitedForAndThenNothingIsListed(t *testing.T) {
	afterALife(t, func(p *process) {
		p.Touch("as", "b", 1)
		p.Failing(func(string, string) error { return errors.New("away") })
		lists := opened(p.Server)
		p.start()
		sim.After(time.Minute)
		assert.Contains(p, p.began(), "away")
		assert.False(p, update(p.T, p.a, &p.snap).Changed)
		p.Failing(nil)
		sim.After(time.Minute)
		p.sameAsServer()
		assert.Equal(p, "warm", p.began())
		p.Mu.Lock()
		assert.Empty(p, p.Streamed)
		p.Mu.Unlock()
		assert.Greater(p, opened(p.Server), lists, "lists were tried, and failed")
	})
}

func TestG1AServerThatHangsHoldsAWarmStartForItsBoundsOnly(t *testing.T) {
	afterALife(t, func(p *process) {
		p.Create("bs", sim.Thing("other"))
		slow := true
		p.ListDelay = func(string) time.Duration {
			if slow {
				return time.Hour
			}
			return 0
		}
		p.start()
		sim.After(11 * time.Second)
		assert.Contains(p, p.began(), "deadline", "a plain list is under way")
		p.Mu.Lock()
		slow = false
		p.Mu.Unlock()
		sim.After(10 * time.Minute)
		p.sameAsServer()
	})
}

func TestAnotherQueryHasItsOwnFiles(t *testing.T) {
	afterALife(t, func(p *process) {
		q := sim.Query("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		p.Create("as", sim.Thing("y", "in", "yes"))
		p.start(q)
		p.shows("y")
		assert.Equal(p, "list: nothing is kept of it", p.began())
		p.end()
		p.start(q)
		p.shows("y")
		assert.Equal(p, "warm", p.began())
	})
}
