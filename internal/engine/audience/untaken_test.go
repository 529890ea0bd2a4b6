package audience

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/object"
)

// TestG1G2G3AReaderHasWhatIsShownHoweverItTakes changes a store at random, and takes at random. A
// batch makes of what the reader has what the store has. What waits is bounded by keys, and each
// change is taken, waits, or was coalesced.
func TestG1G2G3AReaderHasWhatIsShownHoweverItTakes(t *testing.T) {
	keys := []object.Key{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	rapid.Check(t, func(rt *rapid.T) {
		u := NewUntaken(rapid.Bool().Draw(rt, "per key"))
		store, reader := map[object.Key]object.Object{}, map[object.Key]object.Object{}
		var changed, taken uint64
		take := func() {
			whole := u.Whole()
			b := u.Take(func() (all []Change) {
				for k, o := range store {
					all = append(all, Change{k, o})
				}
				return all
			}, func(k object.Key) object.Object { return store[k] })
			assert.Equal(rt, whole, b.Extent == Everything)
			if whole {
				clear(reader)
			} else {
				taken += uint64(len(b.Changes))
			}
			for _, c := range b.Changes {
				_, knew := reader[c.Key]
				if assert.True(rt, knew || c.Object != nil, "the reader hears of the end of what it never had"); c.Object == nil {
					delete(reader, c.Key)
				} else {
					reader[c.Key] = c.Object
				}
			}
			assert.Equal(rt, store, reader)
			assert.False(rt, u.News(true))
		}
		take() // from here on each change is accounted for
		rt.Repeat(map[string]func(*rapid.T){
			"change": func(rt *rapid.T) {
				key := rapid.SampledFrom(keys).Draw(rt, "key")
				var after object.Object
				if rapid.Bool().Draw(rt, "there") {
					o := &unstructured.Unstructured{Object: map[string]any{}}
					o.SetName(key.Name)
					o.SetResourceVersion(fmt.Sprint(changed))
					after = o
				}
				before := store[key]
				if before == nil && after == nil {
					return
				}
				if delete(store, key); after != nil {
					store[key] = after
				}
				whole := u.Whole()
				if marked := u.Mark(key, before, after); !whole {
					changed++
					assert.Equal(rt, marked == One, u.IsDirty(key))
				}
			},
			"take": func(*rapid.T) { take() },
			"untake": func(*rapid.T) {
				u.Untake()
				assert.False(rt, u.Counts().Since.IsZero(), "everything waits")
				assert.True(rt, u.Nothing())
				take()
				changed, taken = u.Counts().Changes, u.Counts().Changes-u.Counts().Coalesced
			},
			"restart": func(*rapid.T) {
				u.Restart()
				assert.False(rt, u.Counts().Since.IsZero(), "everything waits")
				assert.False(rt, u.Nothing(), "what the reader has stays")
				take()
				changed, taken = u.Counts().Changes, u.Counts().Changes-u.Counts().Coalesced
			},
			"": func(rt *rapid.T) {
				c := u.Counts()
				assert.LessOrEqual(rt, c.Dirty, len(keys))
				assert.Equal(rt, changed, c.Changes)
				assert.Equal(rt, c.Changes, taken+c.Coalesced+uint64(c.Dirty))
				assert.Equal(rt, c.Dirty > 0, !c.Since.IsZero(), "since when something waits")
				known := maps.Clone(reader)
				for _, k := range keys {
					if store[k] != known[k] {
						assert.True(rt, u.IsDirty(k), "a change of %s is forgotten", k)
					}
				}
			},
		})
	})
}
