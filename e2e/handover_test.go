package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// handover is a namespace whose roots change all the time.
type handover struct {
	*audited
	ns     string
	admin  *kubernetes.Clientset
	roots  int
	wanted int // the number that all roots want
}

func newHandover(t *testing.T, a *audited, roots int) *handover {
	t.Helper()
	admin, err := kubernetes.NewForConfig(a.Config)
	require.NoError(t, err)
	h := &handover{audited: a, ns: fmt.Sprint("hand-over-", rand.IntN(1e9)), admin: admin, roots: roots}
	_, err = admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for i := range roots {
		_, err := admin.CoreV1().ConfigMaps(h.ns).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("root-", i), Labels: map[string]string{"root": ""}},
			Data:       map[string]string{"want": "0"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return h
}

// loaders is how many goroutines change roots at the same time.
const loaders = 4

// load changes what roots want, until it is stopped. Then all want the same.
func (h *handover) load(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	change := func(i, want int) { // none is cut short: it could land after the last one
		u := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("root-", i), Labels: map[string]string{"root": ""}},
			Data:       map[string]string{"want": strconv.Itoa(want)},
		}
		_, err := h.admin.CoreV1().ConfigMaps(h.ns).Update(t.Context(), u, metav1.UpdateOptions{})
		assert.NoError(t, err)
	}
	for l := range loaders {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				change((n*loaders+l)%h.roots, h.wanted+1+n)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
		h.wanted += 1_000_001
		for i := range h.roots {
			change(i, h.wanted)
		}
	}
}

// copies returns the writer of each copy, or "" if a copy is not what its root wants.
func (h *handover) copies(t *testing.T) (by []string) {
	t.Helper()
	list, err := h.admin.CoreV1().ConfigMaps(h.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "copy"})
	require.NoError(t, err)
	by = make([]string, h.roots)
	for _, c := range list.Items {
		i, err := strconv.Atoi(c.Name[len(copyPrefix)+len("root-"):])
		require.NoError(t, err)
		if c.Data["have"] == strconv.Itoa(h.wanted) {
			by[i] = c.Data["by"]
		}
	}
	return by
}

// taken waits until every copy is what its root wants, and none was written by that one.
func (h *handover) taken(t *testing.T, not string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		by := h.copies(t)
		assert.NotContains(c, by, "")
		assert.NotContains(c, by, not)
	}, patience, 20*time.Millisecond)
}

// someone waits until another writer's copy exists.
func (h *handover) someone(t *testing.T, not string) {
	t.Helper()
	began := metav1.Now()
	poll(t, func() bool {
		for _, w := range h.writes(t, h.ns) {
			if w.at.After(began.Time) && w.landed() && !w.lease() && w.user != not && strings.HasPrefix(w.name, copyPrefix) {
				return true
			}
		}
		return false
	}, "another one writes a copy")
}

func (h *handover) leader(t *testing.T) string {
	t.Helper()
	var holder string
	poll(t, func() bool {
		lease, err := h.admin.CoordinationV1().Leases(h.ns).Get(t.Context(), handOverGroup, metav1.GetOptions{})
		if kates.IsNotFound(err) {
			return false
		}
		require.NoError(t, err)
		holder = *lease.Spec.HolderIdentity
		return holder != ""
	}, "there is a leader")
	return holder
}

// frozen is a replica that was stopped, with the times.
type frozen struct {
	user          string
	stopped, woke time.Time
	whole         bool // others had written everything before it woke
}

// judge reads the audit log. Once others have written an object, no write of the stopped replica
// lands on it. If they had written everything, none lands anywhere. This ends when the replica
// has a lease again. judge returns how many writes the server refused.
func (h *handover) judge(t *testing.T, rounds []frozen) (refused int) {
	t.Helper()
	all := h.writes(t, h.ns)
	for _, round := range rounds {
		others := map[string]bool{}
		for _, w := range all {
			own := w.user == round.user
			if own && w.landed() && w.lease() && w.verb != "delete" && w.at.After(round.woke) {
				break // it has a lease again
			}
			switch {
			case w.at.Before(round.stopped), w.lease(), !strings.HasPrefix(w.name, copyPrefix):
			case !own && w.landed():
				others[w.name] = true
			// it was under way when the replica was stopped
			case !own, w.at.Before(round.woke) && !others[w.name]:
			case !w.landed():
				refused++
			default:
				assert.False(t, others[w.name] || round.whole, "late: %v %v", w, round)
			}
		}
	}
	return refused
}

// Processes are stopped (SIGSTOP) while they work, for longer than their lease, and then continue
// while another leads. The server's audit log shows their writes.
func TestNoneOfTheLateWritesOfALeaderThatWasFrozenLands(t *testing.T) {
	t.Parallel()
	h := newHandover(t, newAudited(t), 32)
	var replicas []*replicaProcess
	for i := range 3 {
		replicas = append(replicas, h.startReplica(t, replicaRole{Namespace: h.ns, Identity: fmt.Sprint("replica-", i)}))
	}
	h.freeze(t, 10, frozenOne{
		amidst: func(round int) *replicaProcess { return h.holdAWrite(t, round, replicas) },
		woke: func(round int, p *replicaProcess) {
			assert.NotEqual(t, "<nil>", p.letGo(t, round), "a late write is tried")
		},
	})
}

