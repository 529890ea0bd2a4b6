package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// recordings are those of testdata/recordings with a workload: the namespace has the same name.
var recordings = []string{"rollout", "drain"}

// recordedWorkload is what is watched of them.
type recordedWorkload struct {
	Deployments []*appsv1.Deployment
	ReplicaSets []*appsv1.ReplicaSet
	Pods        []*corev1.Pod
	Nodes       []*corev1.Node
	Deltas      []*kates.Delta
}

// replayed plays recordings of a real API server as fast as a client of kates reads them, and
// prints the rows of a table: how long it takes from the first snapshot to the last.
func replayed(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("replay", stderr)
	folder := flags.String("recordings", filepath.Join("..", "testdata", "recordings"), "folder of the recordings")
	runs := flags.Int("runs", 21, "how often each is played")
	if err := flags.parse(args); err != nil {
		return err
	}
	if *runs < 1 {
		return errors.New("the number of runs must be above zero")
	}
	if _, err := fmt.Fprintln(stdout, "| recording | moments | snapshots | median | per moment |\n|---|---|---|---|---|"); err != nil {
		return err
	}
	for _, name := range recordings {
		var all []played
		for range *runs {
			one, err := play(ctx, filepath.Join(*folder, name+".recording"), name)
			if err != nil {
				return fmt.Errorf("replay %s: %w", name, err)
			}
			all = append(all, one)
		}
		slices.SortFunc(all, func(a, b played) int { return cmp.Compare(a.took, b.took) })
		m := all[len(all)/2]
		if _, err := fmt.Fprintf(stdout, "| %s | %d | %d | %s | %s |\n", name, m.moments, m.snapshots,
			m.took.Round(10*time.Microsecond), (m.took / time.Duration(m.moments)).Round(100*time.Nanosecond)); err != nil {
			return err
		}
	}
	return nil
}

// played is one run.
type played struct {
	moments, snapshots int
	took               time.Duration
}

// play plays a recording once. The reader takes a snapshot at each signal, and one at the end.
func play(ctx context.Context, file, namespace string) (r played, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := katestest.NewPlayer(file, katestest.Speed(katestest.Stopped))
	if err != nil {
		return r, err
	}
	client, err := kates.NewClientFromRESTConfig(p.Config())
	if err != nil {
		return r, err
	}
	defer client.Close()
	if err := client.MaxAccumulatorInterval(time.Millisecond); err != nil {
		return r, err
	}
	snapshots, err := kates.Watch[recordedWorkload](ctx, client,
		kates.Query{Name: "Deployments", Namespace: namespace}, kates.Query{Name: "ReplicaSets", Namespace: namespace},
		kates.Query{Name: "Pods", Namespace: namespace}, kates.Query{Name: "Nodes", LabelSelector: "rollouts=" + namespace})
	if err != nil {
		return r, err
	}
	r.moments = len(p.Moments())
	over := make(chan error, 1)
	var begun time.Time
	var s recordedWorkload
	for begun.IsZero() || over != nil {
		select {
		case <-snapshots.Changed():
		case err := <-over:
			if err == nil {
				err = client.Sync(ctx) // what was read is taken in
			}
			if err != nil {
				return r, err
			}
			over = nil
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
		changed, err := snapshots.Update(ctx, &s)
		if err != nil {
			return r, err
		}
		if changed {
			r.snapshots++
		}
		if changed && begun.IsZero() {
			begun = time.Now()
			p.SetSpeed(katestest.Fastest)
			go func() { over <- p.Wait(ctx) }() // ends with the replay, or with ctx
		}
	}
	r.took = time.Since(begun)
	return r, nil
}
