package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// addresses is a program that writes a config map for each service, with the addresses of its
// slices. A graph derives what it has to write, from its own config maps too.
type addresses struct {
	t      *testing.T
	ns     string
	client *kates.Client
	graph  *derive.Graph[addressBook]
	out    addressNodes

	mu    sync.Mutex
	shown []*addressBook
	todo  int // that the last Update has derived
	// writes counts own writes, and of has what the last one of each name has made: the version of
	// the config map, 0 if it was deleted.
	writes int
	of     map[string]uint64
	// deleted are names that another program has deleted.
	deleted map[string]bool
}

type addressBook struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	Maps     []*corev1.ConfigMap
}

type addressNodes struct {
	maps   derive.Collection[types.NamespacedName, *corev1.ConfigMap]
	wanted derive.Collection[types.NamespacedName, string]
	todo   derive.Collection[types.NamespacedName, string] // the text to write
	extra  derive.Collection[types.NamespacedName, string] // config maps to delete: their UIDs
}

const addressLabel = "e2e-addresses"

// addressGraph declares the graph.
func addressGraph() (*derive.Graph[addressBook], addressNodes) {
	type name = types.NamespacedName
	g, n := derive.New[addressBook]("addresses", derive.Verified()), addressNodes{}
	services := derive.Objects(g, "services", func(s *addressBook) []*corev1.Service { return s.Services })
	slicesOf := derive.GroupBy(
		derive.Objects(g, "slices", func(s *addressBook) []*discoveryv1.EndpointSlice { return s.Slices }), "slices of",
		func(k name, s *discoveryv1.EndpointSlice) []name {
			return []name{{Namespace: k.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}}
		})
	n.maps = derive.Objects(g, "maps", func(s *addressBook) []*corev1.ConfigMap { return s.Maps })
	n.wanted = derive.Map(services, "wanted", func(r *derive.Reader, k name, s *corev1.Service) (string, error) {
		return textOfService(s, slicesOf.Members(r, k).All()), nil
	})
	n.todo = derive.Map(n.wanted, "todo", func(r *derive.Reader, k name, text string) (string, error) {
		if m, err := n.maps.Get(r, k); err == nil && m.Data["addresses"] == text {
			return "", derive.Skip
		}
		return text, nil
	})
	n.extra = derive.Map(n.maps, "extra", func(r *derive.Reader, k name, m *corev1.ConfigMap) (string, error) {
		if _, err := services.Get(r, k); err == nil {
			return "", derive.Skip
		}
		return string(m.UID), nil
	})
	return g, n
}

// textOfService is what a config map says of a service.
func textOfService(s *corev1.Service, of func(func(types.NamespacedName, *discoveryv1.EndpointSlice) bool)) string {
	all := []string{fmt.Sprint(s.Spec.Ports[0].Port)}
	for _, slice := range of {
		for _, e := range slice.Endpoints {
			all = append(all, e.Addresses...)
		}
	}
	return strings.Join(all, " ")
}

// run takes snapshots until ctx ends.
func (a *addresses) run(ctx context.Context, snapshots *kates.Snapshots[addressBook]) error {
	for snap, err := range snapshots.All(ctx) {
		if err != nil {
			return err
		}
		if err := a.step(snap); err != nil {
			return err
		}
	}
	return nil
}

