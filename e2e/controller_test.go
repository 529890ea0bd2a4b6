package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
)

// hostParts is a host and the config maps that are made from it. The first number in its name
// says how many; each has the host's value.
type hostParts struct {
	Root *kates.Unstructured `kates:"hosts.getambassador.io,root"`
	Maps []*corev1.ConfigMap `kates:",owned"`
	Info controller.Info
}

// hostOf returns a host that wants n config maps with a value.
func hostOf(ns, name string, n int, value string) *kates.Unstructured {
	u := object(hosts, ns, name, nil)
	u.Object["spec"] = map[string]any{"hostname": fmt.Sprint(n, "-", value)}
	return u
}

// wanted returns what a host wants.
func wanted(host *kates.Unstructured) map[string]string {
	hostname, _, _ := unstructured.NestedString(host.Object, "spec", "hostname")
	number, value, _ := strings.Cut(hostname, "-")
	n, _ := strconv.Atoi(number)
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint(host.GetName(), "-", i)] = value
	}
	return all
}

// hostMaker is a reconciler that checks that it sees everything that it has written.
type hostMaker struct {
	t      *testing.T
	client *kates.Client
	reads  kubernetes.Interface

	mu       sync.Mutex
	held     map[string]bool
	written  map[string]map[types.UID]*corev1.ConfigMap // by key; nil: deleted by this reconciler
	deleting map[types.UID]bool                         // perhaps deleted by others
	departed map[types.UID]bool
}

func (m *hostMaker) reconcile(ctx context.Context, p *hostParts) (controller.Result, error) {
	defer m.hold(p)()
	if p.Info.Departure != "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		assert.False(m.t, m.departed[p.Root.GetUID()], "departed once")
		m.departed[p.Root.GetUID()] = true
		delete(m.written, p.Info.Key)
		return controller.Done, nil
	}
	if rand.IntN(6) == 0 {
		return controller.Done, errors.New("by chance")
	}
	want := wanted(p.Root)
	for _, cm := range p.Maps {
		value, keep := want[cm.Name]
		delete(want, cm.Name)
		switch {
		case !keep:
			if err := m.client.Delete(ctx, cm, nil, kates.IfUID(cm.UID)); err != nil {
				return controller.Done, err
			}
			m.wrote(p.Info.Key, cm.UID, nil)
		case cm.Data["value"] != value:
			changed := cm.DeepCopy()
			changed.Data = map[string]string{"value": value}
			if err := m.client.Update(ctx, changed, changed); err != nil {
				return controller.Done, err
			}
			m.wrote(p.Info.Key, cm.UID, changed)
		}
	}
	for name, value := range want {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.Root.GetNamespace(), Name: name}, Data: map[string]string{"value": value}}
		if err := kates.SetControllerReference(p.Root, cm); err != nil {
			return controller.Done, err
		}
		if err := m.client.Create(ctx, cm, cm); err != nil {
			// it belongs to an earlier root until the collector deletes it
			return controller.Done, err
		}
		m.wrote(p.Info.Key, cm.UID, cm)
	}
	return controller.Done, nil
}

func (m *hostMaker) wrote(key string, uid types.UID, cm *corev1.ConfigMap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.written[key] == nil {
		m.written[key] = map[types.UID]*corev1.ConfigMap{}
	}
	m.written[key][uid] = cm
}

// hold checks that no other call holds the key, and that the struct has what was written for it.
func (m *hostMaker) hold(p *hostParts) (release func()) {
	key, shown := p.Info.Key, map[types.UID]*corev1.ConfigMap{}
	for _, cm := range p.Maps {
		shown[cm.UID] = cm
		assert.True(m.t, metav1.IsControlledBy(cm, p.Root), "%s of %s is another root's", cm.Name, key)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.False(m.t, m.held[key], "%s is held by two", key)
	m.held[key] = true
	for uid, wrote := range m.written[key] {
		now := shown[uid]
		switch {
		case wrote == nil:
			assert.Nil(m.t, now, "G4: what was deleted is shown")
		case !metav1.IsControlledBy(wrote, p.Root) || m.deleting[uid]:
		case assert.NotNil(m.t, now, "G4: %s that was written is not shown", wrote.Name):
			assert.GreaterOrEqual(m.t, number(now.ResourceVersion), number(wrote.ResourceVersion), "G4: %s is older than what was written", wrote.Name)
		}
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.held, key)
	}
}

