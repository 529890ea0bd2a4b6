package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
)

// referrers are config maps whose data names secrets.
type referrers struct {
	ConfigMaps []*corev1.ConfigMap
	Secrets    kates.Lookup[*corev1.Secret]
}

func secretsOf(cm *corev1.ConfigMap) (names []types.NamespacedName) {
	for _, name := range cm.Data {
		names = append(names, types.NamespacedName{Name: name})
	}
	return names
}

var toSecrets = []kates.Ref{kates.RefsOf("ConfigMaps", secretsOf)}

func secretNamed(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"v": []byte(secrecy.Mark(value))}}
}

// The user may not list secrets.
func TestG1G8WithTheRightToSomeNamesOnlyTheseAreWatchedAndRefusedOnesAreAbsentUntilTheyAreGranted(t *testing.T) {
	t.Parallel()
	ns, ctx := namespace(t), t.Context()
	user := newSubject(t, "refs-"+ns)
	watch := []string{"list", "watch"}
	user.grant(ns, "maps", rbacv1.PolicyRule{Verbs: watch, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	user.grant(ns, "some", rbacv1.PolicyRule{Verbs: watch, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"one", "missing"}})
	config := rest.CopyConfig(serverOf(t))
	user.is(config)
	c, err := tapped(kates.NewClientFromRESTConfig(config, kates.WithInterval(0), kates.WithLogger(slog.New(secrecy.Handler(slog.DiscardHandler)))))
	require.NoError(t, err)
	defer c.Close()
	admin := user.admin.CoreV1()
	for name, data := range map[string]map[string]string{"a": {"s": "one"}, "b": {"s": "missing"}} {
		_, err := admin.ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"my": "own"}}, Data: data}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, name := range []string{"one", "hidden"} {
		_, err := admin.Secrets(ns).Create(ctx, secretNamed(name, "1"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	snapshots, err := kates.Watch[referrers](ctx, c,
		kates.Query{Name: "ConfigMaps", Namespace: ns, LabelSelector: "my=own"}, kates.Query{Name: "Secrets", Refs: toSecrets})
	require.NoError(t, err)
	snap := new(referrers)
	shows := func(names string, maps int) {
		t.Helper()
		require.Eventually(t, func() bool {
			_, err := snapshots.Update(ctx, snap)
			got := ""
			all, looked := snap.Secrets.List("", nil)
			for _, s := range all {
				got += s.Name + " "
			}
			return err == nil && looked == nil && got == names && len(snap.ConfigMaps) == maps
		}, patience, 20*time.Millisecond)
	}
	shows("one ", 2)
	require.NoError(t, snapshots.Status().Err())
	assert.Equal(t, 2, snapshots.Status().Queries[1].Refs)
	_, err = admin.Secrets(ns).Create(ctx, secretNamed("missing", "1"), metav1.CreateOptions{})
	require.NoError(t, err)
	shows("missing one ", 2)
	require.NoError(t, admin.Secrets(ns).Delete(ctx, "one", metav1.DeleteOptions{}))
	shows("missing ", 2)
	_, err = admin.ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"my": "own"}}, Data: map[string]string{"s": "hidden"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	shows("missing ", 3)
	assert.ErrorContains(t, snapshots.Status().Err(), "forbidden")
	user.grant(ns, "more", rbacv1.PolicyRule{Verbs: watch, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"hidden"}})
	shows("hidden missing ", 3)
	require.Eventually(t, func() bool { return snapshots.Status().Err() == nil }, patience, 20*time.Millisecond)
}

// outputs are what was made for each key from what it refers to.
type outputs struct {
	mu  sync.Mutex
	all map[string]string
}

func (o *outputs) make(_ context.Context, key string, snap *referrers) error {
	text := ""
	for _, cm := range snap.ConfigMaps {
		text = valuesOf(cm, func(name string) (*corev1.Secret, bool) {
			s, err := snap.Secrets.Get(cm.Namespace, name)
			return s, err == nil
		})
		if cm.Name == "all" {
			in, err := snap.Secrets.List(cm.Namespace, labels.SelectorFromSet(labels.Set{"in": "yes"}))
			if err != nil {
				return err
			}
			text = fmt.Sprint(len(in))
		}
	}
	if rand.IntN(8) == 0 {
		return errors.New("by chance")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[key] = text; len(snap.ConfigMaps) == 0 {
		delete(o.all, key)
	}
	return nil
}

func valuesOf(cm *corev1.ConfigMap, get func(string) (*corev1.Secret, bool)) (text string) {
	for _, which := range []string{"a", "b"} {
		if s, found := get(cm.Data[which]); found {
			text += secrecy.Unmark(string(s.Data["v"])) + " "
		} else {
			text += "absent "
		}
	}
	return text
}

// Three writers change secrets and the config maps that name them; one of them writes through the
// client itself. Four workers make an output per config map from the secrets that it names, and
// fail by chance. At the end all outputs match the server's objects.
func TestG2G4G6WhatAKeyHasReadActivatesItAmongWriters(t *testing.T) {
	t.Parallel()
	for name, refs := range map[string][]kates.Ref{"all are watched": nil, "named ones are watched": toSecrets} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, ctx := namespace(t), t.Context()
			c, err := tapped(kates.NewClientFromRESTConfig(serverOf(t), kates.WithInterval(0), kates.WithLogger(slog.New(secrecy.Handler(slog.DiscardHandler)))))
			require.NoError(t, err)
			defer c.Close()
			admin, err := kubernetes.NewForConfig(serverOf(t))
			require.NoError(t, err)
			made := &outputs{all: map[string]string{}}
			running, cancel := context.WithCancel(ctx)
			done := make(chan error, 1)
			secrets := kates.Query{Name: "Secrets", Namespace: ns}
			if refs != nil {
				secrets.Namespace, secrets.Refs = "", refs
			}
			go func() {
				done <- kates.RunEach(running, c, made.make, kates.WithWorkers(4), kates.WithBackoff(time.Millisecond, 50*time.Millisecond), secrets,
					kates.Query{Name: "ConfigMaps", Namespace: ns, Key: kates.ByName, LabelSelector: "my=own"})
			}()
			var writers sync.WaitGroup
			for w := range 3 {
				writers.Go(func() {
					for range 80 {
						assert.NoError(t, churn(ctx, admin, c, ns, w, refs == nil))
					}
				})
			}
			writers.Wait()
			poll(t, func() bool {
				want := wantedOutputs(t, admin, ns)
				made.mu.Lock()
				defer made.mu.Unlock()
				return maps.Equal(want, made.all)
			}, "the outputs are those of the inputs")
			cancel()
			assert.NoError(t, <-done)
		})
	}
}

