package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
)

// team is one team's objects: config maps, and the secret that is made from their names.
type team struct {
	ConfigMaps []*corev1.ConfigMap
	Secrets    []*corev1.Secret
}

// teams makes a secret for each team, and checks that it sees its own writes.
type teams struct {
	t      *testing.T
	client *kates.Client
	ns     string

	mu      sync.Mutex
	held    map[string]bool
	written map[string]string
}

func (m *teams) make(ctx context.Context, name string, snap *team) error {
	m.mu.Lock()
	has, wrote := "", m.written[name]
	if len(snap.Secrets) > 0 {
		has = secrecy.Unmark(string(snap.Secrets[0].Data["names"]))
	}
	assert.Equal(m.t, wrote, has, "G4: the secret of %s", name)
	assert.False(m.t, m.held[name], "%s is held by two", name)
	m.held[name] = true
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.held[name], m.written[name] = false, wrote
	}()
	if rand.IntN(5) == 0 {
		return errors.New("by chance")
	}
	var names []string
	for _, cm := range snap.ConfigMaps {
		names = append(names, cm.Name)
	}
	want := strings.Join(names, " ")
	if err := m.write(ctx, name, snap, want); err != nil {
		return err
	}
	wrote = want
	return nil
}

func (m *teams) write(ctx context.Context, name string, snap *team, want string) error {
	switch {
	case len(snap.Secrets) == 0 && want == "":
		return nil
	case want == "":
		return m.client.Delete(ctx, snap.Secrets[0], nil)
	case len(snap.Secrets) == 0:
		return m.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "of-" + name, Labels: map[string]string{"team": name}},
			Data:       map[string][]byte{"names": []byte(secrecy.Mark(want))},
		}, nil)
	case secrecy.Unmark(string(snap.Secrets[0].Data["names"])) == want:
		return nil
	}
	secret := snap.Secrets[0].DeepCopy()
	secret.Data["names"] = []byte(secrecy.Mark(want))
	return m.client.Update(ctx, secret, nil)
}

// Three writers create, move and delete objects. Four workers make one secret per key, fail by
// chance, and see each of their own writes at the key's next call.
func TestG4G6RunEachConvergesAmongWritersWhoMoveItsObjects(t *testing.T) {
	t.Parallel()
	ns, ctx := namespace(t), t.Context()
	c, err := tapped(kates.NewClientFromRESTConfig(serverOf(t), kates.WithInterval(0), kates.WithLogger(slog.New(secrecy.Handler(slog.DiscardHandler)))))
	require.NoError(t, err)
	defer c.Close()
	others, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	m := &teams{t: t, client: c, ns: ns, held: map[string]bool{}, written: map[string]string{}}
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	key := kates.ByLabel("team")
	go func() {
		done <- kates.RunEach(running, c, m.make, kates.WithWorkers(4), kates.WithBackoff(time.Millisecond, 50*time.Millisecond),
			kates.Query{Name: "ConfigMaps", Namespace: ns, Key: key, LabelSelector: "team"},
			kates.Query{Name: "Secrets", Namespace: ns, Key: key})
	}()
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			in := others.CoreV1().ConfigMaps(ns)
			for i := range 60 {
				name := fmt.Sprintf("w%d-%d", w, i%5)
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": fmt.Sprint("t", rand.IntN(6))}}}
				_, err := in.Update(ctx, cm, metav1.UpdateOptions{})
				switch {
				case apierrors.IsNotFound(err):
					_, err = in.Create(ctx, cm, metav1.CreateOptions{})
				case rand.IntN(3) == 0:
					err = in.Delete(ctx, name, metav1.DeleteOptions{})
				}
				assert.NoError(t, err)
			}
		})
	}
	writers.Wait()
	poll(t, func() bool {
		want, got := map[string]string{}, map[string]string{}
		all, err := others.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{LabelSelector: "team"})
		require.NoError(t, err)
		for _, cm := range all.Items { // in order
			want[cm.Labels["team"]] = strings.TrimSpace(want[cm.Labels["team"]] + " " + cm.Name)
		}
		secrets, err := others.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{LabelSelector: "team"})
		require.NoError(t, err)
		for _, s := range secrets.Items {
			got[s.Labels["team"]] = secrecy.Unmark(string(s.Data["names"]))
		}
		return maps.Equal(want, got)
	}, "the outputs are those of the inputs")
	cancel()
	assert.NoError(t, <-done)
}
