package source

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestTheSizeOfAPageFollowsTheBytesOfItsObjects(t *testing.T) {
	const kib = 1 << 10
	left := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		items, each int64
		took        time.Duration
		remaining   *int64
		want        int64
	}{
		"nothing is known":                {0, 0, 0, nil, 500},
		"no bytes were counted":           {500, 0, 0, left(4500), 500},
		"a kilobyte each":                 {500, kib, 0, nil, 4096},
		"hundred kilobytes each":          {500, 100 * kib, 0, nil, pageLeast},
		"twenty kilobytes each":           {500, 20 * kib, 0, nil, 204},
		"a few bytes each":                {500, 10, 0, nil, PageMost},
		"the rest is one page":            {500, kib, 0, left(4500), 4500},
		"the rest is a page and a half":   {500, kib, 0, left(6200), 3100},
		"the rest is two pages":           {500, 2 * kib, 0, left(4500), 2250},
		"the rest is more than a page":    {500, kib / 8, 0, left(9500), PageMost},
		"the rest is small":               {500, kib, 0, left(7), 4096},
		"the rest is less than nothing":   {500, kib, 0, left(-7), 4096},
		"the rest is more than there is":  {500, kib, 0, left(math.MaxInt64), 4096},
		"the first page has taken a time": {500, kib, 5 * time.Second, nil, 1000},
		"the first page has taken long":   {500, kib, time.Minute, nil, 500},
		"large objects that come slowly":  {500, 20 * kib, time.Minute, nil, 204},
	} {
		t.Run(name, func(t *testing.T) {
			s := sizes{}
			s.add(c.items, c.items*c.each, c.took, nil)
			assert.Equal(t, c.want, s.next(500, c.remaining))
		})
	}
}

// limits are the sizes of the pages that a list of a book asks for.
func limits(t *testing.T, b *book, size int64) (asked []int64) {
	t.Helper()
	r := Requests{Source: bookSource{Plain: Plain{}, book: b}}
	_, err := r.ListInPages(t.Context(), size, func() func(runtime.Object) error {
		return func(runtime.Object) error { return nil }
	})
	assert.NoError(t, err)
	for _, o := range b.asked {
		asked = append(asked, o.Limit)
	}
	return asked
}

type bookSource struct {
	Plain
	*book
}

// TestOnePageAheadHasTheSizeOfThoseThatCame: the first two pages come one after the other, and the
// rest one ahead.
func TestOnePageAheadHasTheSizeOfThoseThatCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := leaf{items: 500, bytes: 500 << 10}
		assert.Equal(t, []int64{500, 4096, 4096, 4096}, limits(t, chain(4, page), 0))
		assert.Equal(t, []int64{500, 500, 500, 500}, limits(t, chain(4, page), 500), "a size that somebody has chosen stays")
		assert.Equal(t, []int64{7, 7}, limits(t, chain(2, leaf{items: 7, bytes: 1}), 7))
		left := int64(6200)
		page.remaining, page.last = &left, true
		assert.Equal(t, []int64{500, 3100}, limits(t, chain(2, page), 0))
		page.last = false
		assert.Equal(t, []int64{500, 3100, 3100}, limits(t, chain(3, page), 0))
		page.remaining, page.read = nil, 5*time.Second
		assert.Equal(t, []int64{500, 1000, 1000}, limits(t, chain(3, page), 0), "they come slowly")
	})
}