// churn changes one object.
func churn(ctx context.Context, admin *kubernetes.Clientset, c *kates.Client, ns string, w int, all bool) error {
	name := func() string { return fmt.Sprint("s", rand.IntN(6)) }
	if rand.IntN(4) == 0 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d-%d", w, rand.IntN(3)), Labels: map[string]string{"my": "own"}},
			Data: map[string]string{"a": name(), "b": name()}}
		if all && rand.IntN(3) == 0 {
			cm.Name = "all"
		}
		_, err := admin.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = admin.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{})
		} else if rand.IntN(6) == 0 {
			err = admin.CoreV1().ConfigMaps(ns).Delete(ctx, cm.Name, metav1.DeleteOptions{})
		}
		return unlessRaced(err)
	}
	s := secretNamed(name(), fmt.Sprintf("%d-%d", w, rand.IntN(1000)))
	s.Namespace, s.Labels = ns, map[string]string{"in": []string{"yes", "no"}[rand.IntN(2)]}
	if w == 0 { // own writes
		if rand.IntN(3) == 0 {
			return unlessRaced(c.Delete(ctx, s, nil))
		}
		return unlessRaced(c.Upsert(ctx, s, s, nil))
	}
	_, err := admin.CoreV1().Secrets(ns).Update(ctx, s, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = admin.CoreV1().Secrets(ns).Create(ctx, s, metav1.CreateOptions{})
	} else if rand.IntN(3) == 0 {
		err = admin.CoreV1().Secrets(ns).Delete(ctx, s.Name, metav1.DeleteOptions{})
	}
	return unlessRaced(err)
}

// unlessRaced drops errors that say that another writer was faster.
func unlessRaced(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// wantedOutputs computes the outputs from the server's objects.
func wantedOutputs(t *testing.T, admin *kubernetes.Clientset, ns string) map[string]string {
	t.Helper()
	secrets, err := admin.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	configMaps, err := admin.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "my=own"})
	require.NoError(t, err)
	selected := 0
	byName := map[string]*corev1.Secret{}
	for i, s := range secrets.Items {
		byName[s.Name] = &secrets.Items[i]
		if s.Labels["in"] == "yes" {
			selected++
		}
	}
	want := map[string]string{}
	for i, cm := range configMaps.Items {
		want[cm.Name] = valuesOf(&configMaps.Items[i], func(name string) (*corev1.Secret, bool) { return byName[name], byName[name] != nil })
		if cm.Name == "all" {
			want[cm.Name] = fmt.Sprint(selected)
		}
	}
	return want
}

// A user who may write a config map chooses the name in it, and the program has more rights than
// this user.
func TestG1G8ANameThatNoObjectHasIsAbsentAndNoPathOfSomethingElse(t *testing.T) {
	t.Parallel()
	ns, elsewhere, ctx := namespace(t), namespace(t), t.Context()
	c, err := tapped(kates.NewClientFromRESTConfig(serverOf(t), kates.WithInterval(0), kates.WithLogger(slog.New(secrecy.Handler(slog.DiscardHandler)))))
	require.NoError(t, err)
	defer c.Close()
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	for _, in := range []string{ns, elsewhere} {
		_, err := admin.CoreV1().Secrets(in).Create(ctx, secretNamed("of-"+ns, "1"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	named := func(cm *corev1.ConfigMap) []types.NamespacedName {
		return []types.NamespacedName{{Namespace: cm.Data["namespace"], Name: cm.Data["name"]}}
	}
	for i, data := range []map[string]string{
		{"name": "of-" + ns}, {"name": "of-" + ns, "namespace": ".."}, {"name": "of-" + ns, "namespace": elsewhere + "/configmaps/.."},
		{"name": ".", "namespace": elsewhere}, {"name": "a/b"}, {"name": "Not_A_Name"}, {"name": "of-" + ns, "namespace": "No_Namespace"},
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i)}, Data: data}
		_, err := admin.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	snapshots, err := kates.Watch[referrers](ctx, c, kates.Query{Name: "ConfigMaps", Namespace: ns, FieldSelector: "metadata.name!=kube-root-ca.crt"},
		kates.Query{Name: "Secrets", Refs: []kates.Ref{kates.RefsOf("ConfigMaps", named)}})
	require.NoError(t, err)
	var snap referrers
	require.Eventually(t, func() bool {
		_, err := snapshots.Update(ctx, &snap)
		return err == nil && len(snap.ConfigMaps) == 7
	}, patience, 20*time.Millisecond, "%v", snapshots.Ready())
	require.NoError(t, snapshots.Status().Err())
	all, err := snap.Secrets.List("", nil)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, ns, all[0].Namespace)
}
