package accumulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// packing is a source that lets a test look on while objects are packed.
type packing struct {
	source.Source
	pack func(o object.Object)
}

func (s packing) Pack(o object.Object) ([]byte, error) {
	if s.pack != nil {
		s.pack(o)
	}
	return s.Source.(source.Packer).Pack(o)
}

func (s packing) Unpack(raw []byte) (object.Object, error) {
	return s.Source.(source.Packer).Unpack(raw)
}

func (s packing) Packing() string { return s.Source.(source.Packer).Packing() }

// packed lets a function see each object that is packed.
func (p *process) packed(f func(o object.Object)) {
	plain := sim.Plain(p.Source)
	p.config.Source = func(r object.Resource, namespace string, form object.Form) source.Source {
		return packing{plain(r, namespace, form), f}
	}
}

func TestWhatIsKeptCostsWhatHasChanged(t *testing.T) {
	lives(t, func(p *process) {
		var objects atomic.Int64
		p.packed(func(object.Object) { objects.Add(1) })
		for i := range 3000 {
			p.Create("as", sim.Thing(fmt.Sprintf("x%04d", i)))
		}
		p.start()
		sim.After(2 * time.Minute)
		assert.Equal(t, []string{files.Base, files.Changes}, p.files.Saved(), "everything, once")
		assert.EqualValues(t, 3003, objects.Swap(0))
		sim.After(10 * time.Minute)
		assert.Empty(t, p.files.Saved(), "nothing has changed")
		p.Touch("as", "x0001", 1)
		p.Touch("as", "x0001", 2)
		p.Remove("as", "x0002")
		sim.After(2 * time.Minute)
		assert.Equal(t, []string{files.Changes}, p.files.Saved())
		assert.EqualValues(t, 1, objects.Swap(0))
		p.Bookmarks()
		p.Create("bs", sim.Thing("other"))
		p.Bookmarks()
		sim.After(2 * time.Minute)
		assert.Equal(t, []string{files.Changes}, p.files.Saved(), "a newer version")
		assert.EqualValues(t, 1, objects.Swap(0), "all changes since the base")
		for i := range 1100 {
			p.Touch("as", fmt.Sprintf("x%04d", i+1000), 1)
		}
		sim.After(2 * time.Minute)
		assert.Equal(t, []string{files.Base, files.Changes}, p.files.Saved(), "a new base is cheaper")
		p.end()
		objects.Store(0)
		p.start()
		p.sameAsServer()
		assert.Equal(t, "warm", p.began())
		p.Touch("as", "x0003", 1)
		sim.After(2 * time.Minute)
		p.files.Saved()
		assert.EqualValues(t, 1, objects.Load(), "the base of the last process goes on")
	})
}

func TestG5ABaseThatIsWrittenWhileObjectsChangeIsRightWithItsChanges(t *testing.T) {
	lives(t, func(p *process) {
		n := 0
		p.packed(func(object.Object) {
			if n++; n%100 != 0 || n > 2500 {
				return
			}
			p.Touch("as", fmt.Sprintf("x%04d", n), n)
			p.Remove("as", fmt.Sprintf("x%04d", n+1))
			p.Create("as", sim.Thing(fmt.Sprintf("new%04d", n)))
			sim.After(time.Millisecond)
		})
		for i := range 3000 {
			p.Create("as", sim.Thing(fmt.Sprintf("x%04d", i)))
		}
		p.start()
		sim.After(2 * time.Minute)
		p.kill()
		require.Greater(t, n, 2500)
		lists := opened(p.Server)
		p.Create("bs", sim.Thing("other"))
		p.start()
		sim.After(3 * time.Second)
		p.sameAsServer()
		assert.Equal(t, "warm", p.began())
		assert.Equal(t, lists, opened(p.Server))
	})
}

