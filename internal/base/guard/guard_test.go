package guard

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errOops = errors.New("oops")

func TestAPanicIsAnErrorWithItsValueAndItsStack(t *testing.T) {
	err := Call(func() error { panic("x") })
	require.EqualError(t, err, "panic: x")
	var p *Panic
	require.ErrorAs(t, err, &p)
	assert.Equal(t, "x", p.Value)
	assert.Contains(t, string(p.Stack), "guard_test.go")

	err = Named("the transform panicked", func() error { panic(errOops) })
	require.EqualError(t, err, "the transform panicked: oops", "the stack is no part of the message")
	require.Len(t, Attribute(err), 2)
	assert.Equal(t, "stack", Attribute(err)[0])
	assert.Contains(t, Attribute(err)[1], "guard_test.go")
	assert.Nil(t, Attribute(errOops))
	assert.NotErrorIs(t, err, errOops, "the value of a panic is not an error that f returned")
}

func TestWithoutAPanicTheResultStaysAsItIs(t *testing.T) {
	returns := func(err error) func() error { return func() error { return err } }
	for _, want := range []error{nil, errOops, &Panic{Value: "of another function"}} {
		handled := func(*Panic) error { return errors.New("it did not panic") }
		for _, err := range []error{Call(returns(want)), Named("f", returns(want)), Handle(returns(want), handled)} {
			assert.True(t, err == want, "%v", err)
		}
	}
}

func TestAHandlerMakesTheErrorOfAPanic(t *testing.T) {
	var seen *Panic
	err := Handle(func() error { panic("x") }, func(p *Panic) error { seen = p; return errOops })
	assert.Same(t, errOops, err)
	assert.Equal(t, "x", seen.Value)
	assert.NoError(t, Handle(func() error { panic("x") }, func(*Panic) error { return nil }))
}

func TestAFunctionThatEndsItsGoroutineIsNoPanic(t *testing.T) {
	ended, returned := make(chan struct{}), false
	go func() {
		defer close(ended)
		_ = Call(func() error { runtime.Goexit(); return nil })
		returned = true
	}()
	<-ended
	assert.False(t, returned)
}
