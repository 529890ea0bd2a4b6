package events_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"

	"github.com/kates-go/kates/internal/loops/fence"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
	"github.com/kates-go/kates/kates/katestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type snapshot struct{ Events []*eventsv1.Event }

// recording returns a recorder on a fake, and the recorded events.
func recording(t *testing.T, fake *katestest.Fake, controller string) (*events.Recorder, *kates.Snapshots[snapshot]) {
	t.Helper()
	r, err := events.NewRecorder(t.Context(), fake.Client, controller)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	s, err := kates.Watch[snapshot](t.Context(), fake.Client)
	require.NoError(t, err)
	return r, s
}

// await waits for a snapshot that satisfies wanted.
func await(t *testing.T, s *kates.Snapshots[snapshot], wanted func([]*eventsv1.Event) bool) []*eventsv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for snap, err := range s.All(ctx) {
		require.NoError(t, err)
		if wanted(snap.Events) {
			return snap.Events
		}
	}
	require.FailNow(t, "the events never came")
	return nil
}

func service() *kates.Service {
	s := &kates.Service{}
	s.Namespace, s.Name, s.UID = "prod", "web", "1"
	return s
}

func TestAnEventSaysWhatHappenedToWhichObjectAndWhoReportsIt(t *testing.T) {
	r, s := recording(t, katestest.New(t), "example.com/dns")
	host := kates.NewUnstructured("Host", "getambassador.io/v3alpha1")
	host.SetName("h")
	r.Eventf(service(), host, events.Warning, "NoZone", "PutRecord", "no zone for %s", "a.example")
	e := await(t, s, func(all []*eventsv1.Event) bool { return len(all) == 1 })[0]
	assert.Equal(t, []string{"prod", "Warning", "NoZone", "PutRecord", "no zone for a.example", "example.com/dns"},
		[]string{e.Namespace, e.Type, e.Reason, e.Action, e.Note, e.ReportingController})
	assert.Equal(t, kates.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "prod", Name: "web", UID: "1"}, e.Regarding)
	assert.Equal(t, &kates.ObjectReference{APIVersion: "getambassador.io/v3alpha1", Kind: "Host", Name: "h"}, e.Related)
	assert.False(t, e.EventTime.IsZero())
	assert.Nil(t, e.Series)
}

func TestEqualEventsAreAggregatedAndOthersAreNot(t *testing.T) {
	synctest.Test(t, equalEventsAreAggregated)
}

// equalEventsAreAggregated waits until client-go has begun. It sends all series once when it
// begins, and a busy machine begins late. The name of an event is that of the object and the time,
// so that the clock has to move between two events.
func equalEventsAreAggregated(t *testing.T) {
	fake := katestest.New(t)
	r, s := recording(t, fake, "dns")
	synctest.Wait()
	r.Eventf(service(), nil, events.Normal, "Done", "Put", "one")
	await(t, s, func(all []*eventsv1.Event) bool { return len(all) == 1 })
	time.Sleep(time.Second)
	// another note, but the same event
	r.Eventf(service(), nil, events.Normal, "Done", "Put", "two")
	await(t, s, func(all []*eventsv1.Event) bool { return len(all) == 1 && all[0].Series != nil })
	for range 50 {
		r.Eventf(service(), nil, events.Normal, "Done", "Put", "more")
	}
	r.Eventf(service(), nil, events.Normal, "Done", "Remove", "another action")
	all := await(t, s, func(all []*eventsv1.Event) bool { return len(all) == 2 })
	for _, e := range all {
		assert.Equal(t, e.Action == "Put", e.Series != nil)
	}
	writes := 0
	for _, a := range fake.Dynamic.Actions() {
		if a.GetVerb() == "create" || a.GetVerb() == "patch" {
			writes++
		}
	}
	assert.Equal(t, 3, writes, "two events, and that one of them is a series")
}

