package agenda

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Inspection says how many keys are in which state.
type Inspection struct {
	Waiting, Ready, Running, Resting int
	ReadySince                       time.Time // of the key that has waited longest; zero: none
	Some                             []KeyInspection
}

// KeyInspection is one key.
type KeyInspection struct {
	Key      string
	State    string
	Since    time.Time // of a key that is ready, or runs
	Failures int
	Until    time.Time // of a key that rests
}

// Inspect counts the keys by their states. It has some of them, up to a number: those that run,
// then those that rest, with the most failures first, then those that are ready.
func (a *Agenda) Inspect(most int) (in Inspection) {
	in.Waiting = int(a.backlog.Load())
	in.Ready, in.Running, in.Resting = a.queue.length(), a.active.length, len(a.rests)
	for _, list := range []keyList{a.queue.own, a.queue.common} {
		if e := list.first; e != nil && (in.ReadySince.IsZero() || e.since.Before(in.ReadySince)) {
			in.ReadySince = e.since
		}
	}
	for e := range a.active.all {
		in.Some = append(in.Some, e.inspect())
	}
	rests := slices.Clone(a.rests)
	slices.SortFunc(rests, func(x, y *Entry) int {
		return cmp.Or(-cmp.Compare(x.failures, y.failures), strings.Compare(x.Key, y.Key))
	})
	for _, e := range rests[:min(len(rests), most)] {
		in.Some = append(in.Some, e.inspect())
	}
	for _, list := range []keyList{a.queue.own, a.queue.common} {
		for e := list.first; e != nil && len(in.Some) < most; e = e.after {
			in.Some = append(in.Some, e.inspect())
		}
	}
	in.Some = in.Some[:min(len(in.Some), most)]
	return in
}

func (e *Entry) inspect() KeyInspection {
	in := KeyInspection{Key: e.Key, State: e.state.String(), Since: e.since, Failures: e.failures}
	if e.Runs() {
		in.State = keyRunning.String()
	}
	if e.state == keyResting {
		in.Until = e.notBefore
	}
	return in
}
