package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAStoreThatIsWrittenForLongForgetsOldVersions(t *testing.T) {
	s := New()
	var last Change
	for i := range 5 * mostKept {
		var err error
		last, err = s.Write(Key{Resource: "things", Name: "a"}, func(Object, int64) (map[string]any, bool, error) {
			return map[string]any{"i": int64(i)}, true, nil
		})
		require.NoError(t, err)
		assert.LessOrEqual(t, len(s.log), 2*mostKept)
	}
	_, _, _, err := s.Since("things", "", 1)
	assert.ErrorIs(t, err, ErrCompacted)
	_, _, err = s.List("things", "", s.Compacted()-1)
	assert.ErrorIs(t, err, ErrCompacted)

	changes, until, _, err := s.Since("things", "", s.Compacted())
	require.NoError(t, err)
	assert.Len(t, changes, int(last.RV-s.Compacted()), "nothing is missing since the oldest version")
	assert.GreaterOrEqual(t, len(changes), mostKept)
	assert.Equal(t, last.RV, until)
	old, _, err := s.List("things", "", s.Compacted())
	require.NoError(t, err)
	assert.Equal(t, changes[0].Old, old[0].New)
}

// put writes an object with a content, nil to delete it.
func put(t *testing.T, s *Store, key Key, content map[string]any) Change {
	t.Helper()
	c, err := s.Write(key, func(_ Object, rv int64) (map[string]any, bool, error) {
		require.Equal(t, s.rev+1, rv)
		return content, true, nil
	})
	require.NoError(t, err)
	return c
}

func keysOf(all []Change) (keys []string) {
	for _, c := range all {
		keys = append(keys, c.Key.Resource+" "+c.Key.Path())
	}
	return keys
}

func TestAListShowsTheStateOfItsVersion(t *testing.T) {
	s := New()
	one, two := Key{"things", "b", "one"}, Key{"things", "a", "two"}
	first := put(t, s, one, map[string]any{"v": 1})
	second := put(t, s, two, map[string]any{"v": 2})
	put(t, s, Key{"others", "", "x"}, map[string]any{})
	third := put(t, s, one, map[string]any{"v": 3})
	last := put(t, s, two, nil)
	assert.Equal(t, last.RV, s.RV())
	for atRV, want := range map[int64][]Change{
		1:         {},
		first.RV:  {{RV: first.RV, Key: one, New: first.New}},
		second.RV: {{RV: second.RV, Key: two, New: second.New}, {RV: first.RV, Key: one, New: first.New}},
		third.RV:  {{RV: second.RV, Key: two, New: second.New}, {RV: third.RV, Key: one, New: third.New}},
		last.RV:   {{RV: third.RV, Key: one, New: third.New}},
		0:         {{RV: third.RV, Key: one, New: third.New}},
	} {
		all, at, err := s.List("things", "", atRV)
		require.NoError(t, err)
		assert.Equal(t, want, all, "%d", atRV)
		if atRV == 0 {
			atRV = last.RV
		}
		assert.Equal(t, atRV, at)
	}
	all, _, err := s.List("things", "a", third.RV)
	require.NoError(t, err)
	assert.Equal(t, []string{"things a/two"}, keysOf(all))
	_, newest, err := s.List("things", "", last.RV+1)
	require.ErrorIs(t, err, ErrFuture)
	assert.Equal(t, last.RV, newest)
	all, rv, _ := s.Everything()
	assert.ElementsMatch(t, []string{"things b/one", "others x"}, keysOf(all))
	assert.Equal(t, last.RV, rv)
}

func TestChangesSinceAVersionAreThoseAfterIt(t *testing.T) {
	s := New()
	key := Key{"things", "a", "one"}
	first := put(t, s, key, map[string]any{"v": 1})
	second := put(t, s, key, map[string]any{"v": 2})
	other := put(t, s, Key{"others", "b", "x"}, map[string]any{})
	assert.Equal(t, Change{RV: second.RV, Key: key, Old: first.New, New: second.New}, second)
	for _, c := range []struct {
		resource, namespace string
		after               int64
		want                []Change
	}{
		{"", "", 1, []Change{first, second, other}}, {"things", "", first.RV, []Change{second}}, {"", "b", 1, []Change{other}},
		{"things", "b", 1, nil}, {"", "", other.RV, nil}, {"", "", other.RV + 5, nil},
	} {
		all, until, _, err := s.Since(c.resource, c.namespace, c.after)
		require.NoError(t, err)
		assert.Equal(t, c.want, all, c)
		assert.Equal(t, max(other.RV, c.after), until)
	}
	s.Compact()
	_, _, _, err := s.Since("", "", second.RV)
	require.ErrorIs(t, err, ErrCompacted)
	_, _, _, err = s.Since("", "", other.RV)
	require.NoError(t, err, "the newest version is known")
	_, _, err = s.List("things", "", second.RV)
	require.ErrorIs(t, err, ErrCompacted)
}

func TestAWriteThatChangesNothingMakesNoVersion(t *testing.T) {
	s := New()
	key := Key{"things", "", "one"}
	is := put(t, s, key, map[string]any{"v": 1})
	rv, more := s.Newest()
	failed := errors.New("no")
	for _, err := range []error{nil, failed} {
		c, got := s.Write(key, func(old Object, _ int64) (map[string]any, bool, error) {
			assert.Equal(t, is.New, old)
			return map[string]any{"v": 2}, false, err
		})
		assert.Equal(t, err, got)
		assert.Equal(t, Change{RV: rv, Key: key, Old: is.New, New: is.New}, c)
	}
	o, there := s.Get(key)
	assert.True(t, there)
	assert.Equal(t, is.New, o)
	select {
	case <-more:
		t.Error("nothing was written")
	default:
	}
	put(t, s, key, nil)
	<-more
	_, there = s.Get(key)
	assert.False(t, there)
	_, _, more, err := s.Since("", "", s.RV())
	require.NoError(t, err)
	_, _, same := s.Everything()
	put(t, s, key, map[string]any{})
	<-more
	<-same
}