func TestAnEventThatTheServerWouldNotTakeIsCutOrLoggedAndNotSent(t *testing.T) {
	fake := katestest.New(t)
	_, ctx := ktesting.NewTestContext(t)
	r, err := events.NewRecorder(ctx, fake.Client, "dns")
	require.NoError(t, err)
	defer r.Close()
	s, err := kates.Watch[snapshot](t.Context(), fake.Client)
	require.NoError(t, err)
	r.Eventf(nil, nil, events.Normal, "R", "A", "")
	r.Eventf((*kates.Service)(nil), nil, events.Normal, "R", "A", "")
	r.Eventf(service(), nil, "Odd", "R", "A", "")
	r.Eventf(service(), nil, events.Normal, "", "A", "")
	r.Eventf(service(), nil, events.Normal, "R", "", "")
	r.Eventf(service(), nil, events.Normal, strings.Repeat("r", 129), "A", "")
	r.Eventf(service(), (*kates.Service)(nil), events.Normal, "R", "A", "%s", strings.Repeat("ä", 600)+"%d")
	all := await(t, s, func(all []*eventsv1.Event) bool { return len(all) > 0 })
	require.Len(t, all, 1)
	assert.LessOrEqual(t, len(all[0].Note), 1024)
	assert.Equal(t, strings.Repeat("ä", 510)+"…", all[0].Note)
}

// widget is a type that only the client's scheme knows.
type widget struct{ kates.ConfigMap }

func (w *widget) DeepCopyObject() runtime.Object { return &widget{*w.DeepCopy()} }

func TestARecorderKnowsTheKindsOfItsClientsScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, &widget{})
	r, s := recording(t, katestest.New(t, katestest.WithScheme(scheme)), "dns")
	w := &widget{}
	w.Namespace, w.Name, w.UID = "prod", "w", "1"
	r.Eventf(w, nil, events.Normal, "R", "A", "note")
	all := await(t, s, func(all []*eventsv1.Event) bool { return len(all) > 0 })
	assert.Equal(t, "example.com/v1, Widget prod/w", all[0].Regarding.APIVersion+", "+all[0].Regarding.Kind+" "+all[0].Regarding.Namespace+"/"+all[0].Regarding.Name)
}

func TestARecorderOfBadInputIsAClearError(t *testing.T) {
	client := katestest.NewClient(t)
	_, err := events.NewRecorder(t.Context(), client, "")
	assert.ErrorContains(t, err, "the controller")
	_, err = events.NewRecorder(t.Context(), client, "not a name")
	assert.ErrorContains(t, err, "the controller")
	_, err = events.NewRecorder(t.Context(), nil, "dns")
	assert.ErrorContains(t, err, "the client is nil")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = events.NewRecorder(over, client, "dns")
	assert.ErrorIs(t, err, context.Canceled)
}

func TestG11ARecorderEndsWithItsContextOrCloseWhateverIsWaiting(t *testing.T) {
	for name, end := range map[string]func(cancel func(), r *events.Recorder){
		"its context": func(cancel func(), r *events.Recorder) { cancel() },
		"Close":       func(_ func(), r *events.Recorder) { r.Close(); r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			fake, err := katestest.NewFake()
			require.NoError(t, err)
			fake.Dynamic.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("connection refused") // client-go tries again in 10 s
			})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			r, err := events.NewRecorder(ctx, fake.Client, "dns")
			require.NoError(t, err)
			for i := range 100 {
				s := service()
				s.Name = strings.Repeat("x", 1+i%50)
				r.Eventf(s, nil, events.Normal, "Done", "Put", "")
			}
			end(cancel, r)
			goleak.VerifyNone(t, before)
			r.Eventf(service(), nil, events.Normal, "Done", "Put", "after the end")
			goleak.VerifyNone(t, before)
			fake.Close()
		})
	}
}

// TestNoEventIsRecordedAfterItsLeaseIsOver: a recorder of a leader's context ends with the lease.
func TestNoEventIsRecordedAfterItsLeaseIsOver(t *testing.T) {
	for _, over := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fake := katestest.New(t)
			asked := 0
			ctx := fence.With(t.Context(), func() error {
				asked++
				if over {
					return kates.ErrLeadershipLost
				}
				return nil
			})
			r, err := events.NewRecorder(ctx, fake.Client, "example.com/dns")
			require.NoError(t, err)
			r.Eventf(service(), nil, events.Normal, "Done", "Put", "")
			time.Sleep(time.Minute)
			r.Close()
			written := slices.ContainsFunc(fake.Dynamic.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "create" })
			assert.Equal(t, !over, written)
			assert.NotZero(t, asked)
		})
	}
}
