package sim

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
)

// Client is this client's writer. It writes to the server and, when the answer is there, reports
// it to the streams, like package kates.
type Client struct {
	*Server
	Streams *streamset.Set
}

// NewClient returns a writer with its streams.
func NewClient(s *Server, streams *streamset.Set) Client { return Client{s, streams} }

// Put writes an object to the server, and commits the answer after a time.
func (o Client) Put(resource string, u *unstructured.Unstructured, answer time.Duration) {
	r := Resource(resource)
	key := object.Key{Namespace: u.GetNamespace(), Name: u.GetName()}
	w := o.Streams.Begin(r, key)
	got := o.Server.Put(resource, key, u)
	After(answer)
	_ = w.Commit(context.Background(), intake.Outcome{Write: coherence.Write{
		Key: key, UID: got.GetUID(), Version: got.GetResourceVersion(), Object: o.shown(got),
	}})
}

// Delete deletes an object, and commits the answer after a time. A versioned answer has the
// deletion's version. It returns false if there is no such object.
func (o Client) Delete(resource, name string, answer time.Duration, versioned bool) bool {
	r := Resource(resource)
	key := object.Key{Namespace: "ns", Name: name}
	o.Server.Mu.Lock()
	old := o.Server.Now[resource][key]
	if old == nil {
		o.Server.Mu.Unlock()
		return false
	}
	o.Server.Mu.Unlock()
	w := o.Streams.Begin(r, key)
	o.Server.Mu.Lock()
	old = o.Server.Now[resource][key]
	if old == nil {
		o.Server.Mu.Unlock()
		w.Abandon()
		return false
	}
	o.Server.putLocked(resource, key, nil)
	out := coherence.Write{Key: key, UID: old.GetUID()}
	if versioned {
		out.Version = strconv.Itoa(o.Server.Rev)
	}
	o.Server.Mu.Unlock()
	After(answer)
	_ = w.Commit(context.Background(), intake.Outcome{Write: out})
	return true
}

// After lets time pass in the bubble.
func After(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// Send makes the server perform a verb, and reports the answer to the streams at once.
func (o Client) Send(t *testing.T, resource, name, verb string, param int) {
	t.Helper()
	key := object.Key{Namespace: "ns", Name: name}
	w := o.Streams.Begin(Resource(resource), key)
	a, ok := o.Do(resource, key, verb, param)
	require.True(t, ok)
	require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: a.Write(key)}))
}
