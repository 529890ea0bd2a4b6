package query

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestALifeGoesAsItsDrawingSays(t *testing.T) {
	drawn := map[life]map[event]life{
		seeking: {missing: absent, served: filling},
		absent:  {served: filling},
		filling: {taken: shown},
		shown:   {untaken: filling},
	}
	for _, l := range []life{seeking, absent, filling, shown} {
		for _, e := range []event{missing, served, taken, untaken} {
			want, moves := drawn[l][e]
			if !moves {
				want = l
			}
			assert.Equal(t, want, l.after(e), "%d after %d", l, e)
			over := l.after(closing)
			assert.True(t, over.over())
			assert.Equal(t, over, over.after(e), "a query that has closed goes no further")
			assert.Equal(t, l.known(), over.known(), "it keeps what it knew")
			assert.Equal(t, l.missing(), over.missing())
		}
	}
}
