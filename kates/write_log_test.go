package kates_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

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
