package accumulator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// doubt is something that makes a file doubtful, done between two processes.
type doubt struct {
	do  func(p *process)
	why string
}

func cutOff(file []byte) []byte { return file[:len(file)/2] }

func damaged(file []byte) []byte {
	file[len(file)-30] ^= 1
	return file
}

func lost([]byte) []byte { return nil }

// from changes the origin that the next process sees.
func from(change func(*files.Origin)) func(*process) {
	return func(p *process) {
		p.config.Warm = sim.Warm(p.files)
		p.config.Warm.Origin = func(context.Context, object.Resource) (files.Origin, error) {
			o := sim.From
			change(&o)
			return o, nil
		}
	}
}

// failing makes a request fail once.
func failing(verb string, err error) func(*process) {
	return func(p *process) {
		p.Create("bs", sim.Thing("other"))
		var failed atomic.Bool // witnesses are asked for side by side
		p.Failing(func(v, _ string) error {
			if v != verb || failed.Swap(true) {
				return nil
			}
			return err
		})
	}
}

var gr = schema.GroupResource{Resource: "as"}

var doubts = map[string]doubt{
	"no base":                  {func(p *process) { p.files.Edit(files.Base, lost) }, "cannot be read"},
	"no changes":               {func(p *process) { p.files.Edit(files.Changes, lost) }, "nothing is kept"},
	"a damaged base":           {func(p *process) { p.files.Edit(files.Base, damaged) }, "damaged"},
	"damaged changes":          {func(p *process) { p.files.Edit(files.Changes, damaged) }, "damaged"},
	"a base that is cut off":   {func(p *process) { p.files.Edit(files.Base, cutOff) }, "damaged"},
	"changes that are cut off": {func(p *process) { p.files.Edit(files.Changes, cutOff) }, "damaged"},
	"files that are no files":  {func(p *process) { p.files.Edit("", func([]byte) []byte { return []byte("x") }) }, "cannot be read"},
	"another cluster":          {from(func(o *files.Origin) { o.Cluster = "x" }), "nothing is kept"},
	"another server":           {from(func(o *files.Origin) { o.Server = "v2" }), "another version of the server"},
	"another schema":           {from(func(o *files.Origin) { o.Schema = "2" }), "another schema"},
	"an old file":              {func(*process) { sim.After(warm.FileMost + time.Minute) }, "old"},
	"a store that fails":       {func(p *process) { p.files.Failing(func(string, string) error { return errors.New("no disk") }) }, "no disk"},
	"a file that is too large": {func(p *process) { p.config.Warm = sim.Warm(p.files); p.config.Warm.Codec.Most = 100 }, "larger"},
	"a key that was not before": {func(p *process) {
		p.config.Warm = sim.Warm(p.files)
		p.config.Warm.Codec.Key = make([]byte, files.KeyBytes)
	}, "not encrypted"},
	"two files of two times": {func(p *process) {
		old := p.files.Copy()
		p.Touch("as", "a", 1)
		p.Mu.Lock()
		p.Oldest = p.Rev
		p.Mu.Unlock()
		p.start()
		p.sameAsServer()
		p.end()
		p.Mu.Lock()
		p.Oldest = 0
		p.Mu.Unlock()
		p.files.Edit(files.Base, func([]byte) []byte { return old.Only(files.Base) })
	}, "do not belong together"},
	"a version that the server has forgotten": {func(p *process) {
		p.Touch("as", "a", 1)
		p.Mu.Lock()
		p.Oldest = p.Rev
		p.Mu.Unlock()
	}, "forgotten"},
	"a restored server": {func(p *process) { p.Restore(p.Rev - 1) }, "it was restored"},
	"a restored server that has passed the version": {func(p *process) {
		p.Restore(p.Rev - 1) // c is not there yet
		p.Touch("as", "a", 1)
		p.Touch("as", "b", 1)
	}, "the server has"},
	"a restored server with as many objects": {func(p *process) {
		p.Restore(p.Rev - 1)
		p.Create("as", sim.Thing("d"))
		p.Create("bs", sim.Thing("other"))
	}, "other objects"},
	"a restored server with an object more": {func(p *process) {
		// The old history deletes x, and the new one does not.
		p.Create("as", sim.Thing("x"))
		p.Mu.Lock()
		backup := p.Rev
		p.Mu.Unlock()
		p.Remove("as", "x")
		p.start()
		p.shows("a", "b", "c")
		p.end()
		p.Restore(backup)
		p.Create("bs", sim.Thing("other"))
		p.Create("bs", sim.Thing("another"))
	}, "the server has 4 objects"},
	"everything has changed": {func(p *process) {
		for _, name := range []string{"a", "b", "c"} {
			p.Touch("as", name, 1)
		}
	}, "has changed"},
	"a watch that is refused":   {failing("watch", apierrors.NewForbidden(gr, "", nil)), "forbidden"},
	"a list that is refused":    {failing("list", apierrors.NewForbidden(gr, "", nil)), "forbidden"},
	"a server that is busy":     {failing("watch", apierrors.NewInternalError(errors.New("busy"))), "busy"},
	"a watch without bookmarks": {func(p *process) { p.Create("bs", sim.Thing("other")); p.Bookmarked = func(int) int { return 0 } }, "within 10s"},
	"a server that does not say which it is": {func(p *process) {
		p.config.Warm = sim.Warm(p.files)
		p.config.Warm.Origin = func(context.Context, object.Resource) (files.Origin, error) {
			return files.Origin{}, fmt.Errorf("%w: no", warm.ErrNoOrigin)
		}
	}, "which cluster"},
}

func TestG1G2WhateverIsInDoubtIsAListAndSaysWhy(t *testing.T) {
	for name, d := range doubts {
		t.Run(name, func(t *testing.T) {
			afterALife(t, func(p *process) {
				d.do(p)
				lists := opened(p.Server)
				p.start()
				sim.After(5 * time.Minute)
				p.sameAsServer()
				assert.Contains(p, p.began(), d.why)
				assert.True(p, strings.HasPrefix(p.began(), "list: "), p.began())
				assert.Greater(p, opened(p.Server), lists)
				p.Touch("as", "a", 9)
				p.sameAsServer()
			})
		})
	}
}
