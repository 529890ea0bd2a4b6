package kates_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

const endedWithout = `level=INFO msg="ended without one complete snapshot" run=kates_test.podsAndServices waiting="`

// runsOf are the loops of a program that waits for pods.
var runsOf = map[string]func(context.Context, *kates.Client) error{
	"Run": func(ctx context.Context, c *kates.Client) error {
		return kates.Run(ctx, c, func(context.Context, *podsAndServices) error { return nil })
	},
	"RunEach": func(ctx context.Context, c *kates.Client) error {
		return kates.RunEach(ctx, c, func(context.Context, string, *podsAndServices) error { return nil },
			kates.Query{Name: "Pods", Key: kates.ByNamespace})
	},
	"a follower of RunEach": func(ctx context.Context, c *kates.Client) error {
		return kates.RunEach(ctx, c, func(context.Context, string, *podsAndServices) error { return nil },
			kates.Query{Name: "Pods", Key: kates.ByNamespace}, kates.LeaderElection{Name: "x"})
	},
}

func TestARunThatEndsWithoutASnapshotSaysWhatWasMissing(t *testing.T) {
	for name, loop := range runsOf {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &logged{}
				fake, pods := unreliable(t, kates.WithLogger(slog.New(slog.NewTextHandler(out, nil))))
				pods.set(errForbidden)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Minute, cancel)
				assert.NoError(t, loop(ctx, fake.Client))
				assert.Equal(t, 1, out.count(endedWithout), &out.text)
				assert.Equal(t, 1, out.count(endedWithout+`incomplete: query \"Pods\" (Pod): forbidden: watch v1/pods: pods is forbidden`), &out.text)

				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := loop(ctx, fake.Client)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, `incomplete: query "Pods"`, "an error says it itself")
				assert.Equal(t, 1, out.count("ended without"), &out.text)

				ctx, cancel = context.WithCancel(t.Context())
				cancel()
				assert.NoError(t, loop(ctx, fake.Client))
				assert.Equal(t, 2, out.count(endedWithout), "cancelled before it could watch: %s", &out.text)
			})
		})
	}
}

func TestARunThatHasHadASnapshotEndsWithoutAWord(t *testing.T) {
	for name, loop := range runsOf {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &logged{}
				fake, pods := unreliable(t, kates.WithLogger(slog.New(slog.NewTextHandler(out, nil))))
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Minute, func() { pods.cut(errForbidden) })
				time.AfterFunc(2*time.Minute, cancel)
				assert.NoError(t, loop(ctx, fake.Client))
				assert.Zero(t, out.count("ended without"), &out.text)
			})
		})
	}
}

func TestARequiredKindThatWasNeverThereFailsTheCallAtOnce(t *testing.T) {
	type snapshot struct {
		Things []*kates.Unstructured `kates:"things.example.com"`
		Pods   []*kates.Pod
	}
	c := katestest.NewClient(t)
	missing := kates.Query{Name: "Things", Kind: "things.example.com"}
	acc, err := c.Watch(t.Context(), kates.Query{Name: "Pods", Kind: "pods"})
	require.NoError(t, err)
	replaced := missing
	replaced.Name = "Pods"
	for call, err := range map[string]error{
		"Run": kates.Run(t.Context(), c, func(context.Context, *snapshot) error { return nil }),
		"RunEach": kates.RunEach(t.Context(), c, func(context.Context, string, *snapshot) error { return nil },
			kates.Query{Name: "Pods", Key: kates.ByNamespace}),
		"Watch":        second(kates.Watch[snapshot](t.Context(), c)),
		"Client.Watch": second(c.Watch(t.Context(), missing)),
		"NewLister":    second(kates.NewLister[*kates.Unstructured](t.Context(), c, missing)),
		"Add":          acc.Add(t.Context(), missing),
		"Replace":      acc.Replace(t.Context(), replaced),
	} {
		var unknown *kates.UnknownKindError
		if assert.ErrorAs(t, err, &unknown, call) {
			assert.Equal(t, "things.example.com", unknown.Kind, call)
		}
	}
	assert.Len(t, c.Status().Queries, 1, "nothing is left running")
}

func second[T any](_ T, err error) error { return err }
