package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/test/suite/rounds"
)

func TestAStepIsAsOldAsTheFirstLookAtIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, name := &Pulse{}, "the transform"
		look := func() time.Duration {
			d, _ := p.Look(time.Now())
			return d
		}
		assert.Zero(t, look())
		p.Begin()
		time.Sleep(time.Hour)
		assert.Zero(t, look(), "nobody has looked before")
		time.Sleep(time.Minute)
		assert.Equal(t, time.Minute, look())
		p.Do(&name)
		time.Sleep(time.Minute)
		d, doing := p.Look(time.Now())
		assert.Equal(t, 2*time.Minute, d)
		assert.Equal(t, name, doing)
		p.Do(nil)
		p.End()
		assert.Zero(t, look())
		p.Begin()
		assert.Zero(t, look(), "this is another step")
		time.Sleep(time.Second)
		p.End()
		p.Begin()
		assert.Zero(t, look(), "and this a third one")
	})
}

func TestANilPulseAndANilOpenNoteNothing(t *testing.T) {
	var p *Pulse
	p.Begin()
	p.Do(nil)
	p.End()
	var o *Open
	o.Begin("x")()
}

func TestWhatRunsLongestComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Open{}
		var ends []func()
		began := time.Now()
		for _, what := range []string{"a", "b", "c"} {
			ends = append(ends, o.Begin(what))
			time.Sleep(time.Second)
		}
		ends[1]()
		assert.Equal(t, []Running{{"a", began}, {"c", began.Add(2 * time.Second)}}, o.Running())
		ends[0]()
		ends[2]()
		assert.Empty(t, o.Running())
	})
}

func TestAStepAllocatesNothing(t *testing.T) {
	p, name := &Pulse{}, "x"
	assert.Zero(t, rounds.Allocs(100, func() {
		p.Begin()
		p.Do(&name)
		p.Do(nil)
		p.End()
	}))
}

func BenchmarkStep(b *testing.B) {
	p, name := &Pulse{}, "x"
	for b.Loop() {
		p.Begin()
		p.Do(&name)
		p.Do(nil)
		p.End()
	}
}
