package prometheus

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/derive"
)

type numbers struct{ All []int }

// graphOf returns a graph that has had two Updates. Keys, values and errors in it are secret.
func graphOf(t testing.TB, name string) *derive.Graph[numbers] {
	t.Helper()
	g := derive.New[numbers](name, derive.Audit(100))
	of := derive.Slice(g, "numbers", func(s *numbers) []int { return s.All }, func(i int) string { return fmt.Sprint("secret-", i) })
	derive.Map(of, "parity", func(r *derive.Reader, _ string, i int) (string, error) {
		of.Len(r)
		if i == 0 {
			return "", errors.New("secret error")
		}
		return fmt.Sprint("secret ", i%2), nil
	})
	runs := 0
	derive.Compute(g, "impure", func(*derive.Reader) (int, error) { runs++; return runs, nil })
	for n := 3; n <= 4; n++ {
		s := &numbers{}
		for i := range n {
			s.All = append(s.All, i)
		}
		_, err := g.Update(s)
		require.NoError(t, err)
	}
	return g
}

func TestAGraphBecomesSeries(t *testing.T) {
	m := New()
	g := graphOf(t, "rows")
	m.Derived(g)
	for _, c := range []struct {
		of   *metric
		want map[string]float64
	}{
		{derivedUpdates, map[string]float64{",rows": 2}},
		{derivedImpure, map[string]float64{",rows": float64(g.Stats().ImpureTotal)}},
		{derivedEntries, map[string]float64{",rows,numbers": 4, ",rows,parity": 3, ",rows,impure": 1}},
		{derivedInvalid, map[string]float64{",rows,numbers": 0, ",rows,parity": 1, ",rows,impure": 0}},
		{derivedRuns, map[string]float64{",rows,numbers": 0, ",rows,parity": 7, ",rows,impure": 1}},
		{derivedEqual, map[string]float64{",rows,numbers": 0, ",rows,parity": 3, ",rows,impure": 0}},
	} {
		assert.Equal(t, c.want, values(t, m, c.of), c.of.name)
	}
	assert.Positive(t, g.Stats().ImpureTotal)
	assert.Equal(t, g.Stats().Nodes[1].Time.Seconds(), values(t, m, derivedSeconds)[",rows,parity"])
	assert.Empty(t, values(t, m, clients), "a graph is no client")
}

func TestACounterOfAGraphDoesNotFallWhenAnotherTakesItsPlace(t *testing.T) {
	m := New()
	m.Derived(graphOf(t, "rows"))
	m.Derived(graphOf(t, "others"))
	assert.Equal(t, map[string]float64{",rows": 2, ",others": 2}, values(t, m, derivedUpdates))
	m.Derived(graphOf(t, "rows"))
	assert.Equal(t, map[string]float64{",rows": 4, ",others": 2}, values(t, m, derivedUpdates))
	assert.Equal(t, map[string]float64{",rows": 4, ",others": 2}, values(t, m, derivedUpdates), "it is counted once")
	assert.Equal(t, 4.0, values(t, m, derivedEntries)[",rows,numbers"], "one graph has the name")
}

func TestTheSeriesOfGraphsHaveABound(t *testing.T) {
	m := New()
	for i := range maxNames + 2 {
		m.Derived(derive.New[numbers](fmt.Sprint("graph ", i)))
	}
	updates := values(t, m, derivedUpdates)
	assert.Len(t, updates, maxNames+1)
	assert.Contains(t, updates, ",other")
}
