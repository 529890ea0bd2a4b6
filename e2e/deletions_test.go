package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

func TestG4ADeletionInTheBackgroundEndsOneInTheForegroundOrForOrphans(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]metav1.DeletionPropagation{"foreground": metav1.DeletePropagationForeground, "orphans": metav1.DeletePropagationOrphan} {
		for resource, o := range map[string]kates.Object{
			"pods":       pod(""),
			"services":   &corev1.Service{ObjectMeta: named("", "x"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			"configmaps": &corev1.ConfigMap{ObjectMeta: named("", "x")},
		} {
			t.Run(resource+", "+name, func(t *testing.T) {
				t.Parallel()
				w, ns, ctx := newWire(), namespace(t), t.Context()
				c := w.client(t, kates.WithNamespace(ns))
				require.NoError(t, c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: named(ns, "default")}, nil))
				r := lateReader(t, w, c, kates.Query{Kind: resource, Namespace: ns}, resource)
				require.NoError(t, c.Create(ctx, o, nil))
				require.NoError(t, c.Delete(ctx, o, nil, kates.Propagation(policy)))
				require.NotNil(t, r.look("x").GetDeletionTimestamp(), "it waits for the garbage collector")
				require.NoError(t, c.Delete(ctx, o, nil, kates.Propagation(metav1.DeletePropagationBackground)))
				require.True(t, kates.IsNotFound(c.Get(ctx, o, nil)))
				require.Nil(t, r.look("x"))
				r.settled(w, resource)
			})
		}
	}
}
