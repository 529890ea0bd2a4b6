package controller_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

func TestAFieldOfAControllerWhoseTagSaysLaterHasAQueryFromItsAddOn(t *testing.T) {
	type parts struct {
		Root        *corev1.ConfigMap    `kates:",root"`
		Deployments []*appsv1.Deployment `kates:",owned,later"`
		Secrets     []*corev1.Secret     `kates:",later"`
		Nodes       []*corev1.Node       `kates:"-"`
		Info        controller.Info
	}
	inWorld(t, func(w *world) {
		w.root("a", "ua", "1")
		w.owns("a", "ua", "own")
		w.owns("a", "earlier", "foreign")
		w.secret("sa", "ns/a")
		c := &calls{}
		r := run(w, func(ctx context.Context, p *parts) (controller.Result, error) {
			return c.reconcile(ctx, &app{Root: p.Root, Deployments: p.Deployments, Secrets: p.Secrets, Nodes: p.Nodes, Info: p.Info})
		})
		assert.Equal(w, []string{"ns/a ua=1"}, c.taken())

		require.NoError(w, r.Add(w.Context(), kates.Query{Name: "Deployments"}, bySecret))
		r.runs()
		assert.Equal(w, []string{"ns/a ua=1 +own *sa"}, c.taken(), "what another root of the name controls is left out")
		require.NoError(w, r.Remove(w.Context(), "Deployments", "Secrets"))
		r.runs()
		assert.Equal(w, []string{"ns/a ua=1"}, c.taken())
		require.NoError(w, r.Add(w.Context(), kates.Query{Name: "Deployments"}))
		r.runs()
		assert.Equal(w, []string{"ns/a ua=1 +own"}, c.taken())

		err := r.Add(w.Context(), kates.Query{Name: "Nodes"})
		assert.ErrorContains(w, err, "field Nodes has the tag `kates:\"-\"`, so it is never a query")
		assert.ErrorContains(w, err, "the tag is `kates:\",later\"`")
		r.stop()
	})
	ofNew, _ := made[parts](t, bySecret)
	assert.ErrorContains(t, ofNew, "field Secrets: its tag says that its query comes later: give that to Add")
	ofNew, _ = made[struct {
		Root *corev1.ConfigMap `kates:",root,later"`
	}](t)
	assert.ErrorContains(t, ofNew, "a root does not come later")
}
