package katestest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/internal/base/tested"
	"github.com/kates-go/kates/kates"
)

// A Sequence is what a watch shows of a script: the snapshot after each of its steps, and the
// deltas since the step before. Snapshots between them are not recorded, since how many there are
// is chance.
//
//	seq := katestest.NewSequence[Snapshot](t, client)
//	seq.Step("a service comes", func(ctx context.Context) error { return user.Create(ctx, service, nil) })
//	seq.Step("it goes", func(ctx context.Context) error { return user.Delete(ctx, service, nil) })
//	katestest.Golden(t, "testdata/services.yaml", seq.All()...)
//
// In a bubble of [testing/synctest] a step ends when the watch has shown nothing new for Quiet, so
// what programs do about it belongs to the step. Outside of one, a step ends when the watch shows
// what the server had at the end of the step's function; if a program reacts to it, let the
// function wait for that ([Until]).
type Sequence[S any] struct {
	// Quiet is how long nothing may change in a bubble until a step ends: 5 minutes.
	Quiet time.Duration

	t      testing.TB
	client *kates.Client
	shown  []any
	read   func(ctx context.Context, snap *S, deltas *[]*kates.Delta) (changed bool, err error)
	look   *kates.Snapshots[S] // of a second watch, to see whether something changes
}

// Shown is what a watch shows after a step.
type Shown[S any] struct {
	Step     string
	Snapshot *S
	Deltas   []*kates.Delta
}

// NewSequence begins to watch, and records the first complete snapshot, as the step "start". S and
// the queries are those of [kates.Watch]. The watch ends with the test.
func NewSequence[S any](t testing.TB, client *kates.Client, queries ...kates.Query) *Sequence[S] {
	t.Helper()
	s := &Sequence[S]{t: t, client: client, Quiet: 5 * time.Minute}
	var err error
	if s.look, err = kates.Watch[S](t.Context(), client, queries...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.look.Close)
	if err := s.open(queries); err != nil {
		t.Fatal(err)
	}
	Until(t, s.look, func(*S) bool { return true })
	s.Step("start", func(context.Context) error { return nil })
	return s
}

// open opens the watch that is recorded.
func (s *Sequence[S]) open(queries []kates.Query) error {
	ctx, structType := s.t.Context(), reflect.TypeFor[S]()
	for _, f := range reflect.VisibleFields(structType) {
		if f.Type != reflect.TypeFor[[]*kates.Delta]() {
			continue
		}
		snapshots, err := kates.Watch[S](ctx, s.client, queries...)
		if err != nil {
			return err
		}
		s.t.Cleanup(snapshots.Close)
		s.read = func(ctx context.Context, snap *S, deltas *[]*kates.Delta) (bool, error) {
			changed, err := snapshots.Update(ctx, snap)
			field := reflect.ValueOf(snap).Elem().FieldByIndex(f.Index)
			*deltas, _ = field.Interface().([]*kates.Delta)
			field.SetZero() // they are shown once
			return changed, err
		}
		return nil
	}
	acc, err := s.client.WatchStruct(ctx, structType, queries...)
	if err != nil {
		return err
	}
	s.t.Cleanup(acc.Close)
	s.read = func(ctx context.Context, snap *S, deltas *[]*kates.Delta) (bool, error) {
		return acc.UpdateWithDeltas(ctx, snap, deltas)
	}
	return nil
}

// Step does a step, waits for what follows, and returns it. The test ends if the function fails,
// or if things never come to rest.
func (s *Sequence[S]) Step(name string, do func(ctx context.Context) error) Shown[S] {
	s.t.Helper()
	ctx := s.t.Context()
	if err := do(ctx); err != nil {
		s.t.Fatalf("step %q: %v", name, err)
	}
	if err := s.settle(ctx); err != nil {
		s.t.Fatalf("step %q: %v", name, err)
	}
	shown := Shown[S]{Step: name, Snapshot: new(S)}
	if _, err := s.read(ctx, shown.Snapshot, &shown.Deltas); err != nil {
		s.t.Fatalf("step %q: the watch has ended: %v", name, err)
	}
	s.shown = append(s.shown, shown)
	return shown
}

// All returns what was shown after each step, each a [Shown]: for [Golden].
func (s *Sequence[S]) All() []any { return slices.Clone(s.shown) }

// Snapshots returns the snapshots of All: for [Derives].
func (s *Sequence[S]) Snapshots() (all []*S) {
	for _, shown := range s.shown {
		all = append(all, shown.(Shown[S]).Snapshot)
	}
	return all
}

// settle waits until the watch has shown what follows from a step.
func (s *Sequence[S]) settle(ctx context.Context) error {
	if err := s.client.Sync(ctx); err != nil || !tested.InBubble() {
		return err
	}
	last := time.Now().Add(24 * time.Hour)
	for time.Now().Before(last) {
		time.Sleep(s.Quiet)
		synctest.Wait()
		changed, err := s.look.Update(ctx, new(S))
		if err != nil {
			return fmt.Errorf("the watch has ended: %w", err)
		}
		if !changed {
			return nil
		}
	}
	return fmt.Errorf("what it shows changes again and again: it was not quiet for %s in a day", s.Quiet)
}
