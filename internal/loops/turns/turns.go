// Package turns makes partitions the source of a [keyed.Loop], which knows no objects.
//
//	Turns   the turns of keys, and what they report beside the objects
//	Each    the work of kates.RunEach
//	Roots   partitions by the roots of a controller
//
// It knows what a struct's fields are for (package compile), and nothing of the types of users:
// package kates fills the fields that have such types, see [Reports].
package turns

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/loops/keyed"
)

// Turns are the turns of partitions. With Next of a loop they are a [keyed.Source].
type Turns struct {
	*partition.Partitions
	// Begin returns the context of what is done in a turn.
	Begin   func(context.Context) context.Context
	Reports Reports
}

// Reports fill the fields of a turn's struct that are no queries.
type Reports interface {
	// Fill fills the fields. The result is what the turn reports, nil if that is of no use later.
	Fill(turn *partition.Turn, into reflect.Value) any
	// Ended is called when a turn that reports something ends. again: the key's next turn reports
	// it, too.
	Ended(key string, reported any, again bool)
}

// Turn is the turn of a key, and a [keyed.Turn] but for Yield. The method that is called first ends
// the turn.
type Turn struct {
	Of       *partition.Turn
	by       *Turns
	reported any
	ended    atomic.Bool
}

// New returns a turn whose struct has its reports.
func (t *Turns) New(turn *partition.Turn, into reflect.Value) *Turn {
	return &Turn{Of: turn, by: t, reported: t.Reports.Fill(turn, into)}
}

// Because adds to the error of an end what was incomplete.
func (t *Turns) Because(err error) error { return keyed.EndedWithout(t.Ready(), err) }

// Refresh implements [keyed.Watch].
func (t *Turns) Refresh(ctx context.Context) error {
	if err := t.Partitions.Refresh(ctx); err != nil {
		return t.Because(err)
	}
	return nil
}

// Streams says in words what the queries of a divided run bring.
func (t *Turns) Streams() string { return streamsOf(t.Status()) }

func streamsOf(all []query.Status) string {
	var said []string
	texts := make(map[string][]string)
	for _, q := range all {
		if q.Shard == "" {
			continue
		}
		if texts[q.Shard] == nil {
			said = append(said, q.Shard)
		}
		texts[q.Shard] = append(texts[q.Shard], q.Name)
	}
	if len(said) == 1 {
		return said[0]
	}
	for i, text := range said {
		said[i] = strings.Join(texts[text], ", ") + ": " + text
	}
	return strings.Join(said, "; ")
}

// Name is the key.
func (t *Turn) Name() string { return t.Of.Key }

// Context implements [keyed.Turn].
func (t *Turn) Context(ctx context.Context) context.Context { return t.by.Begin(ctx) }

// Ready implements [keyed.Turn].
func (t *Turn) Ready() time.Time { return t.Of.Ready }

// Done implements [keyed.Turn].
func (t *Turn) Done(err error) {
	if t.end(err != nil) {
		t.Of.Done(err)
	}
}

// Again implements [keyed.Turn].
func (t *Turn) Again(after time.Duration) {
	if t.end(true) {
		t.Of.Again(after)
	}
}

// Keep implements [keyed.Turn].
func (t *Turn) Keep() {
	if t.end(false) {
		t.Of.Keep()
	}
}

// Drop implements [keyed.Turn].
func (t *Turn) Drop() {
	if t.end(!t.Of.Gone) {
		t.Of.Done(nil)
	}
}

// end reports whether the turn ends now. again: the key's next turn has the reports of this one,
// too.
func (t *Turn) end(again bool) bool {
	if t.ended.Swap(true) {
		return false
	}
	if t.reported != nil {
		t.by.Reports.Ended(t.Of.Key, t.reported, again)
	}
	return true
}

// Each calls a function with the snapshot of each key: it is the turns of a loop, and the work.
type Each struct {
	*Turns
	// Function gets the key and a pointer to its snapshot.
	Function func(ctx context.Context, key string, snapshot any) error
	Known    *keyed.Known // nil: nobody wants to know
}

var (
	_ keyed.Work[EachTurn]   = Each{}
	_ keyed.Source[EachTurn] = Each{}
)

// EachTurn is a turn of [Each].
type EachTurn struct{ *Turn }

// Yield implements [keyed.Turn].
func (t EachTurn) Yield() {
	if t.end(true) {
		t.Of.Keep() // also a key that is gone
		t.by.Trigger(t.Name())
	}
}

// Next implements [keyed.Source].
func (e Each) Next(ctx context.Context) (EachTurn, error) {
	turn, err := e.Partitions.Next(ctx)
	if err != nil {
		return EachTurn{}, e.Because(err)
	}
	return EachTurn{e.New(turn, reflect.ValueOf(turn.Snapshot).Elem())}, nil
}

// Begin implements [keyed.Work].
func (e Each) Begin(_ EachTurn, ours bool) bool { return ours }

// Call implements [keyed.Work].
func (e Each) Call(ctx context.Context, turn EachTurn, _ int) error {
	return e.Function(ctx, turn.Name(), turn.Of.Snapshot)
}

// End implements [keyed.Work].
func (e Each) End(turn EachTurn, o keyed.Outcome) error {
	if o.Cut { // the key is another replica's, or this one calls for it again; or all is over
		turn.Yield()
		return nil
	}
	if o.Requeue {
		turn.Keep() // also a key that is gone
		return nil
	}
	if o.Err == nil && turn.Of.Gone {
		e.Known.Gone(turn.Name())
	}
	turn.Done(o.Err)
	if o.Final {
		return o.Err
	}
	return nil
}