func TestG5AListWhileABaseIsWrittenIsFollowedByANewBase(t *testing.T) {
	lives(t, func(p *process) {
		n := 0
		p.packed(func(object.Object) {
			if n++; n == 1500 {
				p.Touch("as", "x0000", 1)
				p.Relist() // whether the watch has brought the change or not
				sim.After(20 * time.Second)
			}
		})
		for i := range 3000 {
			p.Create("as", sim.Thing(fmt.Sprintf("x%04d", i)))
		}
		p.start()
		sim.After(5 * time.Minute)
		assert.Equal(t, 1, p.a.Status()[0].Restarts)
		assert.Equal(t, []string{files.Base, files.Changes}, p.files.Saved())
		assert.Greater(t, n, 4500)
		p.kill()
		p.start()
		p.sameAsServer()
		assert.Equal(t, "warm", p.began())
	})
}

func TestG11CloseFinishesWhatIsBeingWrittenAndLeavesNothing(t *testing.T) {
	lives(t, func(p *process) {
		p.packed(func(object.Object) { sim.After(time.Second) })
		p.start()
		sim.After(time.Minute + 10*time.Second)
		began := time.Now()
		p.end()
		assert.LessOrEqual(t, time.Since(began), 10*time.Second)
		p.packed(nil)
		p.start()
		p.shows("a", "b", "c")
		assert.Equal(t, "warm", p.began())
	})
}

// stuck is a store that saves nothing, and waits for the end of its context.
type stuck struct{ *sim.Files }

func (stuck) Save(ctx context.Context, _ string, _ func(io.Writer) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestG11AStoreThatHangsHoldsCloseForItsBoundOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New()
		s.Create("as", sim.Thing("a"))
		streams := streamset.New(stream.Config{Source: sim.Plain(s.Source), Warm: sim.Warm(stuck{&sim.Files{}})})
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		sim.After(5 * time.Minute)
		s.Create("as", sim.Thing("b"))
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		assert.Len(t, snap.A, 2, "nobody waits for the store")
		began := time.Now()
		streams.Close()
		assert.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestACrashWhileAFileIsWrittenLeavesTheFormerOnes(t *testing.T) {
	for _, end := range []string{files.Base, files.Changes} {
		t.Run(end, func(t *testing.T) {
			afterALife(t, func(p *process) {
				p.start()
				p.shows("a", "b", "c")
				p.Touch("as", "a", 1)
				synctest.Wait()
				p.files.Halving(func(name string) error {
					if strings.HasSuffix(name, end) {
						return errors.New("the power is gone")
					}
					return nil
				})
				sim.After(2 * time.Minute)
				p.kill()
				p.start()
				p.sameAsServer()
				assert.Equal(t, "warm", p.began())
			})
		})
	}
}

func TestAWatchThatHasEndedIsKeptOnceMoreAndThenForgotten(t *testing.T) {
	lives(t, func(p *process) {
		p.start()
		p.shows("a", "b", "c")
		p.a.Close()
		synctest.Wait()
		sim.After(2 * time.Minute)
		assert.Equal(t, []string{files.Base, files.Changes}, p.files.Saved())
		sim.After(10 * time.Minute)
		p.end()
		assert.Empty(t, p.files.Saved())
	})
}

func TestAStoreThatFailsIsSaidOnceAndTriedAgainMoreRarely(t *testing.T) {
	lives(t, func(p *process) {
		var tries atomic.Int64
		p.files.Failing(func(what, _ string) error {
			if what == "save" {
				tries.Add(1)
				return errors.New("no room")
			}
			return nil
		})
		p.start()
		sim.After(time.Hour)
		assert.Less(t, tries.Load(), int64(15))
		assert.Greater(t, tries.Load(), int64(4))
		p.files.Failing(nil)
		sim.After(20 * time.Minute)
		assert.Equal(t, []string{files.Base, files.Changes}, p.files.Saved())
	})
}

func TestAKindThatIsGoneIsNotKeptAsEmpty(t *testing.T) {
	lives(t, func(p *process) {
		p.config.Gone = func(context.Context, object.Resource, string, error) bool { return true }
		p.start()
		p.shows("a", "b", "c")
		p.Serve("as", "v1", false)
		sim.After(10 * time.Minute)
		p.shows()
		p.files.Saved()
		p.end()
		assert.Empty(t, p.files.Saved())
		p.Serve("as", "v1", true)
		p.start()
		p.shows("a", "b", "c")
	})
}

func TestWhatCannotBeKeptIsNotAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		config func(p *process)
		why    string
	}{
		"a fake":                {func(p *process) { p.config.Source = clocks(p) }, "no versions"},
		"what cannot be packed": {func(p *process) { p.config.Source = unpackable(sim.Plain(p.Source)) }, "cannot be packed"},
	} {
		t.Run(name, func(t *testing.T) {
			lives(t, func(p *process) {
				c.config(p)
				for range 2 {
					p.start()
					p.shows("a", "b", "c")
					assert.Contains(t, p.began(), c.why)
					sim.After(10 * time.Minute)
					p.end()
				}
				assert.Zero(t, p.files.Len())
			})
		})
	}
}

