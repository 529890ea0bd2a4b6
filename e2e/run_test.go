package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	leases        = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	leaseRequests = katestest.Match{Resource: "leases"}
)

const leaseName = "leader"

type inputs struct{ ConfigMaps []*corev1.ConfigMap }

// count returns the number in the config map "count".
func (i *inputs) count() (n int, cm *corev1.ConfigMap) {
	for _, cm := range i.ConfigMaps {
		if cm.Name == "count" {
			n, _ = strconv.Atoi(cm.Data["n"])
			return n, cm
		}
	}
	return 0, nil
}

// replica is one of several programs that do the same work.
type replica struct {
	t       *testing.T
	ns      string
	client  *kates.Client
	faults  *katestest.Faults
	network *katestest.Network
	others  dynamic.Interface // a client without faults

	cancel context.CancelFunc
	done   chan error
}

func newReplica(t *testing.T, ns string, options ...kates.Option) *replica {
	t.Helper()
	r := &replica{t: t, ns: ns, faults: katestest.NewFaults(t, 0), network: katestest.NewNetwork(t)}
	config := rest.CopyConfig(serverOf(t))
	config.Dial = r.network.DialContext
	config.Wrap(r.faults.Wrap)
	var err error
	r.client, err = tapped(kates.NewClientFromRESTConfig(config, append([]kates.Option{kates.WithInterval(0)}, options...)...))
	require.NoError(t, err)
	t.Cleanup(r.client.Close)
	r.others, err = dynamic.NewForConfig(serverOf(t))
	require.NoError(t, err)
	return r
}

// run begins to work, until cancel is called.
func (r *replica) run(f func(context.Context, *inputs) error, options ...kates.RunOption) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel, r.done = cancel, make(chan error, 1)
	options = append(options, kates.Query{Name: "ConfigMaps", Namespace: r.ns})
	go func() { r.done <- kates.Run(ctx, r.client, f, options...) }()
}

func (r *replica) leading(identity string) kates.LeaderElection {
	return kates.LeaderElection{
		Namespace: r.ns, Name: leaseName, Identity: identity,
		LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 200 * time.Millisecond,
	}
}

// stop cancels it and checks that it returns nil.
func (r *replica) stop() {
	r.t.Helper()
	r.cancel()
	require.NoError(r.t, r.ended())
}

func (r *replica) ended() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		r.t.Fatal("it does not end")
		return nil
	}
}

// holder returns the holder of the lease.
func (r *replica) holder() string {
	r.t.Helper()
	u, err := r.others.Resource(leases).Namespace(r.ns).Get(r.t.Context(), leaseName, metav1.GetOptions{})
	if kates.IsNotFound(err) {
		return "nobody"
	}
	require.NoError(r.t, err)
	name, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	return name
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

// Each replica, as the last thing it does, adds one to the number in its first snapshot. None
// writes from an old snapshot: that would be a conflict.
func TestALeaderSeesAllThatTheFormerOneWroteThoughItsWatchIsLate(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	replicas := []*replica{newReplica(t, ns), newReplica(t, ns)}
	leads := make(chan int)
	start := func(i int) {
		r := replicas[i]
		r.run(func(ctx context.Context, in *inputs) error {
			leads <- i
			<-ctx.Done()
			if err := r.countFurther(context.WithoutCancel(ctx), in); err != nil {
				return kates.Permanent(fmt.Errorf("it acted on an old snapshot: %w", err))
			}
			return nil
		}, r.leading(fmt.Sprint("replica-", i)))
	}
	start(0)
	require.Equal(t, 0, receive(t, leads))
	start(1)
	const rounds = 6
	for round := range rounds {
		leader, next := replicas[round%2], replicas[(round+1)%2]
		poll(t, func() bool { return next.client.Ready() == nil && len(next.faults.Open(watches)) > 0 }, "the next one is ready and watches", func() any { return next.client.Status() })
		next.faults.Now(watches).Delay(1500 * time.Millisecond)
		leader.stop()
		require.Equal(t, (round+1)%2, receive(t, leads))
		assert.Equal(t, fmt.Sprint("replica-", (round+1)%2), next.holder())
		start(round % 2)
	}
	for i := range replicas { // after an even number of rounds the first one leads
		replicas[i].stop()
		if i == 0 {
			require.Equal(t, 1, receive(t, leads))
		}
	}
	assert.Equal(t, "", replicas[0].holder(), "released")
	u, err := replicas[0].others.Resource(configMaps).Namespace(ns).Get(t.Context(), "count", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"n": strconv.Itoa(rounds + 2)}, u.Object["data"])
}

