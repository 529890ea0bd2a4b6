package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
)

// awaitEvents waits for the events about an object.
func awaitEvents(t *testing.T, c *kates.Client, ns, name string, wanted func([]*eventsv1.Event) bool) []*eventsv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := kates.Watch[struct{ Events []*eventsv1.Event }](ctx, c, kates.Query{Name: "Events", Namespace: ns, FieldSelector: "regarding.name=" + name})
	require.NoError(t, err)
	defer s.Close()
	for snap, err := range s.All(ctx) {
		require.NoError(t, err)
		if wanted(snap.Events) {
			return snap.Events
		}
	}
	require.FailNow(t, "the events never came")
	return nil
}

func TestEventsAreRecordedOnTheServerAndEqualOnesBecomeASeries(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t, kates.WithNamespace(ns))
	requests := newSpy(w, "events")
	r, err := events.NewRecorder(ctx, c, "example.com/e2e")
	require.NoError(t, err)
	defer r.Close()
	cm := &corev1.ConfigMap{ObjectMeta: named(ns, "x")}
	require.NoError(t, c.Create(ctx, cm, cm))
	r.Eventf(cm, nil, events.Warning, "Failed", "Put", "for %s", "the first time")
	all := awaitEvents(t, c, ns, "x", func(all []*eventsv1.Event) bool { return len(all) == 1 })
	assert.Equal(t, []string{"Warning", "Failed", "Put", "for the first time", "example.com/e2e"},
		[]string{all[0].Type, all[0].Reason, all[0].Action, all[0].Note, all[0].ReportingController})
	assert.Equal(t, cm.UID, all[0].Regarding.UID)
	for range 20 {
		r.Eventf(cm, nil, events.Warning, "Failed", "Put", "again")
	}
	all = awaitEvents(t, c, ns, "x", func(all []*eventsv1.Event) bool { return all[0].Series != nil })
	assert.Len(t, all, 1)
	assert.GreaterOrEqual(t, all[0].Series.Count, int32(2))
	seen := requests.seen()
	assert.Equal(t, []int{1, 1}, []int{seen["POST"], seen["PATCH"]}, "the others are counted here")
}

func TestEventsAboutClusterScopedObjectsAreInTheDefaultNamespace(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	r, err := events.NewRecorder(ctx, c, "e2e")
	require.NoError(t, err)
	defer r.Close()
	space, err := kates.GetCached[corev1.Namespace](ctx, c, "", ns)
	require.NoError(t, err)
	r.Eventf(space, nil, events.Normal, "Seen", "Look", "it is there")
	awaitEvents(t, c, "default", ns, func(all []*eventsv1.Event) bool { return len(all) == 1 })
}
