package replay

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestTheStateAfterEventsIsWhatTheEventsMakeOfIt(t *testing.T) {
	s := NewSteady(Schedule{Objects: 4, Rate: 100, Lasts: time.Second})
	want := s.plan.Sources()
	for events := range 40 {
		for at, objects := range want {
			k := s.state(at, events)
			assert.Equal(t, listRV+events, k.version)
			assert.Equal(t, objects, k.objects, "kind %d after %d events", at, events)
		}
		Mend(want[events%Kinds][events/Kinds%4], events)
	}
	_, ok := EventOf(want[0][0])
	assert.True(t, ok)
}

func TestAnEventIsDueAtItsTimeAndNotBefore(t *testing.T) {
	for _, rate := range []int{1, 3, 7, 999, 5000} {
		s := Schedule{Objects: 1, Rate: rate, Lasts: 3 * time.Second}
		assert.Equal(t, 3*rate, s.Total())
		for i := range s.Total() {
			assert.Equal(t, i+1, s.Due(s.At(i)))
			assert.Equal(t, i, s.Due(s.At(i)-1))
		}
		assert.Equal(t, 3*rate, s.Due(time.Hour))
	}
}

func TestASteadyServerSendsEachEventOnceWhateverWatchesEnd(t *testing.T) {
	for _, mediaType := range []string{"application/json", protobufType} {
		t.Run(mediaType, func(t *testing.T) {
			t.Parallel()
			s := NewSteady(Schedule{Objects: 4, Rate: 200, Lasts: 1500 * time.Millisecond})
			server := httptest.NewServer(s)
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{
				Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType},
			})
			require.NoError(t, err)
			list, err := client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			begun, again := post[Begun](t, server.URL+BeginPath), post[Begun](t, server.URL+BeginPath)
			assert.Equal(t, begun, again)
			assert.NotZero(t, begun.UnixNano)
			got, watches := followAll(t, client, list.ResourceVersion)
			var want []int
			for i := 1; i < 300; i += Kinds {
				want = append(want, i)
			}
			assert.Equal(t, want, got)

			list, err = client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for j, o := range list.Items {
				i, ok := EventOf(&o)
				assert.True(t, ok)
				assert.Equal(t, s.plan.Last(1, j, 300), i)
			}
			sent := post[Sent](t, server.URL+SentPath)
			assert.Equal(t, 100, sent.Events)
			assert.Equal(t, watches, sent.Watches)
			assert.Len(t, sent.Seconds, 1)
		})
	}
}

// followAll watches services, each time for a second, until all events have come, and returns
// their numbers.
func followAll(t *testing.T, client kubernetes.Interface, rv string) (all []int, watches int) {
	t.Helper()
	for len(all) < 100 {
		w, err := client.CoreV1().Services("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: rv, TimeoutSeconds: new(int64(1))})
		require.NoError(t, err)
		watches++
		for e := range w.ResultChan() {
			o, ok := e.Object.(interface {
				runtime.Object
				metav1.Object
			})
			require.True(t, ok, "%v", e)
			i, ok := EventOf(o)
			require.True(t, ok)
			all, rv = append(all, i), o.GetResourceVersion()
		}
		w.Stop()
	}
	return all, watches
}

func post[T any](t *testing.T, url string) (answer T) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &answer))
	return answer
}

func TestTheServerSaysWhatItSentAndWhen(t *testing.T) {
	plan := Schedule{Objects: 1, Rate: 10, Lasts: 3 * time.Second}
	var y tally
	assert.Equal(t, Sent{Seconds: []int{0, 0, 0}}, y.sent(plan))
	second := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	y.opened()
	batches := []Batch{
		{First: 0, Events: 4, Began: second(0.8), Ended: second(0.9)},
		{First: 1, Events: 5, Began: second(2.1), Ended: second(2.4)},
		{First: 3, Events: 3, Began: second(0.7), Ended: second(3.2)},
	}
	for _, b := range batches {
		y.add(b)
	}
	sent := y.sent(plan)
	assert.Equal(t, Sent{
		Events: 12, Watches: 1, Rate: 12 / 3.2, Seconds: []int{4, 0, 5}, LateP99: 1900, Late: 1900, Blocked: 2500, Batches: batches,
	}, sent)
	written := sent.Written(15)
	for event, at := range map[int]float64{0: 0.8, 3: 0.7, 9: 0.7, 1: 2.1, 13: 2.1} {
		assert.Equal(t, second(at), written[event], "event %d", event)
	}
	for _, event := range []int{2, 5, 12, 14} {
		assert.Negative(t, written[event], "event %d", event)
	}
}
