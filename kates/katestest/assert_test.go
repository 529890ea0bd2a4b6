package katestest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/test/suite/judged"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type things struct {
	ConfigMaps []*kates.ConfigMap
	Secrets    []*kates.Secret
}

func thing(name, x string) *kates.ConfigMap {
	cm := &kates.ConfigMap{TypeMeta: kates.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"x": x}}
	cm.Namespace, cm.Name = "default", name
	return cm
}

func watchOf[S any](t *testing.T, objects ...kates.Object) (*kates.Client, *kates.Snapshots[S]) {
	client := katestest.NewServer(t, katestest.WithObjects(objects...)).Client(t)
	snapshots, err := kates.Watch[S](t.Context(), client)
	require.NoError(t, err)
	return client, snapshots
}

func TestUntilReturnsTheSnapshotThatSatisfies(t *testing.T) {
	client, snapshots := watchOf[things](t, thing("a", "1"))
	two := func(s *things) bool { return len(s.ConfigMaps) == 2 }
	written := make(chan error, 1)
	go func() { written <- client.Create(t.Context(), thing("b", "2"), nil) }()
	s := katestest.Until(t, snapshots, two)
	require.NoError(t, <-written)
	assert.Equal(t, "b", s.ConfigMaps[1].Name)
	again := katestest.Until(t, snapshots, two)
	assert.Equal(t, s.ConfigMaps, again.ConfigMaps, "nothing has to change")
	wanted := &things{ConfigMaps: []*kates.ConfigMap{{ObjectMeta: thing("a", "").ObjectMeta, Data: map[string]string{"x": "1"}}, thing("b", "2")}}
	katestest.UntilEqual(t, snapshots, wanted)
}

func TestUntilShowsTheLastSnapshotAndItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret := &kates.Secret{Data: map[string][]byte{"password": []byte("hunter2")}}
		secret.Name = "s"
		client, snapshots := watchOf[things](t, thing("a", "1"), secret)
		never := func(*things) bool { return false }
		start := time.Now()
		failure := judged.Failure(t, func(tb testing.TB) { katestest.Until(tb, snapshots, never) })
		assert.Equal(t, time.Hour, time.Since(start))
		assert.True(t, strings.HasPrefix(failure, "no snapshot satisfied the function: none came within 1h0m0s. The only one:\nConfigMaps:\n- apiVersion: v1\n  data:\n    x: \"1\"\n"), failure)
		assert.Contains(t, failure, "    password: <sha256 f52fbd32b2b3b86f>\n")

		go func() {
			time.Sleep(time.Second)
			_ = client.Upsert(t.Context(), nil, thing("a", "2"), nil)
		}()
		failure = judged.Failure(t, func(tb testing.TB) { katestest.Until(tb, snapshots, never, katestest.Within(time.Minute)) })
		assert.Contains(t, failure, "none came within 1m0s. The last of 2:\nConfigMaps:\n")
		assert.Contains(t, failure, "The last change (-before +after):\n  ConfigMaps:\n  - apiVersion: v1\n    data:\n-     x: \"1\"\n+     x: \"2\"\n    kind: ConfigMap\n")

		snapshots.Close()
		failure = judged.Failure(t, func(tb testing.TB) { katestest.Until(tb, snapshots, never) })
		assert.Contains(t, failure, "no snapshot satisfied the function: the watch has ended: ")
	})
}

func TestUntilEqualLeavesOutDeltas(t *testing.T) {
	type changing struct {
		ConfigMaps []*kates.ConfigMap
		Deltas     []*kates.Delta
	}
	_, snapshots := watchOf[changing](t, thing("a", "1"))
	s := katestest.UntilEqual(t, snapshots, &changing{ConfigMaps: []*kates.ConfigMap{thing("a", "1")}})
	assert.Len(t, s.Deltas, 1)
}

func TestUntilEqualShowsWhatIsNotAsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, snapshots := watchOf[things](t, thing("a", "1"))
		failure := judged.Failure(t, func(tb testing.TB) {
			katestest.UntilEqual(tb, snapshots, &things{ConfigMaps: []*kates.ConfigMap{thing("a", "2")}}, katestest.Within(time.Second))
		})
		assert.Equal(t, "no snapshot was as wanted: none came within 1s. The last one (-wanted +got):\n  ConfigMaps:\n  - data:\n-     x: \"2\"\n+     x: \"1\"\n    metadata:\n      name: a\n      namespace: default\n", failure)
	})
}

func TestUntilSaysWhyNoSnapshotIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, faults := katestest.NewServer(t), katestest.NewFaults(t, 1)
		server.Config.Wrap(faults.Wrap)
		faults.On(katestest.Match{Resource: "secrets"}).Status(503, "", 0)
		snapshots, err := kates.Watch[things](t.Context(), server.Client(t))
		require.NoError(t, err)
		for _, wait := range []func(tb testing.TB){
			func(tb testing.TB) {
				katestest.Until(tb, snapshots, func(*things) bool { return true }, katestest.Within(time.Minute))
			},
			func(tb testing.TB) { katestest.UntilEqual(tb, snapshots, &things{}, katestest.Within(time.Minute)) },
		} {
			failure := judged.Failure(t, wait)
			assert.Contains(t, failure, `none came within 1m0s (incomplete: query "Secrets" (Secret): retrying: `)
		}
	})
}

func TestAGoldenFileHoldsASnapshot(t *testing.T) {
	client := katestest.NewServer(t, katestest.WithObjects(thing("a", "1"))).Client(t)
	snapshot := katestest.Snapshot[things](t, client)
	katestest.Golden(t, "testdata/golden/snapshot.yaml", snapshot, "a text")
	if flag.Lookup("update") != nil || flag.Lookup("katestest.update").Value.String() == "true" {
		return // the files below would be written
	}
	file := filepath.Join(t.TempDir(), "x.yaml")
	failure := judged.Failure(t, func(tb testing.TB) { katestest.Golden(tb, file, snapshot) })
	assert.Contains(t, failure, "there is no golden file "+file+": go test -update writes it. It would be:\nConfigMaps:\n")
	require.NoError(t, os.WriteFile(file, []byte("ConfigMaps: []\nSecrets: []\n"), 0o600))
	failure = judged.Failure(t, func(tb testing.TB) { katestest.Golden(tb, file, snapshot) })
	assert.Contains(t, failure, "is not what the test has got: go test -update accepts it. The difference (-file +got):\n- ConfigMaps: []\n+ ConfigMaps:\n")
}

func TestASequenceHasSnapshotsAndDeltasOfEachStep(t *testing.T) {
	script := func(t *testing.T) {
		server := katestest.NewServer(t, katestest.WithObjects(thing("a", "1")))
		user := server.Client(t)
		seq := katestest.NewSequence[things](t, server.Client(t))
		seq.Step("two come", func(ctx context.Context) error {
			if err := user.Create(ctx, thing("b", "2"), nil); err != nil {
				return err
			}
			return user.Create(ctx, thing("c", "3"), nil)
		})
		shown := seq.Step("one is replaced, and one goes", func(ctx context.Context) error {
			for _, name := range []string{"a", "b"} {
				if err := user.Delete(ctx, thing(name, ""), nil); err != nil {
					return err
				}
			}
			return user.Create(ctx, thing("a", "4"), nil)
		})
		assert.Len(t, shown.Snapshot.ConfigMaps, 2)
		require.Len(t, shown.Deltas, 3)
		seq.Step("nothing", func(context.Context) error { return nil })
		katestest.Golden(t, "testdata/golden/sequence.yaml", seq.All()...)
		failure := judged.Failure(t, func(tb testing.TB) {
			seq := katestest.NewSequence[things](tb, server.Client(t))
			seq.Step("broken", func(context.Context) error { return os.ErrNotExist })
		})
		assert.Equal(t, `step "broken": file does not exist`, failure)
	}
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, script) })
	t.Run("outside", script)
}

func TestAStepOfASequenceEndsWhenProgramsAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type shown struct {
			ConfigMaps []*kates.ConfigMap
			Deltas     []*kates.Delta
		}
		server := katestest.NewServer(t)
		user := server.Client(t)
		seq := katestest.NewSequence[shown](t, server.Client(t))
		got := seq.Step("a slow program works", func(ctx context.Context) error {
			go func() {
				for _, name := range []string{"a", "b", "c"} {
					time.Sleep(time.Minute)
					_ = user.Create(ctx, thing(name, ""), nil)
				}
			}()
			return nil
		})
		assert.Len(t, got.Snapshot.ConfigMaps, 3)
		assert.Len(t, got.Deltas, 3)
		assert.Nil(t, got.Snapshot.Deltas, "they are shown once")

		failure := judged.Failure(t, func(tb testing.TB) {
			seq := katestest.NewSequence[shown](tb, server.Client(t))
			seq.Quiet = time.Hour
			seq.Step("a clock ticks", func(ctx context.Context) error {
				go func() {
					for n := range 100 {
						_ = user.Upsert(ctx, nil, thing("a", fmt.Sprint(n)), nil)
						time.Sleep(time.Hour / 2)
					}
				}()
				return nil
			})
		})
		assert.Equal(t, `step "a clock ticks": what it shows changes again and again: it was not quiet for 1h0m0s in a day`, failure)
		time.Sleep(50 * time.Hour)
	})
}
