package accumulator

import (
	"context"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// own is this client's writer: it writes to the server and, once answered, tells the
// streams, as package kates does.
type own struct {
	*sim
	streams *stream.Set
}

// write performs f on the object under the server's lock and commits its answer after
// a while. The result of f: the answer (nil for a Status), whether the object is gone.
func (o own) put(resource string, u *unstructured.Unstructured, answer time.Duration) {
	r := simResource(resource)
	key := Key{Namespace: u.GetNamespace(), Name: u.GetName()}
	w := o.streams.Begin(r, key)
	got := o.sim.put(resource, key, u)
	after(answer)
	_ = w.Commit(context.Background(), stream.Outcome{Write: coherence.Write{
		Key: key, UID: got.GetUID(), Version: got.GetResourceVersion(), Object: got.DeepCopy(),
	}})
}

func (o own) delete(resource, name string, answer time.Duration, versioned bool) bool {
	r := simResource(resource)
	key := Key{Namespace: "ns", Name: name}
	o.sim.mu.Lock()
	old := o.sim.now[resource][key]
	if old == nil {
		o.sim.mu.Unlock()
		return false
	}
	o.sim.mu.Unlock()
	w := o.streams.Begin(r, key)
	o.sim.mu.Lock()
	old = o.sim.now[resource][key]
	if old == nil {
		o.sim.mu.Unlock()
		w.Abandon()
		return false
	}
	o.sim.putLocked(resource, key, nil)
	out := coherence.Write{Key: key, UID: old.GetUID()}
	if versioned {
		out.Version = strconv.Itoa(o.sim.rev)
	}
	o.sim.mu.Unlock()
	after(answer)
	_ = w.Commit(context.Background(), stream.Outcome{Write: out})
	return true
}

// after lets the bubble's time pass.
func after(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
