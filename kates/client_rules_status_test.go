package kates_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// logged collects a client's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// failing returns a fake whose lists of pods fail until the test heals it.
func failing(t *testing.T, err error) (*katestest.Fake, *logged, *atomic.Bool) {
	t.Helper()
	out, healed := &logged{}, &atomic.Bool{}
	fake := katestest.New(t, katestest.WithClientOptions(kates.WithLogger(slog.New(slog.NewTextHandler(out, nil)))))
	react(fake, "list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return !healed.Load(), nil, err
	})
	return fake, out, healed
}

type podsAndServices struct {
	Pods     []*kates.Pod
	Services []*kates.Service
}

func TestAnOutageHoldsTheFirstSignalOptionalOrNotAndIsLoggedOnce(t *testing.T) {
	for name, err := range map[string]error{
		"500":      apierrors.NewInternalError(errors.New("broken")),
		"503":      apierrors.NewServiceUnavailable("down"),
		"429":      apierrors.NewTooManyRequests("busy", 1),
		"time-out": apierrors.NewTimeoutError("slow", 1),
	} {
		for _, optional := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fake, out, healed := failing(t, err)
					s, err := kates.Watch[podsAndServices](t.Context(), fake.Client, kates.Query{Name: "Pods", Optional: optional})
					require.NoError(t, err)
					<-time.After(5 * time.Minute)
					assert.Empty(t, s.Changed())
					assert.ErrorContains(t, s.Ready(), `query "Pods"`)
					assert.Error(t, s.Status().Err())
					assert.Equal(t, 1, out.count("cannot list"), "each transition once, not each retry")
					assert.Equal(t, 1, out.count("still no complete snapshot"), "a kind that blocks is logged once")
					healed.Store(true)
					<-s.Changed()
					assert.NoError(t, s.Ready())
					s.Close()
				})
			})
		}
	}
}

func TestAKindThatIsQuickIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, out, healed := failing(t, nil)
		healed.Store(true)
		s, err := kates.Watch[podsAndServices](t.Context(), fake.Client)
		require.NoError(t, err)
		<-time.After(time.Minute)
		assert.Zero(t, out.count("still no complete snapshot"))
		s.Close()
	})
}

func TestAStatusMarshalsToJSONAndPrintsAsATable(t *testing.T) {
	s, _ := first[podsAndServices](t, katestest.NewClient(t, service("a", "x")))
	text := s.Status().String()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 3, text)
	assert.Contains(t, lines[0], "STATE")
	assert.Contains(t, lines[2], "Services")
	q := s.Status().Queries[1]
	assert.Equal(t, kates.StateSynced, q.State)
	assert.Equal(t, 1, q.Objects)
	assert.Empty(t, q.Error)
}

func TestAStatusShowsInItsTableThatAQueryWaitsToBeShown(t *testing.T) {
	s := kates.Status{Queries: []kates.QueryStatus{{Name: "Pods", Kind: "pods", State: kates.StateListing, Changing: true}}}
	assert.Contains(t, s.String(), string(kates.StateListing)+", changing ")
	s.Queries[0].Changing = false
	assert.NotContains(t, s.String(), "changing")
}
