package trial_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/judged"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// report copies a config map, and marks it as copied, in this order or in the other one.
func report(markFirst bool) katestest.Program {
	return copies(func(ctx context.Context, c *kates.Client, of *kates.ConfigMap) error {
		mark := func() error {
			_, err := kates.Modify(ctx, c, of, func(cm *kates.ConfigMap) error {
				cm.Annotations = map[string]string{"copied": "yes"}
				return nil
			})
			return err
		}
		copied := func() error { return copyOnce(ctx, c, of) }
		if of.Annotations["copied"] != "" {
			return nil
		}
		if markFirst {
			return errors.Join(mark(), copied())
		}
		return errors.Join(copied(), mark())
	})
}

// servers counts the servers that are made.
func servers(t testing.TB, count *int, objects ...kates.Object) func() *katestest.Server {
	return func() *katestest.Server {
		*count++
		return newServer(t, objects...)
	}
}

func TestAProgramConvergesAfterACrashAnywhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made := 0
		katestest.CrashAnywhere(t, servers(t, &made, input), report(false))
		assert.Equal(t, 1+3+3, made, "one undisturbed, and before and after each of two writes, and one each that finds no third write")
	})
}

func TestACrashBeforeAWriteThatIsNotMadeUpForFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made := 0
		failure := judged.Failure(t, func(tb testing.TB) { katestest.CrashAnywhere(tb, servers(t, &made, input), report(true)) })
		assert.Contains(t, failure, "after a crash before write 2 (patch configmaps default/a-copy) the program converges to another end. "+
			"The objects of the server, without a crash (-) and with it (+):\n")
		assert.Contains(t, failure, "\n- --- # ConfigMap default/a-copy\n- apiVersion: v1\n- data:\n-   x: \"1\"\n")
		assert.NotContains(t, failure, "\n+ ")
	})
}

func TestACrashAfterAWriteThatIsMadeTwiceFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made := 0
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.CrashAnywhere(tb, servers(t, &made, input), copies(func(ctx context.Context, c *kates.Client, of *kates.ConfigMap) error {
				if of.Annotations["job"] != "" {
					return nil
				}
				job := configMap("", nil)
				job.GenerateName = "job-"
				if err := c.Create(ctx, job, job); err != nil {
					return err
				}
				_, err := kates.Modify(ctx, c, of, func(cm *kates.ConfigMap) error {
					cm.Annotations = map[string]string{"job": job.Name}
					return nil
				})
				return err
			}))
		})
		assert.Contains(t, failure, "after a crash before write 2 (patch configmaps default/a) the program converges to another end.")
		assert.Contains(t, failure, "\n+ --- # ConfigMap default/job-<any>\n")
		assert.NotContains(t, failure, "\n- ")
	})
}

func TestTheAnswerOfTheLastWriteMayMatter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made, remembered := 0, map[string]bool{} // outside of the server, as if it were on disk
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.CrashAnywhere(tb, func() *katestest.Server {
				clear(remembered)
				server := servers(t, &made)()
				server.Network.Delay(5 * time.Second) // the program is not stopped before the answer comes
				return server
			}, func(ctx context.Context, config *rest.Config) error {
				c, err := kates.NewClientFromRESTConfig(config, quiet)
				if err != nil || remembered["a"] {
					return err
				}
				defer c.Close()
				if err := c.Create(ctx, configMap("a", nil), nil); err != nil {
					return err
				}
				remembered["a"] = true
				return nil
			})
		})
		assert.Contains(t, failure, "after a crash after write 1 (create ConfigMap default/a): started again: the program has ended: ")
		assert.Contains(t, failure, "already exists")
	})
}

func TestCrashesComeAfterEachStep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made, steps := 0, 0
		another := katestest.Step(func(ctx context.Context, s *katestest.Server) error {
			steps++
			return s.Client(t).Create(ctx, source("b", map[string]string{"x": "2"}), nil)
		})
		katestest.CrashAnywhere(t, servers(t, &made, input), report(false), another)
		assert.Equal(t, []int{1 + 5 + 5, made}, []int{made, steps}, "four writes")
		failure := judged.Failure(t, func(tb testing.TB) { katestest.CrashAnywhere(tb, servers(t, &made, input), report(true), another) })
		assert.Contains(t, failure, "the program converges to another end before step 1 of the test. ")
		failure = judged.Failure(t, func(tb testing.TB) {
			katestest.CrashAnywhere(tb, servers(t, &made, input), report(false),
				katestest.Step(func(context.Context, *katestest.Server) error { return errors.New("no") }))
		})
		assert.Equal(t, "without a crash: step 1 of the test: no", failure)
	})
}

func TestALeaderMayCrash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made := 0
		katestest.CrashAnywhere(t, servers(t, &made, input), func(ctx context.Context, config *rest.Config) error {
			c, err := kates.NewClientFromRESTConfig(config, quiet)
			if err != nil {
				return err
			}
			defer c.Close()
			type snapshot struct{ Sources []*kates.ConfigMap }
			return kates.Run(ctx, c, func(ctx context.Context, s *snapshot) error {
				for _, of := range s.Sources {
					if err := copyOnce(ctx, c, of); err != nil {
						return err
					}
				}
				return nil
			}, kates.Query{Name: "Sources", LabelSelector: "copy"}, kates.LeaderElection{Name: "copies", Namespace: "default"})
		})
		assert.Equal(t, 1+2+2, made, "the writes of Leases are no crash")
	})
}

func TestACrashedProgramHasToEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		made, end := 0, make(chan struct{})
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.CrashAnywhere(tb, servers(t, &made, input), func(ctx context.Context, config *rest.Config) error {
				err := copies(copyOnce)(ctx, config)
				if made > 1 {
					<-end
				}
				return err
			})
		})
		assert.Contains(t, failure, "after a crash before write 1 (patch configmaps default/a-copy): started again: the program does not end: its context was cancelled 1m0s ago")
		close(end)
	})
}

func TestOutsideOfABubbleCrashesTakeTheirTime(t *testing.T) {
	made := 0
	once := func(ctx context.Context, config *rest.Config) error {
		c, err := kates.NewClientFromRESTConfig(config, quiet)
		if err != nil {
			return err
		}
		defer c.Close()
		return copyOnce(ctx, c, input)
	}
	katestest.CrashAnywhere(t, servers(t, &made), once, katestest.Quiet(time.Minute), katestest.Within(time.Hour))
	require.Equal(t, 1+2+2, made)
}
