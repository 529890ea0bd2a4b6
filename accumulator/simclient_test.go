package accumulator

import (
	"context"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// own is this client's writer. It writes to the server and, when the answer is there, reports it
// to the streams, like package kates.
type own struct {
	*sim
	streams *stream.Set
}

// put writes an object to the server, and commits the answer after a while.
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

// delete deletes an object, and commits the answer after a while. A versioned answer has the
// deletion's version. It returns false if there is no such object.
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

// after lets time pass in the bubble.
func after(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
