package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestVariantsAreFoundByName(t *testing.T) {
	some, err := Select("cr, kates")
	require.NoError(t, err)
	assert.Equal(t, []string{"kates", "cr"}, []string{some[0].Name, some[1].Name})
	all, err := Select("")
	require.NoError(t, err)
	assert.Len(t, all, len(Variants))
	_, err = Select("kates other")
	require.ErrorContains(t, err, `there is no operator "other", but: cr, `)
}

func TestLinesOfCodeAreNeitherBlankNorComments(t *testing.T) {
	assert.Equal(t, 6, LinesOf(`// Package a does nothing.
package a

/* import
   nothing */
var s = `+"`of\n\nthree`"+` // and a comment

func f() {} ; func g() {
}`))
	assert.Zero(t, LinesOf("// nothing"))
	for _, v := range Variants {
		assert.Greater(t, v.Lines(), 50, v.Name)
	}
}

// serve runs commands on an operator.
func serve(t *testing.T, run func(context.Context, *rest.Config, int, *Meter) error, commands ...Command) (answers []Answer) {
	t.Helper()
	var in, out bytes.Buffer
	for _, c := range commands {
		require.NoError(t, json.NewEncoder(&in).Encode(c))
	}
	require.NoError(t, Serve(t.Context(), Variant{run: run}, &rest.Config{}, &in, &out))
	for d := json.NewDecoder(&out); d.More(); {
		var a Answer
		require.NoError(t, d.Decode(&a))
		answers = append(answers, a)
	}
	return answers
}

func TestAnOperatorRunsFromStartUntilTheInputEnds(t *testing.T) {
	begun, ended := make(chan int, 1), false
	got := serve(t, func(ctx context.Context, config *rest.Config, workers int, m *Meter) error {
		assert.Negative(t, config.QPS)
		begun <- workers
		<-ctx.Done()
		ended = true
		return nil
	}, Command{Do: Start, Workers: 7}, Command{Do: Start}, Command{Do: Count}, Command{Do: Heap}, Command{Do: "dance"}, Command{Do: EndProfile})
	assert.Equal(t, 7, <-begun)
	assert.True(t, ended, "Serve returns after it")
	require.Len(t, got, 6)
	assert.Positive(t, got[0].CPU)
	assert.Contains(t, got[1].Error, "it runs")
	assert.Positive(t, got[2].PeakBytes)
	assert.NotZero(t, got[3].Bytes)
	assert.Contains(t, got[4].Error, "no such command")
	assert.Contains(t, got[5].Error, "none was started")
}

func TestAnOperatorThatEndsIsAnError(t *testing.T) {
	for _, failed := range []error{errors.New("broken"), nil} {
		s := &server{variant: Variant{run: func(context.Context, *rest.Config, int, *Meter) error { return failed }}, config: &rest.Config{}}
		s.ended = make(chan error, 1)
		_, err := s.do(t.Context(), Command{Do: Start})
		require.NoError(t, err)
		s.ended <- <-s.ended // it has ended
		_, err = s.do(t.Context(), Command{Do: Count})
		require.ErrorIs(t, err, errEnded)
		if failed != nil {
			require.ErrorIs(t, err, failed)
		}
		assert.False(t, s.running)
	}
}
