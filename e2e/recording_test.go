package e2e

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/internal/rollouts"
	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestARecordingOfARealServerPlaysWhatWasSeen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drain.recording")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, rollouts.Drain(ctx, testCluster.Config, file))
	synctest.Test(t, func(t *testing.T) {
		p := katestest.Replay(t, file)
		client, err := kates.NewClientFromRESTConfig(p.Config())
		require.NoError(t, err)
		defer client.Close()
		s, err := kates.Watch[rollouts.Workload](t.Context(), client, rollouts.Queries("drain")...)
		require.NoError(t, err)
		for w, err := range s.All(t.Context()) {
			require.NoError(t, err)
			if rollouts.Drained(w, 12) {
				return
			}
		}
	})
}

func TestARecordingOfARealServerHasNoSecrets(t *testing.T) {
	ns := namespace(t)
	api, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	put := func(name, value string) {
		s := &corev1.Secret{ObjectMeta: named(ns, name), StringData: map[string]string{"password": secrecy.Mark(value)}}
		s.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"stringData":{"password":"` + secrecy.Mark(value) + `"}}`}
		_, err := api.CoreV1().Secrets(ns).Create(t.Context(), s, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	put("first", "listed")
	type typed struct{ Secrets []*corev1.Secret }
	type untyped struct {
		Secrets []map[string]any `kates:"secrets"`
	}
	type short struct {
		Secrets []*metav1.PartialObjectMetadata `kates:"secrets"`
	}
	file := filepath.Join(t.TempDir(), "secrets.recording")
	config := rest.CopyConfig(testCluster.Config)
	recorder, err := katestest.Record(config, file)
	require.NoError(t, err)
	client, err := kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	only := kates.Query{Name: "Secrets", Namespace: ns}
	one, err := kates.Watch[typed](t.Context(), client, only)
	require.NoError(t, err)
	two, err := kates.Watch[untyped](t.Context(), client, only)
	require.NoError(t, err)
	three, err := kates.Watch[short](t.Context(), client, only)
	require.NoError(t, err)
	until := func(n int) {
		untilSeen(t, one, func(s *typed) bool { return len(s.Secrets) == n })
		untilSeen(t, two, func(s *untyped) bool { return len(s.Secrets) == n })
		untilSeen(t, three, func(s *short) bool { return len(s.Secrets) == n })
	}
	until(1)
	put("second", "watched")
	until(2)
	client.Close()
	require.NoError(t, recorder.Close())

	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	unpacked, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	secrecy.Say("a recording", string(text)) // the run fails if a secret is in it
	for _, marked := range []string{secrecy.Mark("listed"), secrecy.Mark("watched")} {
		assert.NotContains(t, string(text), marked)
	}
	assert.Contains(t, string(text), "redacted-")
	assert.NotContains(t, string(text), `"type":"withheld"`)
}

// untilSeen waits for a snapshot.
func untilSeen[S any](t *testing.T, s *kates.Snapshots[S], as func(*S) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for got, err := range s.All(ctx) {
		require.NoError(t, err)
		if as(got) {
			return
		}
	}
	require.Fail(t, "no such snapshot")
}
