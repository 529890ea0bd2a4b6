package trial_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/internal/test/suite/judged"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// controls is a program with a controller of config maps.
func controls(reconcile func(ctx context.Context, c *kates.Client, cm *kates.ConfigMap) (controller.Result, error), options ...kates.RunOption) katestest.Program {
	return func(ctx context.Context, config *rest.Config) error {
		c, err := kates.NewClientFromRESTConfig(config, quiet)
		if err != nil {
			return err
		}
		defer c.Close()
		type parts struct {
			Root *kates.ConfigMap `kates:",root"`
		}
		x, err := controller.New(c, "x", func(ctx context.Context, p *parts) (controller.Result, error) {
			return reconcile(ctx, c, p.Root)
		}, options...)
		if err != nil {
			return err
		}
		return x.Run(ctx)
	}
}

// notes is a program that writes a value into each object that it sees.
func notes(value func() string) katestest.Program {
	return controls(func(ctx context.Context, c *kates.Client, cm *kates.ConfigMap) (controller.Result, error) {
		_, err := kates.Modify(ctx, c, cm, func(cm *kates.ConfigMap) error {
			cm.Annotations = map[string]string{"seen": value()}
			return nil
		})
		return controller.Done, err
	})
}

func TestAProgramThatWakesItselfDoesNotSettle(t *testing.T) {
	var n atomic.Int64
	for name, value := range map[string]func() string{
		"the time":                  func() string { return time.Now().Format(time.RFC3339Nano) },
		"the time, in milliseconds": func() string { return fmt.Sprint(time.Now().UnixMilli()) },
		"a random text":             rand.Text,
		"a counter":                 func() string { return fmt.Sprint(n.Add(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				failure := judged.Failure(t, func(tb testing.TB) { katestest.Settles(tb, newServer(t, input), notes(value)) })
				assert.Contains(t, failure, "the program does not settle: it has made more than 100 calls. It is in a loop")
			})
		})
	}
}

// TestATimeInWholeSecondsIsFoundByARestart: within the same second the second write is the same.
func TestATimeInWholeSecondsIsFoundByARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server, program := newServer(t, input), notes(func() string { return time.Now().Format(time.RFC3339) })
		katestest.Settles(t, server, program)
		failure := judged.Failure(t, func(tb testing.TB) { katestest.Settles(tb, server, program, katestest.CallLimit(0)) })
		assert.Contains(t, failure, "the program does not settle: it has made more than 0 calls")
	})
}

func TestAProgramThatIsIdleBecauseItFailsHasNotSettled(t *testing.T) {
	bug := func(context.Context, *kates.Client, *kates.ConfigMap) (controller.Result, error) { panic("a bug") }
	refuses := func(context.Context, *kates.Client, *kates.ConfigMap) (controller.Result, error) {
		return controller.Done, errors.New("it cannot be")
	}
	whole := func(f func(context.Context, *struct{ ConfigMaps []*kates.ConfigMap }) error) katestest.Program {
		return func(ctx context.Context, config *rest.Config) error {
			c, err := kates.NewClientFromRESTConfig(config, quiet)
			if err != nil {
				return err
			}
			defer c.Close()
			return kates.Run(ctx, c, f)
		}
	}
	once := func(ctx context.Context, c *kates.Client, cm *kates.ConfigMap) (controller.Result, error) {
		if cm.Name == "b" {
			panic("a bug")
		}
		return controller.Done, nil
	}
	for name, is := range map[string]struct {
		program katestest.Program
		says    []string
	}{
		"it panics":              {controls(bug), []string{"the function of x panics at each call", "a bug"}},
		"it panics for one key":  {controls(once), []string{"the function of x panics at each call", "a bug"}},
		"it returns an error":    {controls(refuses), []string{"no call of the function of x has succeeded", "it cannot be"}},
		"a run panics":           {whole(func(context.Context, *struct{ ConfigMaps []*kates.ConfigMap }) error { panic("a bug") }), []string{"panics at each call", "a bug"}},
		"a run returns an error": {whole(func(context.Context, *struct{ ConfigMaps []*kates.ConfigMap }) error { return errors.New("no") }), []string{"has succeeded", "no"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				failure := judged.Failure(t, func(tb testing.TB) {
					katestest.Settles(tb, newServer(t, input, source("b", nil)), is.program)
				})
				assert.Contains(t, failure, "the program makes no calls, and its work is not done: ")
				for _, text := range is.says {
					assert.Contains(t, failure, text)
				}
				crashed := judged.Failure(t, func(tb testing.TB) {
					katestest.CrashAnywhere(tb, func() *katestest.Server { return newServer(t, input, source("b", nil)) }, is.program)
				})
				assert.Contains(t, crashed, "its work is not done")
			})
		})
	}
}

func TestAProgramWhoseWatchIsNeverCompleteHasNotSettled(t *testing.T) {
	work := controls(func(context.Context, *kates.Client, *kates.ConfigMap) (controller.Result, error) {
		return controller.Done, nil
	})
	watches := func(ctx context.Context, config *rest.Config) error {
		c, err := kates.NewClientFromRESTConfig(config, quiet)
		if err != nil {
			return err
		}
		defer c.Close()
		s, err := kates.Watch[struct{ ConfigMaps []*kates.ConfigMap }](ctx, c)
		if err != nil {
			return err
		}
		for _, err := range s.All(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for name, program := range map[string]katestest.Program{"a controller": work, "a loop of its own": watches} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, faults := newServer(t, input), katestest.NewFaults(t, 1)
				s.Config.Wrap(faults.Wrap)
				faults.On(katestest.Match{Verb: "list"}).Status(403, "", 0)
				faults.On(katestest.Match{Verb: "watch"}).Status(403, "", 0)
				failure := judged.Failure(t, func(tb testing.TB) { katestest.Settles(tb, s, program) })
				assert.Contains(t, failure, "the program makes no calls, and its work is not done: ")
				assert.Contains(t, failure, "configmaps")
			})
		})
	}
}

func TestWhatIsNoFailureSettles(t *testing.T) {
	nothing := func(context.Context, *kates.Client, *kates.ConfigMap) (controller.Result, error) {
		return controller.Done, nil
	}
	for name, program := range map[string]katestest.Program{
		"an error of one key of two": controls(func(_ context.Context, _ *kates.Client, cm *kates.ConfigMap) (controller.Result, error) {
			if cm.Name == "b" {
				return controller.Done, errors.New("it waits for something")
			}
			return controller.Done, nil
		}),
		"it asks to be called again for ever": controls(func(context.Context, *kates.Client, *kates.ConfigMap) (controller.Result, error) {
			return controller.RequeueAfter(time.Minute), nil
		}),
		"nothing to do": controls(nothing),
		"without a watch": func(ctx context.Context, config *rest.Config) error {
			c, err := kates.NewClientFromRESTConfig(config, quiet)
			if err != nil {
				return err
			}
			defer c.Close()
			<-ctx.Done()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { katestest.Settles(t, newServer(t, input, source("b", nil)), program) })
		})
	}
}