// step derives what is to be done, compares it with what an evaluation from scratch gives, and
// does it.
func (a *addresses) step(snap *addressBook) error {
	r, err := a.graph.Update(snap)
	if err != nil {
		return err
	}
	again, scratch := addressGraph()
	fresh, err := again.Update(snap)
	if err != nil {
		return err
	}
	todo, extra := maps.Collect(a.out.todo.All(r)), maps.Collect(a.out.extra.All(r))
	assert.Equal(a.t, maps.Collect(scratch.wanted.All(fresh)), maps.Collect(a.out.wanted.All(r)), "from scratch")
	assert.Equal(a.t, maps.Collect(scratch.todo.All(fresh)), todo, "from scratch")
	assert.Equal(a.t, maps.Collect(scratch.extra.All(fresh)), extra, "from scratch")
	a.judge(r)
	a.mu.Lock()
	if a.shown = append(a.shown, snap); len(a.shown) > 40 {
		a.shown = a.shown[1:]
	}
	a.todo = len(todo) + len(extra)
	a.mu.Unlock()
	// Each write has to return, so that its effect is known.
	for k, text := range todo {
		m := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name, Labels: map[string]string{addressLabel: a.ns}},
			Data:       map[string]string{"addresses": text},
		}
		if err := a.client.Apply(context.Background(), m, m, kates.ForceOwnership()); err != nil {
			return err
		}
		a.wrote(k.Name, m.ResourceVersion)
	}
	for k, uid := range extra {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name, UID: types.UID(uid)}}
		err := a.client.Delete(context.Background(), m, nil)
		if kates.IsNotFound(err) {
			continue // another program was faster, and the watch will tell
		}
		if err != nil {
			return err
		}
		a.wrote(k.Name, "0")
	}
	return nil
}

func (a *addresses) wrote(name, version string) {
	objectRV, err := strconv.ParseUint(version, 10, 64)
	assert.NoError(a.t, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes++
	a.of[name] = objectRV
	delete(a.deleted, name)
}

// judge looks at each own write: the graph's inputs show it, or what came after it.
func (a *addresses) judge(r *derive.Reader) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, writtenRV := range a.of {
		m, err := a.out.maps.Get(r, types.NamespacedName{Namespace: a.ns, Name: name})
		if writtenRV == 0 {
			assert.ErrorIs(a.t, err, derive.ErrNone, "the own deletion of %s is unseen", name)
			continue
		}
		if err != nil {
			assert.True(a.t, a.deleted[name], "the own write of %s is unseen", name)
			continue
		}
		shownRV, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
		assert.NoError(a.t, err)
		assert.GreaterOrEqual(a.t, shownRV, writtenRV, "the own write of %s is unseen", name)
	}
}

// settled reports whether the server has what is wanted of what it has.
func (a *addresses) settled(admin *kubernetes.Clientset) bool {
	ctx, wants, has := a.t.Context(), map[string]string{}, map[string]string{}
	services, err := admin.CoreV1().Services(a.ns).List(ctx, metav1.ListOptions{})
	require.NoError(a.t, err)
	all, err := admin.DiscoveryV1().EndpointSlices(a.ns).List(ctx, metav1.ListOptions{})
	require.NoError(a.t, err)
	for i := range services.Items {
		s := &services.Items[i]
		wants[s.Name] = textOfService(s, func(yield func(types.NamespacedName, *discoveryv1.EndpointSlice) bool) {
			for j := range all.Items { // etcd has them in order
				if slice := &all.Items[j]; slice.Labels[discoveryv1.LabelServiceName] == s.Name && !yield(types.NamespacedName{}, slice) {
					return
				}
			}
		})
	}
	written, err := admin.CoreV1().ConfigMaps(a.ns).List(ctx, metav1.ListOptions{LabelSelector: addressLabel})
	require.NoError(a.t, err)
	for _, m := range written.Items {
		has[m.Name] = m.Data["addresses"]
	}
	return maps.Equal(wants, has)
}

// others changes services and slices, as other programs do.
type others struct {
	*addresses
	admin *kubernetes.Clientset
}

func (o others) service(name string, port int32) {
	ctx, in := o.t.Context(), o.admin.CoreV1().Services(o.ns)
	s := &corev1.Service{ObjectMeta: named(o.ns, name), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: port}},
	}}
	_, err := in.Create(ctx, s, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(o.t, err)
		return
	}
	now, err := in.Get(ctx, name, metav1.GetOptions{})
	require.NoError(o.t, err)
	now.Spec.Ports = s.Spec.Ports
	_, err = in.Update(ctx, now, metav1.UpdateOptions{})
	require.NoError(o.t, err)
}

