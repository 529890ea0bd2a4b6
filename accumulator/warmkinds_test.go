package accumulator

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestSecretsAreKeptWithAKeyAlone(t *testing.T) {
	for name, c := range map[string]struct {
		key   []byte
		again string // how the next process begins
	}{
		"without a key": {nil, "list: Secrets are kept only with a key"},
		"with a key":    {make([]byte, files.KeyBytes), "warm"},
	} {
		t.Run(name, func(t *testing.T) {
			lives(t, func(p *process) {
				p.config.Warm = sim.Warm(p.files)
				p.config.Warm.Codec.Key = c.key
				p.Create("secrets", sim.Thing("s"))
				p.start(sim.Query("A", "secrets"))
				p.shows("s")
				sim.After(10 * time.Minute)
				p.end()
				assert.Equal(t, c.key != nil, p.files.Len() > 0)
				p.start(sim.Query("A", "secrets"))
				p.shows("s")
				assert.Equal(t, c.again, p.began())
			})
		})
	}
}

// TestG1G2WhatIsListedWhileNobodyKnowsOfWhichServerIsNotKept: it may be another server by now.
func TestG1G2WhatIsListedWhileNobodyKnowsOfWhichServerIsNotKept(t *testing.T) {
	lives(t, func(p *process) {
		var away error // the simulated server's lock guards it
		p.config.Warm = sim.Warm(p.files)
		p.config.Warm.Origin = func(context.Context, object.Resource) (files.Origin, error) {
			p.Mu.Lock()
			defer p.Mu.Unlock()
			if away != nil {
				return files.Origin{}, away
			}
			return sim.From, nil
		}
		relist := func(err error) {
			p.Mu.Lock()
			away = err
			p.Mu.Unlock()
			p.Touch("as", "a", 1)
			p.Relist()
			sim.After(10 * time.Minute)
			p.sameAsServer()
		}
		p.start()
		p.shows("a", "b", "c")
		sim.After(10 * time.Minute)
		assert.NotEmpty(t, p.files.Saved(), "it is known at first")
		relist(errors.New("no answer"))
		assert.Empty(t, p.files.Saved())
		relist(nil)
		assert.NotEmpty(t, p.files.Saved(), "it is known again")
	})
}

// TestG1G2AServerWithFewerObjectsThanWhatIsKeptIsAList: it was restored to before c, which is no
// witness.
func TestG1G2AServerWithFewerObjectsThanWhatIsKeptIsAList(t *testing.T) {
	afterALife(t, func(p *process) {
		p.files.Edit(files.Changes, headed(p.T, func(h *files.Head) {
			h.Witnesses = slices.DeleteFunc(h.Witnesses, func(w files.Witness) bool { return w.Name == "c" })
		}))
		p.Restore(p.Rev - 1)
		p.Create("bs", sim.Thing("other"))
		p.Create("bs", sim.Thing("another"))
		p.start()
		sim.After(5 * time.Minute)
		p.shows("a", "b")
		assert.Contains(p, p.began(), "the server has 2 objects")
	})
}

// unpacking is a source whose objects of one name do not decode when they come from a file.
type unpacking struct {
	source.Source
	source.Packer
	resource object.Resource
}

func (u unpacking) Unpack(raw []byte) (object.Object, error) {
	o, err := u.Packer.Unpack(raw)
	if err == nil && o.GetName() == "b" {
		key := object.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
		o = object.Undecoded(u.resource, key, o.GetUID(), o.GetResourceVersion(), nil, object.Original{}, errors.New("not of this type"))
	}
	return o, err
}

func TestG8AFileWithAnObjectThatDoesNotDecodeIsAList(t *testing.T) {
	afterALife(t, func(p *process) {
		plain := sim.Plain(p.Source)
		p.config.Source = func(r object.Resource, namespace string, form object.Form) source.Source {
			s := plain(r, namespace, form)
			return unpacking{s, s.(source.Packer), r}
		}
		p.start()
		p.shows("a", "b", "c")
		assert.Equal(p, "list: what is kept cannot be read: an object does not decode", p.began())
	})
}

// TestG1G2AFileOfAKindWithAnotherScopeIsAList: its objects are those of another kind.
func TestG1G2AFileOfAKindWithAnotherScopeIsAList(t *testing.T) {
	afterALife(t, func(p *process) {
		for _, name := range []string{"a", "b", "c"} {
			p.Remove("as", name)
		}
		global := sim.Thing("g")
		global.SetNamespace("")
		p.Create("as", global)
		q := sim.Query("A", "as")
		q.Resolve = func(context.Context) (object.Resource, error) {
			r := sim.Resource("as")
			r.Namespaced = false
			return r, nil
		}
		p.start(q)
		p.shows("g")
		assert.Contains(t, p.began(), "list: ")
	})
}

// TestG1G2AFileWithAnObjectThatCannotBeThereIsAList: no file says what the server would not.
func TestG1G2AFileWithAnObjectThatCannotBeThereIsAList(t *testing.T) {
	for name, c := range map[string]struct{ was, is, why string }{
		"of another kind":                   {`"kind":"Thing"`, `"kind":"Other"`, "an object of kind Other, where Thing was asked for"},
		"of another API group":              {`"apiVersion":"v1"`, `"apiVersion":"other/v1"`, "an object of kind Thing.other, where Thing was asked for"},
		"with a name that the API has none": {`"name":"b"`, `"name":"../b"`, "which cannot be"},
	} {
		t.Run(name, func(t *testing.T) {
			afterALife(t, func(p *process) {
				p.files.Edit(files.Base, recorded(p.T, func(raw []byte) []byte {
					return bytes.ReplaceAll(raw, []byte(c.was), []byte(c.is))
				}))
				p.start()
				p.shows("a", "b", "c")
				assert.Contains(p, p.began(), "list: what is kept cannot be read: ")
				assert.Contains(p, p.began(), c.why)
			})
		})
	}
}
