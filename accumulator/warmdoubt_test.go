package accumulator

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// headed writes a file anew, with another head, so that it is damaged nowhere.
func headed(t *testing.T, change func(*files.Head)) func([]byte) []byte {
	return rewritten(t, change, func(raw []byte) []byte { return raw })
}

// recorded writes a file anew, with other objects.
func recorded(t *testing.T, change func([]byte) []byte) func([]byte) []byte {
	return rewritten(t, func(*files.Head) {}, change)
}

func rewritten(t *testing.T, change func(*files.Head), record func([]byte) []byte) func([]byte) []byte {
	return func(file []byte) []byte {
		codec := sim.Warm(nil).Codec
		r, err := codec.Open(bytes.NewReader(file))
		require.NoError(t, err)
		change(&r.Head)
		var out bytes.Buffer
		w, err := codec.NewWriter(&out, r.Head)
		require.NoError(t, err)
		for {
			chunk, err := r.Next()
			require.NoError(t, err)
			if chunk == nil {
				break
			}
			require.NoError(t, chunk.Each(func(one files.Record) error {
				if one.Raw == nil {
					return w.Remove(one.Namespace, one.Name)
				}
				return w.Put(record(one.Raw))
			}))
		}
		require.NoError(t, w.Close())
		return out.Bytes()
	}
}

func TestG1G2AFileWhoseHeadDoesNotSuitIsAListAndSaysWhy(t *testing.T) {
	for name, doubt := range map[string]struct {
		file   string
		change func(*files.Head)
		why    string // empty: it suits
	}{
		"nothing":                       {files.Changes, func(*files.Head) {}, ""},
		"an object less":                {files.Changes, func(h *files.Head) { h.Objects++ }, "has 3 objects, and should have 4"},
		"an object more":                {files.Changes, func(h *files.Head) { h.Objects-- }, "has 3 objects, and should have 2"},
		"no version":                    {files.Changes, func(h *files.Head) { h.Position = "" }, "has no version"},
		"from the future":               {files.Changes, func(h *files.Head) { h.Saved = h.Saved.Add(2 * time.Hour) }, "old"},
		"changes of another base":       {files.Changes, func(h *files.Head) { h.Base = "other" }, "do not belong together"},
		"the base of another query":     {files.Base, func(h *files.Head) { h.Labels = "a=b" }, "do not belong together"},
		"changes of another query":      {files.Changes, func(h *files.Head) { h.Labels = "a=b" }, "another query"},
		"packed otherwise":              {files.Changes, func(h *files.Head) { h.Packing = "other" }, "the program's types"},
		"witnesses that tell of no one": {files.Changes, func(h *files.Head) { h.Witnesses = nil }, "has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			afterALife(t, func(p *process) {
				p.files.Edit(doubt.file, headed(p.T, doubt.change))
				p.Create("bs", sim.Thing("other"))
				p.start()
				sim.After(5 * time.Minute)
				p.sameAsServer()
				if doubt.why == "" {
					assert.Equal(p, "warm", p.began())
					return
				}
				assert.Contains(p, p.began(), "list: ")
				assert.Contains(p, p.began(), doubt.why)
			})
		})
	}
}

// TestG4AWarmStartFromBeforeAnOwnWriteIsAList: the server was restored after that write.
func TestG4AWarmStartFromBeforeAnOwnWriteIsAList(t *testing.T) {
	afterALife(t, func(p *process) {
		p.Create("bs", sim.Thing("other"))
		backup := p.Rev
		p.Failing(func(string, string) error { return errors.New("away") })
		p.start()
		synctest.Wait()
		sim.NewClient(p.Server, p.streams).Put("as", sim.Thing("own"), 0)
		p.Restore(backup)
		p.Failing(nil)
		sim.After(5 * time.Minute)
		assert.Contains(p, p.began(), "older than that of an own write")
	})
}

// TestG5WhatChangedBeforeAWarmStartIsInTheNextFilesToo: these are changes of the same base.
func TestG5WhatChangedBeforeAWarmStartIsInTheNextFilesToo(t *testing.T) {
	afterALife(t, func(p *process) {
		p.Touch("as", "a", 7)
		p.Remove("as", "b")
		for range 3 {
			p.start()
			p.sameAsServer()
			assert.Equal(p, "warm", p.began())
			p.end()
		}
	})
}