// This is the same test for one of three shards.
func TestNoneOfTheLateWritesOfAShardThatWasFrozenLands(t *testing.T) {
	t.Parallel()
	h := newHandover(t, newAudited(t), 32)
	var replicas []*replicaProcess
	for i := range 3 {
		replicas = append(replicas, h.startReplica(t, replicaRole{Namespace: h.ns, Identity: fmt.Sprint("replica-", i), Sharded: true}))
	}
	h.freeze(t, 10, frozenOne{
		before: func() *replicaProcess {
			one := replicas[rand.IntN(len(replicas))]
			poll(t, func() bool { return countOf(h.copies(t), one.role.Identity) > 0 }, "the replica has copies")
			return one
		},
	})
	by := h.copies(t)
	for _, p := range replicas {
		t.Logf("%s has %d copies", p.role.Identity, countOf(by, p.role.Identity))
	}
}

func countOf(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// frozenOne chooses the process to stop: before there is anything to do, or amidst that. Woke, if
// there is one, is called when the process has gone on.
type frozenOne struct {
	before func() *replicaProcess
	amidst func(round int) *replicaProcess
	woke   func(round int, p *replicaProcess)
}

// freeze stops one process in each round. It wakes the process when others have begun its work,
// or have finished it.
func (h *handover) freeze(t *testing.T, rounds int, v frozenOne) {
	t.Helper()
	var all []frozen
	seen := map[*replicaProcess]bool{}
	stop := h.load(t)
	stop()
	h.taken(t, "nobody")
	for n := range rounds {
		var one *replicaProcess
		if v.before != nil {
			one = v.before()
		}
		stop := h.load(t)
		if v.amidst != nil {
			one = v.amidst(n + 1)
		}
		seen[one] = true
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		one.signal(t, syscall.SIGSTOP)
		round := frozen{user: one.role.Identity, stopped: time.Now(), whole: n%2 == 0}
		if round.whole {
			time.Sleep(100 * time.Millisecond)
			stop()
			h.taken(t, round.user)
			stop = func() {}
		} else {
			h.someone(t, round.user)
		}
		round.woke = time.Now()
		one.signal(t, syscall.SIGCONT)
		if v.woke != nil {
			v.woke(n+1, one)
		}
		time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		stop()
		h.taken(t, "nobody")
		all = append(all, round)
	}
	refused, conflicts := 0, h.judge(t, all)
	for p := range seen {
		refused += int(p.refused.Load())
	}
	t.Logf("%d rounds: %d late writes were not sent, %d were refused by the server", rounds, refused, conflicts)
}

// No client can stop these writes any more; preconditions keep them out. The network holds
// everything that is sent until another leader has written everything. It does so from the
// moment at which a write leaves, so that in each round at least one is on its way.
func TestWritesThatWereOnTheirWayWhenTheLeaseEndedDoNotLand(t *testing.T) {
	t.Parallel()
	h := newHandover(t, newAudited(t), 32)
	var all []frozen
	sent := 0
	for n := range 5 {
		post := newPost(t)
		held := h.startHere(t, fmt.Sprint("held-", n), post)
		require.Equal(t, fmt.Sprint("held-", n), h.leader(t))
		stop := h.load(t)
		post.holdAfter(rand.IntN(100))
		receive(t, post.left)
		thaw := post.network.Blackhole()
		round := frozen{user: fmt.Sprint("held-", n), stopped: time.Now(), whole: true}
		free := h.startHere(t, fmt.Sprint("free-", n), nil)
		stop()
		h.taken(t, round.user)
		round.woke = time.Now()
		for _, code := range post.deliver(t) {
			assert.GreaterOrEqual(t, code, http.StatusBadRequest, "a late write")
			sent++
		}
		thaw()
		asked := post.leases.Load()
		poll(t, func() bool { return post.leases.Load() > asked+1 }, "it is a candidate again")
		held()
		free()
		all = append(all, round)
	}
	late := h.judge(t, all)
	t.Logf("%d writes were on their way, %d late writes were refused by the server", sent, late)
	assert.GreaterOrEqual(t, sent, len(all), "at least one in each round")
	assert.GreaterOrEqual(t, late, sent)
}

// startHere runs a replica in this process. If post is not nil, its requests go through it.
func (h *handover) startHere(t *testing.T, identity string, post *post) (stop func()) {
	t.Helper()
	config, err := h.AddUser(identity, "system:masters")
	require.NoError(t, err)
	config = rest.CopyConfig(config)
	if post != nil {
		post.late, err = rest.TransportFor(config)
		require.NoError(t, err)
		config.Dial = post.network.DialContext
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return posted{post, next} })
	}
	client, err := tapped(kates.NewClientFromRESTConfig(config, kates.WithInterval(0), kates.WithNamespace(h.ns)))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	role := replicaRole{Namespace: h.ns, Identity: identity}
	running.Go(func() { assert.NoError(t, role.run(ctx, client, func() {})) })
	return func() {
		cancel()
		running.Wait()
		client.Close()
	}
}
