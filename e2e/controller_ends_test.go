package e2e

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestARequeueComesAfterItsTimeAndNotForARootThatIsGone(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	r.make("h", nil)
	const after = 300 * time.Millisecond
	type call struct {
		key      string
		at       time.Time
		departed bool
	}
	calls := make(chan call, 100)
	c := reconciling(r, func(_ context.Context, p *hostParts) (controller.Result, error) {
		calls <- call{p.Info.Key, time.Now(), p.Info.Departure != ""}
		if p.Info.Departure != "" {
			return controller.Done, nil
		}
		return controller.RequeueAfter(after), nil
	}, hostsIn(r.ns)...)
	last := receive(t, calls)
	for range 3 {
		next := receive(t, calls)
		assert.Equal(t, last.key, next.key)
		assert.GreaterOrEqual(t, next.at.Sub(last.at), after)
		last = next
	}
	r.removeHost("h")
	for !last.departed {
		last = receive(t, calls)
	}
	r.make("other", nil)
	for range 3 { // its requeues come, and none for the root that is gone
		assert.Equal(t, r.ns+"/other", receive(t, calls).key)
	}
	assert.Equal(t, 1, c.Status().Roots)
	r.stop()
}

// awaitedLog is a log that says when it has a text.
type awaitedLog struct {
	mu   sync.Mutex
	text string
	all  bytes.Buffer
	has  chan struct{}
}

func (h *awaitedLog) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	had := bytes.Contains(h.all.Bytes(), []byte(h.text))
	h.all.Write(line)
	if !had && bytes.Contains(h.all.Bytes(), []byte(h.text)) {
		close(h.has)
	}
	return len(line), nil
}

// TestAControllerIsShutDownInTwoStages: after the first signal a call may go on, and write. After
// the second one its context ends. No call begins after the first one.
func TestAControllerIsShutDownInTwoStages(t *testing.T) {
	t.Parallel()
	log := &awaitedLog{text: "a signal", has: make(chan struct{})}
	r := newReplica(t, namespace(t), kates.WithLogger(slog.New(secrecy.Handler(slog.NewTextHandler(log, nil)))))
	r.make("h", nil)
	calls, begun, written := make(chan string, 10), make(chan context.Context, 1), make(chan error, 1)
	reconciling(r, func(ctx context.Context, p *hostParts) (controller.Result, error) {
		calls <- p.Info.Key
		begun <- ctx
		<-log.has
		written <- r.client.Create(ctx, object(configMaps, r.ns, "late", nil), nil)
		<-ctx.Done()
		return controller.Done, ctx.Err()
	}, append(hostsIn(r.ns), kates.WithSignals(syscall.SIGUSR1, syscall.SIGUSR2), kates.WithShutdownTimeout(time.Hour))...)
	ctx := receive(t, begun)
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGUSR1))
	require.NoError(t, receive(t, written), "it may finish")
	r.make("i", nil) // it is due, and the one worker is busy
	assert.NoError(t, ctx.Err())
	require.NoError(t, self.Signal(syscall.SIGUSR2))
	assert.ErrorIs(t, r.ended(), kates.ErrAborted)
	assert.ErrorIs(t, context.Cause(ctx), kates.ErrAborted)
	assert.Equal(t, r.ns+"/h", receive(t, calls))
	assert.Empty(t, calls, "no further call")
}

// TestAControllerLearnsWhatWasDeletedWhileItWasDisconnected: by events, if its watches resume, and
// by a list, if the server has forgotten them.
func TestAControllerLearnsWhatWasDeletedWhileItWasDisconnected(t *testing.T) {
	t.Parallel()
	for name, forgotten := range map[string]bool{"the watches resume": false, "the server has forgotten the events": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplica(t, namespace(t))
			deleted, robbed := r.make("deleted", nil), r.make("robbed", nil)
			replaced := r.make("replaced", nil)
			owned := func(u *kates.Unstructured) string { return u.GetName() + "-" + string(u.GetUID())[:8] + " " }
			calls := make(chan told, 100)
			reconciling(r, tell(calls), hostsIn(r.ns)...)
			for range 3 {
				receive(t, calls)
			}
			heal := r.network.Refuse()
			r.network.Reset()
			r.removeHost("deleted")
			r.removeHost("replaced")
			second, err := r.others.Resource(hosts).Namespace(r.ns).Create(t.Context(), hostOf(r.ns, "replaced", 1, "x"), metav1.CreateOptions{})
			require.NoError(t, err)
			name := robbed.GetName() + "-" + string(robbed.GetUID())[:8]
			require.NoError(t, r.others.Resource(configMaps).Namespace(r.ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
			var expired *katestest.Rule
			if forgotten {
				expired = r.faults.On(katestest.Match{Verb: "watch"}).Status(410, metav1.StatusReasonExpired, 0)
			}
			heal()
			if forgotten {
				poll(t, func() bool { return expired.Hits() >= 2 }, "both watches have expired")
				expired.Stop()
			}
			wanted := map[told]bool{
				{key: r.ns + "/deleted", uid: string(deleted.GetUID()), owned: owned(deleted), departed: controller.Deleted}:    true,
				{key: r.ns + "/replaced", uid: string(replaced.GetUID()), owned: owned(replaced), departed: controller.Deleted}: true,
				{key: r.ns + "/replaced", uid: string(second.GetUID())}:                                                         true,
				{key: r.ns + "/robbed", uid: string(robbed.GetUID())}:                                                           true,
			}
			for len(wanted) > 0 {
				delete(wanted, receive(t, calls))
			}
			lists := r.faults.Requests(katestest.Match{Resource: "hosts", Where: func(q katestest.Request) bool {
				return q.Query.Get("sendInitialEvents") == "true" // a probe is a list of one
			}})
			assert.Len(t, lists, map[bool]int{false: 1, true: 2}[forgotten])
			r.stop()
		})
	}
}

// TestADeadServerDelaysNobody: neither other clients in the program, nor the end of its own.
func TestADeadServerDelaysNobody(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]func(*replica) (heal func()){
		"nothing comes back": func(r *replica) func() { return r.network.Blackhole() },
		"nothing is answered": func(r *replica) func() {
			rule, thaw := r.faults.On(katestest.Match{}).Hold(), r.network.Freeze()
			return func() { thaw(); rule.Stop() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			never := func(context.Context, *inputs) error { t.Error("it has a snapshot"); return nil }
			fromTheStart := newReplica(t, ns)
			defer dead(fromTheStart)()
			fromTheStart.run(never)
			later := newReplica(t, ns)
			ready := make(chan struct{}, 1)
			later.run(func(context.Context, *inputs) error { ready <- struct{}{}; return nil })
			receive(t, ready)
			defer dead(later)()

			alive := newReplica(t, ns)
			snapshots := make(chan int, 10)
			alive.run(func(_ context.Context, in *inputs) error { snapshots <- len(in.ConfigMaps); return nil })
			assert.Equal(t, 0, receive(t, snapshots))
			require.NoError(t, alive.client.Create(t.Context(), object(configMaps, ns, "x", nil), nil))
			assert.Equal(t, 1, receive(t, snapshots))
			require.NoError(t, later.client.Ready(), "what it had stays")
			var wait sync.WaitGroup
			for _, r := range []*replica{fromTheStart, later} {
				r.stop()
				wait.Go(r.client.Close)
			}
			closed := make(chan struct{})
			go func() { wait.Wait(); close(closed) }()
			receive(t, closed)
			require.NoError(t, alive.client.Create(t.Context(), object(configMaps, ns, "y", nil), nil))
			assert.Equal(t, 2, receive(t, snapshots))
			alive.stop()
		})
	}
}
