package kates_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestTheLineOfAWriteSaysWhomItWasForAndNothingOfTheContent(t *testing.T) {
	out := &textOut{}
	server := katestest.NewServer(t)
	c := server.Client(t, out.option())
	pod := &kates.Pod{}
	pod.APIVersion, pod.Kind, pod.Namespace, pod.Name = "v1", "Pod", "default", "web"
	pod.Annotations = map[string]string{"note": "hidden-content"}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "hidden-content"}}
	pod.Labels = map[string]string{"note": "hidden-content!"}
	require.Error(t, c.Create(t.Context(), pod, nil), "the server refuses it, and quotes it")
	pod.Labels = nil
	require.NoError(t, c.Create(t.Context(), pod, &pod))
	first := pod.ResourceVersion
	pod.Status.Message = "hidden-content"
	require.NoError(t, c.UpdateStatus(t.Context(), pod, &pod))
	require.NoError(t, c.Delete(t.Context(), pod, nil, kates.DryRun()))
	pod.ResourceVersion = first
	require.Error(t, c.Update(t.Context(), pod, nil))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, c.Update(gone, pod, nil)) // nothing was sent
	now := versionOf(t, c, pod)
	server.Close()
	require.Error(t, c.Patch(t.Context(), pod, kates.MergePatchType, []byte(`{"metadata":{"labels":{"note":"hidden-content"}}}`), nil))

	var lines []string
	for line := range strings.Lines(out.all()) {
		if strings.Contains(line, "written") {
			lines = append(lines, strings.TrimSpace(strings.ReplaceAll(line, "level=DEBUG+2 ", "")))
		}
	}
	at := " resource=v1/pods namespace=default name=web"
	status := " resource=v1/pods subresource=status namespace=default name=web"
	assert.Equal(t, []string{
		`msg="not written" verb=create` + at + ` reason=Invalid`,
		`msg=written verb=create` + at + ` resourceVersion=` + first,
		`msg=written verb=update` + status + ` resourceVersion=` + now,
		`msg=written verb=delete` + at + ` dryRun=true`,
		`msg="not written" verb=update` + at + ` reason=Conflict`,
		`msg="not written" verb=patch` + at + ` reason=NoAnswer`,
	}, lines)
	assert.NotContains(t, out.all(), "hidden-content")
}

func versionOf(t *testing.T, c *kates.Client, o kates.Object) string {
	var now *kates.Unstructured
	require.NoError(t, c.Get(t.Context(), o, &now))
	return now.GetResourceVersion()
}

// client-go logs the bodies of requests, at V(8), to the logger of their context, which is that of
// the call.
func TestTheLoggerOfACallSaysNoBodyOfARequest(t *testing.T) {
	var out bytes.Buffer
	all := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.Level(-100)}))
	server := katestest.NewServer(t)
	c := server.Client(t, kates.WithLogger(all))
	ctx, cancel := context.WithCancel(t.Context())
	type observed struct{ Secrets []*kates.Secret }
	err := kates.Run(ctx, c, func(ctx context.Context, _ *observed) error {
		defer cancel()
		klog.FromContext(ctx).V(7).Info("at seven")
		klog.FromContext(ctx).WithName("n").WithValues("k", "v").V(8).Info("at eight")
		s := &kates.Secret{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "a"}}
		s.Data = map[string][]byte{"password": []byte("hidden-content")}
		return c.Create(ctx, s, &s)
	})
	require.NoError(t, err)
	assert.Contains(t, out.String(), "at seven")
	assert.NotContains(t, out.String(), "at eight")
	assert.NotContains(t, out.String(), "hidden-content")
	assert.NotContains(t, out.String(), base64.StdEncoding.EncodeToString([]byte("hidden-content")))
}
