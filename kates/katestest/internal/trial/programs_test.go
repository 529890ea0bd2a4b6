package trial_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/judged"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// copies is a program that copies each config map with the label copy, as wanted.
func copies(reconcile func(ctx context.Context, c *kates.Client, of *kates.ConfigMap) error) katestest.Program {
	return func(ctx context.Context, config *rest.Config) error {
		c, err := kates.NewClientFromRESTConfig(config, quiet)
		if err != nil {
			return err
		}
		defer c.Close()
		type parts struct{ Sources []*kates.ConfigMap }
		return kates.RunEach(ctx, c, func(ctx context.Context, key string, p *parts) error {
			for _, of := range p.Sources {
				if err := reconcile(ctx, c, of); err != nil {
					return err
				}
			}
			return nil
		}, kates.Query{Name: "Sources", LabelSelector: "copy", Key: kates.ByNamespacedName})
	}
}

func configMap(name string, data map[string]string) *kates.ConfigMap {
	cm := &kates.ConfigMap{TypeMeta: kates.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: data}
	cm.Namespace, cm.Name = "default", name
	return cm
}

func source(name string, data map[string]string) *kates.ConfigMap {
	cm := configMap(name, data)
	cm.Labels = map[string]string{"copy": "yes"}
	return cm
}

func copyOnce(ctx context.Context, c *kates.Client, of *kates.ConfigMap) error {
	return c.Apply(ctx, configMap(of.Name+"-copy", of.Data), nil, kates.ForceOwnership())
}

// bubble runs a test of an assertion in a bubble.
func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func newServer(t testing.TB, objects ...kates.Object) *katestest.Server {
	return katestest.NewServer(t, katestest.WithObjects(objects...))
}

// quiet are options of a client that logs nothing.
var quiet = kates.WithLogger(slog.New(slog.DiscardHandler))

var input = source("a", map[string]string{"x": "1"})

func TestAProgramThatIsDoneSettles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newServer(t, input)
		katestest.Settles(t, server, copies(copyOnce), katestest.CallLimit(1))
		got := configMap("a-copy", nil)
		require.NoError(t, server.Client(t).Get(t.Context(), got, got))
		assert.Equal(t, "1", got.Data["x"])
	})
}

func TestASettledProgramAnswersTheNextInput(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newServer(t, input)
		running := katestest.Start(t, server, copies(copyOnce), katestest.CallLimit(1))
		running.Settles()
		running.Settles(katestest.CallLimit(0))
		user, got := server.Client(t), configMap("b-copy", nil)
		require.NoError(t, user.Create(t.Context(), source("b", nil), nil))
		running.Settles()
		require.NoError(t, user.Get(t.Context(), got, got))
		running.Stop()
		running.Stop()
	})
}

func TestTheLoopOfAProgramIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.Settles(tb, newServer(t, input), copies(func(ctx context.Context, c *kates.Client, of *kates.ConfigMap) error {
				n++
				if err := c.Apply(ctx, configMap("count", map[string]string{"n": fmt.Sprint(n)}), nil); err != nil {
					return err
				}
				_, err := kates.Modify(ctx, c, of, func(cm *kates.ConfigMap) error {
					cm.Annotations = map[string]string{"seen": fmt.Sprint(n)}
					return nil
				})
				return err
			}), katestest.CallLimit(19))
		})
		assert.Equal(t, `the program does not settle: it has made more than 19 calls. It is in a loop: it repeats a round of 2, 9 times so far. The last round:
  patch ConfigMap default/count: 200
      it changes  data.n: "9" -> "10"
      since the round before  data.n: "9" -> "10"
  patch ConfigMap default/a: 200
      it changes  metadata.annotations.seen: "9" -> "10"
      since the round before  metadata.annotations.seen: "9" -> "10"`, failure)
	})
}

func TestTwoWritersWhoUndoEachOthersWorkAreARoundOfTwo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wants := func(x string) func(context.Context, *kates.Client, *kates.ConfigMap) error {
			return func(ctx context.Context, c *kates.Client, of *kates.ConfigMap) error {
				if of.Data["x"] == x {
					return nil
				}
				return c.Apply(ctx, source(of.Name, map[string]string{"x": x}), nil, kates.ForceOwnership())
			}
		}
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.Settles(tb, newServer(t, input), func(ctx context.Context, config *rest.Config) error {
				other := make(chan error, 1)
				go func() { other <- copies(wants("A"))(ctx, config) }()
				return errors.Join(copies(wants("B"))(ctx, config), <-other)
			})
		})
		assert.Contains(t, failure, "it repeats a round of 2, ")
		assert.Contains(t, failure, "\n  patch ConfigMap default/a: 200\n      it changes  data.x: \"A\" -> \"B\"\n      the object is as in the round before")
		assert.Contains(t, failure, `it changes  data.x: "B" -> "A"`)
	})
}

func TestALoopOfRefusedCallsShowsTheAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server, faults := newServer(t, input), katestest.NewFaults(t, 1)
		server.Config.Wrap(faults.Wrap)
		faults.On(katestest.Match{Verb: "patch"}).Status(403, "", 0)
		failure := judged.Failure(t, func(tb testing.TB) { katestest.Settles(tb, server, copies(copyOnce), katestest.CallLimit(10)) })
		assert.Contains(t, failure, "it repeats a round of 1, 11 times so far. The last round:\n  patch configmaps default/a-copy: 403")
		faults.Heal()
		faults.On(katestest.Match{Verb: "patch"}).Hold()
		failure = judged.Failure(t, func(tb testing.TB) {
			katestest.Settles(tb, server, copies(copyOnce), katestest.Within(time.Hour))
		})
		assert.Contains(t, failure, "the program does not settle within 1h0m0s: it was never quiet for 5m0s. It has made 1 calls.\n  patch configmaps default/a-copy: waits for its answer")
	})
}

func TestALoopWithoutAPauseIsFound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		failure := judged.Failure(t, func(tb testing.TB) {
			running := katestest.Start(tb, newServer(t), func(ctx context.Context, config *rest.Config) error {
				c, err := kates.NewClientFromRESTConfig(config)
				if err != nil {
					return err
				}
				defer c.Close()
				for ctx.Err() == nil {
					err = c.Apply(context.Background(), configMap("a", nil), nil)
				}
				return err
			})
			running.Settles()
		})
		assert.Contains(t, failure, "it repeats a round of 1, ")
		assert.Contains(t, failure, "\n  patch ConfigMap default/a: 200\n      it changes nothing\n      the object is as in the round before")
	})
}

func TestASlowLoopIsFoundIfThePauseIsShorterThanTheQuietTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hourly := func(ctx context.Context, config *rest.Config) error {
			c, err := kates.NewClientFromRESTConfig(config)
			if err != nil {
				return err
			}
			defer c.Close()
			for n := 0; ctx.Err() == nil; n++ {
				if err := c.Apply(ctx, configMap("beat", map[string]string{"n": fmt.Sprint(n)}), nil); err != nil {
					return err
				}
				select {
				case <-time.After(time.Hour):
				case <-ctx.Done():
				}
			}
			return nil
		}
		katestest.Settles(t, newServer(t), hourly)
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.Settles(tb, newServer(t), hourly, katestest.Quiet(2*time.Hour), katestest.CallLimit(5))
		})
		assert.Contains(t, failure, "more than 5 calls")
		katestest.Settles(t, newServer(t), hourly, katestest.Quiet(2*time.Hour), katestest.Ignoring(katestest.Match{Resource: "configmaps"}))
	})
}

func TestAProgramThatEndsIsSettledOrHasFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		katestest.Settles(t, newServer(t), func(context.Context, *rest.Config) error { return nil })
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.Settles(tb, newServer(t), func(context.Context, *rest.Config) error { return errors.New("it is broken") })
		})
		assert.Equal(t, "the program has ended: it is broken", failure)
		failure = judged.Failure(t, func(tb testing.TB) {
			katestest.Settles(tb, newServer(t), func(context.Context, *rest.Config) error { runtime.Goexit(); return nil })
		})
		assert.Contains(t, failure, "it has ended its goroutine")
	})
}

func TestWhatAProgramLeavesBehindFailsTheTest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		end := make(chan struct{})
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.Settles(tb, newServer(t, input), func(ctx context.Context, config *rest.Config) error {
				go func() {
					c, _ := kates.NewClientFromRESTConfig(config, quiet)
					<-ctx.Done()
					time.Sleep(time.Second)
					_ = c.Create(context.Background(), configMap("late", nil), nil)
					<-end
					c.Close()
				}()
				return copies(copyOnce)(ctx, config)
			})
		})
		assert.Contains(t, failure, "the program has returned, and goroutines of it go on:\n")
		assert.Contains(t, failure, "trial_test.TestWhatAProgramLeavesBehindFailsTheTest")
		assert.Contains(t, failure, "they have sent: ")
		failure = judged.Failure(t, func(tb testing.TB) {
			katestest.Settles(tb, newServer(t, input), func(context.Context, *rest.Config) error {
				<-end
				return nil
			})
		})
		assert.Contains(t, failure, "the program does not end: its context was cancelled 1m0s ago. Its goroutines:\n")
		close(end)
	})
}

func TestOutsideOfABubbleAProgramIsSettledAfterAShortWhile(t *testing.T) {
	server := newServer(t, input)
	running := katestest.Start(t, server, copies(copyOnce), katestest.Quiet(10*time.Millisecond))
	snapshots, err := kates.Watch[struct{ ConfigMaps []*kates.ConfigMap }](t.Context(), server.Client(t))
	require.NoError(t, err)
	katestest.Until(t, snapshots, func(s *struct{ ConfigMaps []*kates.ConfigMap }) bool { return len(s.ConfigMaps) == 2 })
	running.Settles()
	running.Stop()
}
