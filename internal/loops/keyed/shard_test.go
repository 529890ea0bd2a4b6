package keyed

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// someKeys are the keys that exist.
type someKeys []string

func (k *someKeys) Keys() []string             { return *k }
func (k *someKeys) Trigger(...string)          {}
func (k *someKeys) Sync(context.Context) error { return nil }

func TestG3AShardForgetsTheKeysOfOthersThatAreGone(t *testing.T) {
	keys := &someKeys{}
	s := &Shard{keys: keys, owed: map[string]bool{}, tidy: tidyOwed}
	s.Enter(t.Context(), "staying", 0)
	for i := range 1000 {
		key := fmt.Sprintf("passing-%04d", i)
		*keys = someKeys{key, "staying"}
		_, _, whose := s.Enter(t.Context(), key, 0)
		assert.Equal(t, Theirs, whose)
	}
	assert.LessOrEqual(t, len(s.owed), tidyOwed)
	assert.Contains(t, s.owed, "staying")
}