// plainSource is a source that packs nothing.
type plainSource struct{ source.Source }

func unpackable(sources source.Sources) source.Sources {
	return func(r object.Resource, namespace string, form object.Form) source.Source {
		return plainSource{sources(r, namespace, form)}
	}
}

// clock is the source of a server in this process: its versions end with it.
type clock struct {
	source.Source
	of *process
}

func (c clock) NewestRV() string {
	c.of.Mu.Lock()
	defer c.of.Mu.Unlock()
	return strconv.Itoa(c.of.Rev)
}

func clocks(p *process) source.Sources {
	return func(r object.Resource, namespace string, form object.Form) source.Source {
		return clock{sim.Plain(p.Source)(r, namespace, form), p}
	}
}

// everythingIsValid judges nothing.
type everythingIsValid struct{}

func (everythingIsValid) Check(object.Object) error { return nil }

// TestObjectsThatAFunctionOfTheProgramDecidesAboutAreNotKept: nobody can compare the function with
// that of the next process.
func TestObjectsThatAFunctionOfTheProgramDecidesAboutAreNotKept(t *testing.T) {
	transformed, chosen, judged := sim.Query("A", "as"), sim.Query("A", "as"), sim.Query("A", "as")
	transformed.Transform = &object.Transform{Do: func(object.Object) error { return nil }}
	chosen.Where = &object.Where{Do: func(object.Object) (bool, error) { return true, nil }}
	keep, err := project.NewKeep(append([]project.Path{{"spec"}}, object.Identity...)...)
	require.NoError(t, err)
	judged.Form, judged.Valid = object.Whole.Keeping(keep), everythingIsValid{}
	for name, q := range map[string]query.Query{"a Transform": transformed, "a Where": chosen, "a Key of some fields": judged} {
		t.Run(name, func(t *testing.T) {
			lives(t, func(p *process) {
				for range 2 {
					p.start(q)
					p.shows("a", "b", "c")
					assert.Contains(t, p.began(), "transformed")
					p.end()
				}
				assert.Zero(t, p.files.Len())
			})
		})
	}
}

func TestObjectsWithOddNamesAreKeptAndOneThatReplacesAnotherIsOne(t *testing.T) {
	const tab, replaced = "b\tb", "c\uFFFD"
	synctest.Test(t, func(t *testing.T) {
		p := &process{T: t, Server: sim.New(), files: &sim.Files{}}
		for _, name := range []string{"a", tab, replaced} {
			p.Create("as", sim.Thing(name))
		}
		p.start()
		p.shows("a", tab, replaced)
		sim.After(5 * time.Minute) // it is written
		p.Remove("as", replaced)
		p.Create("as", sim.Thing(replaced)) // of another UID
		p.shows("a", tab, replaced)
		p.end()
		p.start()
		p.shows("a", tab, replaced)
		assert.Equal(t, "warm", p.began())
		p.end()
	})
}
