package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/examples/snapwatch/model"
	"github.com/kates-go/kates/examples/snapwatch/output"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// tick is how often states, rates and progress are looked at between snapshots.
const tick = time.Second

// watch is the watch of all kinds, and what is known of it.
type watch struct {
	client *kates.Client
	acc    *kates.Accumulator
	kinds  []*kind
	model  *model.Model
	number int
	// ended is closed when a replay has been played; nil without one.
	ended <-chan struct{}
}

// frame is what a view is given: with each snapshot, and each second.
type frame struct {
	at time.Time
	// snapshot is the new one; nil if there is none.
	snapshot *output.Snapshot
	// absent kinds have no objects in the snapshot because they are missing or forbidden.
	absent  []bool
	picture model.Picture
	// over: it is the last one, since the replay has been played.
	over bool
}

// open begins to watch.
func open(ctx context.Context, client *kates.Client, kinds []*kind) (*watch, error) {
	w := &watch{client: client, kinds: kinds}
	queries := make([]kates.Query, len(kinds))
	titles := make([]string, len(kinds))
	for i, k := range kinds {
		queries[i], titles[i] = k.query, k.title
	}
	w.model = model.New(titles...)
	err := supported(ctx, client, kinds)
	if err != nil {
		return nil, err
	}
	w.acc, err = client.With(kates.WithName("snapwatch")).Watch(ctx, queries...)
	return w, err
}

// supported is an error if the server does not support a field selector. An optional query would
// wait until it does, since its kind may come in another version.
func supported(ctx context.Context, client *kates.Client, kinds []*kind) error {
	for _, k := range kinds {
		if k.query.FieldSelector == "" || k.kind.Empty() {
			continue
		}
		required := k.query
		required.Optional = false
		acc, err := client.Watch(ctx, required)
		if err != nil {
			return err
		}
		acc.Close()
	}
	return nil
}

// follow gives frames to a view, until it is done, or the context ends, which is no error.
func (w *watch) follow(ctx context.Context, view func(frame) (done bool, err error)) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	typ, ended := structOf(w.kinds), w.ended
	if done, err := view(w.frame(nil)); done || err != nil {
		return err
	}
	for {
		over, look := false, true
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			over, ended = true, nil
		case <-w.acc.Changed():
		case <-ticker.C:
			look = false
		}
		f := w.frame(nil)
		if look {
			snapshot, err := w.update(ctx, typ)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			f = w.frame(snapshot)
		}
		f.over = over
		if done, err := view(f); done || err != nil {
			return err
		}
	}
}

// update takes the current snapshot; nil if it is the last one again.
func (w *watch) update(ctx context.Context, typ reflect.Type) (*output.Snapshot, error) {
	target := reflect.New(typ)
	var deltas []*kates.Delta
	changed, err := w.acc.UpdateWithDeltas(ctx, target.Interface(), &deltas)
	if err != nil || !changed {
		return nil, err
	}
	w.number++
	s := &output.Snapshot{Number: w.number, At: time.Now(), Deltas: deltas}
	for i, k := range w.kinds {
		objects := target.Elem().Field(i).Interface().([]*unstructured.Unstructured)
		s.Kinds = append(s.Kinds, output.Kind{Query: k.query.Name, Kind: k.kind, Objects: objects})
	}
	return s, nil
}

// frame makes a frame of a snapshot, or of the states alone.
func (w *watch) frame(s *output.Snapshot) frame {
	f := frame{at: time.Now(), snapshot: s}
	samples := w.samples()
	w.model.Sample(f.at, samples)
	for _, sample := range samples {
		f.absent = append(f.absent, sample.Absent)
	}
	if s != nil {
		counts := make([]int, len(s.Kinds))
		index := map[string]int{}
		for i, k := range s.Kinds {
			if counts[i] = len(k.Objects); k.Objects == nil {
				counts[i] = -1
			}
			index[k.Query] = i
		}
		w.model.Snapshot(f.at, counts, changesOf(s.Deltas, index))
	}
	f.picture = w.model.Picture(f.at)
	return f
}

func changesOf(deltas []*kates.Delta, index map[string]int) []model.Change {
	types := map[kates.DeltaType]model.Type{
		kates.ObjectAdd: model.Added, kates.ObjectUpdate: model.Updated, kates.ObjectDelete: model.Deleted,
	}
	changes := make([]model.Change, len(deltas))
	for i, d := range deltas {
		changes[i] = model.Change{
			Type: types[d.DeltaType], Kind: index[d.Query], Namespace: d.Namespace, Name: d.Name,
		}
	}
	return changes
}

// samples returns the state of each kind.
func (w *watch) samples() []model.Sample {
	report := inspect.Of(w.client)
	queries := map[string]*inspect.Query{}
	for _, watch := range report.Watches { // there is one
		for _, q := range watch.Queries {
			queries[q.Name] = q
		}
	}
	listing := map[int64]int{}
	for _, s := range report.Streams {
		listing[s.ID] = s.Listing
	}
	samples := make([]model.Sample, len(w.kinds))
	for i, k := range w.kinds {
		q := queries[k.query.Name]
		if q == nil { // the watch has ended
			continue
		}
		samples[i] = model.Sample{
			State: string(q.State), Absent: q.Absent, Error: q.Error, Lag: q.Lag, Held: q.Objects,
			Invalid: q.Invalid, Events: q.Events, Coalesced: q.Coalesced,
		}
		for _, id := range q.Streams {
			samples[i].Listed += listing[id]
		}
	}
	return samples
}

// incomplete says what the first snapshot waits for.
func (w *watch) incomplete() error {
	if err := w.acc.Ready(); err != nil {
		return fmt.Errorf("the first snapshot is not complete: %w", err)
	}
	return nil
}