// countFurther adds one to the number in the snapshot.
func (r *replica) countFurther(ctx context.Context, in *inputs) error {
	n, cm := in.count()
	if cm == nil {
		cm = &corev1.ConfigMap{ObjectMeta: named(r.ns, "count"), Data: map[string]string{"n": "1"}}
		return r.client.Create(ctx, cm, nil)
	}
	cm = cm.DeepCopy()
	cm.Data["n"] = strconv.Itoa(n + 1)
	return r.client.Update(ctx, cm, nil)
}

func TestAFollowerIsWarmWinningCostsOneListOfEachQuery(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	a, b := newReplica(t, ns), newReplica(t, ns)
	leads := make(chan string, 1)
	long := func(r *replica, identity string) kates.LeaderElection {
		e := r.leading(identity)
		e.LeaseDuration = 4 * patience // who waits for its end is not seen to lead
		return e
	}
	a.run(func(context.Context, *inputs) error { return nil }, long(a, "a"))
	poll(t, func() bool { return a.holder() == "a" }, "the first one leads")
	b.run(func(_ context.Context, in *inputs) error { leads <- in.ConfigMaps[0].Name; return nil }, long(b, "b"))
	poll(t, func() bool { return len(b.faults.Requests(leaseRequests)) > 2 }, "the second one asks for the lease")
	_, err := b.others.Resource(configMaps).Namespace(ns).Create(t.Context(), object(configMaps, ns, "late", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	poll(t, func() bool { return b.client.Status().Queries[0].Objects == 1 }, "the follower sees it", func() any { return b.client.Status() })
	assert.Empty(t, leads, "a follower is not called")
	elsewhere := katestest.Match{Where: func(r katestest.Request) bool { return r.Resource != "leases" }}
	before := len(b.faults.Requests(elsewhere))
	assert.Len(t, b.faults.Requests(reads), 2, "a list and a watch")
	a.stop()
	require.Equal(t, "late", receive(t, leads), "long before the lease would have expired")
	requests := b.faults.Requests(elsewhere)[before:]
	require.Len(t, requests, 1, "%v", requests)
	assert.Equal(t, "list", requests[0].Verb)
	assert.Equal(t, "configmaps", requests[0].Resource)
	b.stop()
}

// handOver records when a leader's function was cancelled, and why, when it returned, and when
// another one was called.
type handOver struct {
	working chan struct{} // closed on the first call

	mu                        sync.Mutex
	cause                     error
	cancelled, returned, took time.Time
}

// work is the function of the first leader. It ends slowly.
func (h *handOver) work(ctx context.Context, _ *inputs) error {
	close(h.working)
	<-ctx.Done()
	h.mu.Lock()
	h.cause, h.cancelled = context.Cause(ctx), time.Now()
	h.mu.Unlock()
	<-time.After(2 * time.Second)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.returned = time.Now()
	return nil
}

func (h *handOver) take(context.Context, *inputs) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.took.IsZero() {
		h.took = time.Now()
	}
	return nil
}

func (h *handOver) done() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.took.IsZero()
}

func TestWhoseAPIServerDoesNotAnswerLosesTheLeaseBeforeAnotherLeads(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*replica) (heal func()){
		"unreachable": func(r *replica) func() { return r.network.Blackhole() },
		"frozen":      func(r *replica) func() { return r.network.Freeze() },
		"refused": func(r *replica) func() {
			heal := r.network.Refuse()
			r.network.Reset()
			return heal
		},
		"503": func(r *replica) func() { return r.faults.On(leaseRequests).Status(503, "", 0).Stop },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			a, b, h := newReplica(t, ns), newReplica(t, ns), &handOver{working: make(chan struct{})}
			lease := func(identity string) kates.LeaderElection {
				e := a.leading(identity)
				e.LeaseDuration, e.RenewDeadline = 10*time.Second, 8*time.Second
				return e
			}
			a.run(h.work, lease("a"))
			receive(t, h.working)
			b.run(h.take, lease("b"))
			poll(t, func() bool { return b.client.Ready() == nil }, "the follower is ready", func() any { return b.client.Status() })
			heal := fail(a)
			err := a.ended()
			ended := time.Now()
			poll(t, h.done, "the other one leads, and the first one has returned")
			assert.ErrorIs(t, err, kates.ErrLeadershipLost)
			assert.ErrorContains(t, err, "lease "+ns+"/"+leaseName)
			assert.ErrorIs(t, h.cause, kates.ErrLeadershipLost)
			assert.Truef(t, h.cancelled.Before(h.took), "cancelled %s after the other led", h.cancelled.Sub(h.took))
			assert.Truef(t, h.returned.Before(ended), "the error comes when the function has returned")
			heal()
			assert.Equal(t, "b", a.holder())
			a.run(func(context.Context, *inputs) error { return errors.New("not the leader's") }, lease("a"))
			poll(t, func() bool { return a.client.Ready() == nil }, "it follows", func() any { return a.client.Status() })
			a.stop()
			b.stop()
		})
	}
}

