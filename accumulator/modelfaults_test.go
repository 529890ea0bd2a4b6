package accumulator

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// latency returns the time that an event needs to a watch. Each event has another one, so that
// events arrive one at a time, and always in the same order. Nothing arrives before the script
// lets time pass.
func (m *model) latency(a, b int) func(*sim.Watch) time.Duration {
	return func(w *sim.Watch) time.Duration {
		labels, fields := w.Filter.Labels.String(), w.Filter.Fields.String()
		n := len(labels) + 3*len(fields) + 5*len(w.Source.Resource) + len(w.Filter.Namespace)
		if w.Source.Version == "v2" {
			n += 2
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(w.Source.Resource + " " + w.Filter.Namespace + " " + labels + " " + fields + shardName(w.Filter.Shard)))
		return sim.ModelPauses[(a+n*b)%len(sim.ModelPauses)] + time.Microsecond + time.Duration(h.Sum32()%997)
	}
}

// slow delays watches, each by a time of its own.
func (m *model) slow(s sim.Step) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.DelayOf = m.latency(s.A, s.B)
	m.ListDelay = func(string) time.Duration { return sim.ModelPauses[s.C%4] }
	m.ListAnswer = func(string) time.Duration { return sim.ModelPauses[s.C/4%4] }
}

// failing makes the next few requests fail.
func (m *model) failing(s sim.Step) {
	things := schema.GroupResource{Resource: "things"}
	err := []error{
		apierrors.NewForbidden(things, "", errors.New("no")), apierrors.NewNotFound(things, ""),
		apierrors.NewTooManyRequests("busy", 1), apierrors.NewInternalError(errors.New("no")),
		apierrors.NewTimeoutError("late", 1), apierrors.NewResourceExpired("expired"), errors.New("connection refused"),
	}[s.A%7]
	left := s.B % 8
	m.Mu.Lock()
	defer m.Mu.Unlock()
	var lock sync.Mutex
	m.Fail = func(string, string) error {
		lock.Lock()
		defer lock.Unlock()
		if left--; left < 0 {
			return nil
		}
		return err
	}
}

// old compacts the history, and makes lists as old as they may be.
func (m *model) old(s sim.Step) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if s.A%2 == 0 {
		m.Oldest = m.Rev + 1
		for w := range m.Cuts {
			w.StopLocked()
		}
	}
	m.Lag = func(newest, atLeast int) int { return atLeast + (newest-atLeast)*(s.B%3)/2 }
}

// moving exchanges the connection for another one to the same server.
func (m *model) moving(elsewhere bool) {
	m.later(0, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		_ = m.streams.Move(ctx, streamset.Exchange{Do: func() {}, Elsewhere: elsewhere}) // it may be refused
	})
}