func (o others) slice(name, service, address string) {
	_, err := o.admin.DiscoveryV1().EndpointSlices(o.ns).Create(o.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: o.ns, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}, metav1.CreateOptions{})
	require.NoError(o.t, err)
}

// round changes services and slices while one of their watches is stalled. The watch of config
// maps is stalled while the program writes them.
func (o others) round(w *wire, i int) {
	ctx := o.t.Context()
	w.set("configmaps", late)
	kept := []string{"services", "endpointslices"}[i%2]
	w.set(kept, late)
	for n := range 4 {
		o.service(fmt.Sprint("s", (i+n)%6), int32(80+i))
	}
	o.slice(fmt.Sprint("a", i), fmt.Sprint("s", i%6), fmt.Sprint("10.0.0.", i+1))
	o.slice(fmt.Sprint("b", i), fmt.Sprint("s", (i+1)%6), fmt.Sprint("10.0.1.", i+1))
	gone := fmt.Sprint("s", (i+5)%6)
	if err := o.admin.CoreV1().Services(o.ns).Delete(ctx, gone, metav1.DeleteOptions{}); !kates.IsNotFound(err) {
		require.NoError(o.t, err)
	}
	w.set(kept, 0)
	settled := func() bool { return o.settled(o.admin) }
	poll(o.t, settled, "the config maps are written, though their watch is late", o.state)

	// Somebody writes and deletes config maps, and the program learns of it from the late watch.
	name, other := fmt.Sprint("s", i%6), fmt.Sprint("s", (i+1)%6)
	m, err := o.admin.CoreV1().ConfigMaps(o.ns).Get(ctx, name, metav1.GetOptions{})
	require.NoError(o.t, err)
	m.Data["addresses"] = "drifted"
	_, err = o.admin.CoreV1().ConfigMaps(o.ns).Update(ctx, m, metav1.UpdateOptions{})
	require.NoError(o.t, err)
	o.mu.Lock()
	o.deleted[other] = true
	o.mu.Unlock()
	require.NoError(o.t, o.admin.CoreV1().ConfigMaps(o.ns).Delete(ctx, other, metav1.DeleteOptions{}))
	w.set("configmaps", 0)
	poll(o.t, settled, "the config maps are repaired", o.state)
}

func (o others) state() any {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprintf("%d writes, %d to do", o.writes, o.todo)
}

// A program writes what a graph derives, and the graph reads what the program has written. Each
// step sees the step before, though the watches are late.
func TestG4G6AGraphThatReadsWhatItsProgramWritesSettlesWithoutAStaleStep(t *testing.T) {
	t.Parallel()
	w, ns := newWire(t), namespace(t)
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	a := &addresses{t: t, ns: ns, client: w.client(t, kates.WithInterval(0)), of: map[string]uint64{}, deleted: map[string]bool{}}
	a.graph, a.out = addressGraph()
	ctx, cancel := context.WithCancel(t.Context())
	snapshots, err := kates.Watch[addressBook](ctx, a.client, kates.Query{Name: "Services", Namespace: ns},
		kates.Query{Name: "Slices", Namespace: ns}, kates.Query{Name: "Maps", Namespace: ns, LabelSelector: addressLabel})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- a.run(ctx, snapshots) }()
	o := others{a, admin}
	for i := range 6 {
		o.round(w, i)
	}
	nothing := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.todo == 0
	}
	poll(t, nothing, "nothing is left to do", o.state)
	before := o.state()
	w.drained(t, "configmaps")
	require.NoError(t, a.client.Sync(t.Context()))
	poll(t, nothing, "nothing is left to do", o.state)
	assert.Equal(t, before, o.state(), "what the late watch has brought gives nothing to do")
	cancel()
	require.NoError(t, receive(t, done))
	assert.Greater(t, a.writes, 20)
	katestest.Derives(t, func() *derive.Graph[addressBook] {
		g, _ := addressGraph()
		return g
	}, slices.Clone(a.shown)...)
}