func TestAFailingFunctionKeepsItsBackoffUnderChurnAndTriesWithTheNewestSnapshot(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	churn, stop := context.WithCancel(t.Context())
	var wrote sync.WaitGroup
	wrote.Go(func() {
		in := r.others.Resource(configMaps).Namespace(r.ns)
		for n := 1; churn.Err() == nil; n++ {
			u := object(configMaps, r.ns, "count", nil)
			u.Object["data"] = map[string]any{"n": fmt.Sprint(n)}
			// A write that is cancelled may land later, and then another content is the newest.
			if _, err := in.Update(t.Context(), u, metav1.UpdateOptions{}); kates.IsNotFound(err) {
				_, _ = in.Create(t.Context(), u, metav1.CreateOptions{})
			}
		}
	})
	type try struct {
		at time.Time
		n  int
	}
	tries := make(chan try, 1000)
	ticks := make(chan int)
	wrote.Go(func() {
		for churn.Err() == nil {
			select {
			case ticks <- 1:
			case <-churn.Done():
			}
		}
	})
	r.run(func(_ context.Context, in *inputs) error {
		n, _ := in.count()
		tries <- try{time.Now(), n}
		return errors.New("not yet")
	}, kates.WithBackoff(100*time.Millisecond, 400*time.Millisecond), kates.WithTriggers(ticks))
	first := receive(t, tries)
	last := first
	for _, least := range []time.Duration{100, 200, 400, 400, 400} {
		next := receive(t, tries)
		assert.GreaterOrEqual(t, next.at.Sub(last.at), least*time.Millisecond)
		assert.GreaterOrEqual(t, next.n, last.n)
		last = next
	}
	for last.n == first.n { // the server may be slow
		last = receive(t, tries)
	}
	stop()
	wrote.Wait()
	u, err := r.others.Resource(configMaps).Namespace(r.ns).Get(t.Context(), "count", metav1.GetOptions{})
	require.NoError(t, err)
	n, _, _ := unstructured.NestedString(u.Object, "data", "n")
	newest, err := strconv.Atoi(n)
	require.NoError(t, err)
	tried := 0
	poll(t, func() bool { tried = receive(t, tries).n; return tried == newest }, "it tries with the newest snapshot", func() any { return []int{newest, tried} })
	r.stop()
}

func TestTwoRunsOnOneClientShareTheirStreams(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	configured, written := make(chan int, 10), make(chan int, 10)
	ctx, cancel := context.WithCancel(t.Context())
	query := kates.Query{Name: "ConfigMaps", Namespace: r.ns}
	ends := make(chan error, 2)
	go func() {
		ends <- kates.Run(ctx, r.client, func(_ context.Context, in *inputs) error { configured <- len(in.ConfigMaps); return nil }, query)
	}()
	receive(t, configured)
	go func() {
		ends <- kates.Run(ctx, r.client, func(_ context.Context, in *inputs) error { written <- len(in.ConfigMaps); return nil }, query, r.leading("a"))
	}()
	receive(t, written)
	assert.Len(t, r.faults.Requests(watches), 1, "the list is streamed, and goes on as the watch")
	// The server may end a watch at any time, and then it is asked again.
	require.NoError(t, r.faults.Wait(t.Context(), func() bool { return len(r.faults.Open(watches)) == 1 }))
	require.NoError(t, r.client.Create(t.Context(), object(configMaps, r.ns, "x", nil), nil))
	assert.Equal(t, 1, receive(t, configured))
	assert.Equal(t, 1, receive(t, written))
	cancel()
	assert.NoError(t, receive(t, ends))
	assert.NoError(t, receive(t, ends))
	assert.Empty(t, r.client.Status().Queries)
}

func TestARateLimitIsNotForTheLease(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t), kates.WithRateLimit(5, 1))
	leads := make(chan struct{}, 1)
	r.run(func(ctx context.Context, _ *inputs) error { leads <- struct{}{}; <-ctx.Done(); return nil }, r.leading("a"))
	receive(t, leads)
	busy, stop := context.WithCancel(t.Context())
	defer stop()
	before := len(r.faults.Requests(leaseRequests))
	var all sync.WaitGroup
	for range 50 { // each request waits for 50 others, which takes 10 s
		all.Go(func() {
			for busy.Err() == nil {
				_ = r.client.Get(busy, object(configMaps, r.ns, "x", nil), nil)
			}
		})
	}
	renewals, end := context.WithTimeout(t.Context(), patience)
	defer end()
	assert.NoError(t, r.faults.Wait(renewals, func() bool { return len(r.faults.Requests(leaseRequests)) >= before+5 }))
	stop()
	all.Wait()
	gets := katestest.Match{Verb: "get", Resource: "configmaps"}
	assert.Less(t, len(r.faults.Requests(gets)), 3*50, "had the lease waited, too, it would be five times as many as ask")
	r.stop()
}