// collect plays the garbage collector until ctx ends: it deletes objects whose controlling root
// is gone.
func (m *hostMaker) collect(ctx context.Context, ns string) {
	d := foreign(m.t)
	for ctx.Err() == nil {
		all, err := m.reads.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		alive := map[types.UID]bool{}
		roots, err := d.Resource(hosts).Namespace(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, root := range roots.Items {
			alive[root.GetUID()] = true
		}
		for _, cm := range all.Items {
			if owner := metav1.GetControllerOf(&cm); owner != nil && !alive[owner.UID] {
				m.remove(ctx, &cm)
			}
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// remove deletes a config map as another program would.
func (m *hostMaker) remove(ctx context.Context, cm *corev1.ConfigMap) {
	m.mu.Lock()
	m.deleting[cm.UID] = true
	m.mu.Unlock()
	// or it is gone
	_ = m.reads.CoreV1().ConfigMaps(cm.Namespace).Delete(ctx, cm.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(cm.UID))})
}

// Three writers edit and delete roots, replace them under their names, and edit and delete what
// they own. Four workers fail by chance.
func TestG4G6AControllerConvergesAmongOtherWritersAndSeesAllItHasWritten(t *testing.T) {
	t.Parallel()
	ns, ctx := namespace(t), t.Context()
	c, err := tapped(kates.NewClientFromRESTConfig(serverOf(t), kates.WithLogger(slog.New(secrecy.Handler(slog.DiscardHandler)))))
	require.NoError(t, err)
	defer c.Close()
	reads, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	m := &hostMaker{
		t: t, client: c, reads: reads, held: map[string]bool{}, written: map[string]map[types.UID]*corev1.ConfigMap{},
		deleting: map[types.UID]bool{}, departed: map[types.UID]bool{},
	}
	ctl, err := controller.New(c, "hosts", m.reconcile, kates.WithWorkers(4), kates.WithBackoff(time.Millisecond, 50*time.Millisecond),
		kates.Query{Name: "Root", Namespace: ns}, kates.Query{Name: "Maps", Namespace: ns})
	require.NoError(t, err)
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- ctl.Run(running) }()
	var writers, collector sync.WaitGroup
	collector.Go(func() { m.collect(running, ns) })
	for w := range 3 {
		writers.Go(func() { m.disturb(ctx, ns, w) })
	}
	writers.Wait()
	both := func() any { want, got := m.roots(ctx, ns); return []any{want, got} }
	poll(t, func() bool { return maps.Equal(m.roots(ctx, ns)) }, "all is reconciled", both, func() any { return ctl.Status() })
	cancel()
	assert.NoError(t, <-done)
	collector.Wait()
	assert.NotEmpty(t, m.departed)
}

// disturb writes as other programs do.
func (m *hostMaker) disturb(ctx context.Context, ns string, seed int) {
	r, d := rand.New(rand.NewPCG(uint64(seed), 1)), foreign(m.t)
	for i := range 60 {
		name := fmt.Sprint("h", r.IntN(8))
		switch in := d.Resource(hosts).Namespace(ns); r.IntN(5) {
		case 0:
			_ = in.Delete(ctx, name, metav1.DeleteOptions{}) // it may not exist
		case 1:
			all, err := m.reads.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
			if err == nil && len(all.Items) > 0 {
				m.remove(ctx, &all.Items[r.IntN(len(all.Items))])
			}
		case 2:
			all, err := m.reads.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
			if err == nil && len(all.Items) > 0 {
				cm := &all.Items[r.IntN(len(all.Items))]
				cm.Data = map[string]string{"value": "drifted"}
				_, _ = m.reads.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{})
			}
		default:
			host := hostOf(ns, name, r.IntN(4), fmt.Sprint("w", seed, i))
			if _, err := in.Create(ctx, host, metav1.CreateOptions{}); err != nil {
				if now, err := in.Get(ctx, name, metav1.GetOptions{}); err == nil {
					now.Object["spec"] = host.Object["spec"]
					_, _ = in.Update(ctx, now, metav1.UpdateOptions{}) // or a conflict
				}
			}
		}
	}
}

// roots returns the values of what the roots want, and those of what exists.
func (m *hostMaker) roots(ctx context.Context, ns string) (want, got map[string]string) {
	want, got = map[string]string{}, map[string]string{}
	roots, err := foreign(m.t).Resource(hosts).Namespace(ns).List(ctx, metav1.ListOptions{})
	require.NoError(m.t, err)
	owners := map[string]types.UID{}
	for _, root := range roots.Items {
		for name, value := range wanted(&root) {
			want[name], owners[name] = value, root.GetUID()
		}
	}
	all, err := m.reads.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
	require.NoError(m.t, err)
	for _, cm := range all.Items {
		if owner := metav1.GetControllerOf(&cm); owner == nil || owner.UID == owners[cm.Name] {
			got[cm.Name] = cm.Data["value"]
		} else {
			got[cm.Name] = "another root's"
		}
	}
	return want, got
}
