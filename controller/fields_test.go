package controller_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

// several has two fields of one kind, twice.
type several struct {
	Root     *corev1.ConfigMap    `kates:",root"`
	Owned    []*appsv1.Deployment `kates:",owned"`
	Named    []*appsv1.Deployment
	Children []*corev1.ConfigMap
	Info     controller.Info
}

func (s *several) text() string {
	text := s.Info.Key
	for _, d := range s.Owned {
		text += " +" + d.Name
	}
	for _, d := range s.Named {
		text += " *" + d.Name
	}
	for _, child := range s.Children {
		text += " >" + child.Name
	}
	return text + strings.TrimRight(" "+string(s.Info.Departure), " ")
}

// runSeveral runs a controller of it. The function that it returns gives the reconciles since the
// last time.
func runSeveral(w *world) (r *running[several], calls func() []string) {
	done := make(chan string, 100)
	r = run(w, func(_ context.Context, s *several) (controller.Result, error) {
		done <- s.text()
		return controller.Done, nil
	}, kates.Query{Name: "Named", Key: kates.ByLabel("app")}, kates.Query{Name: "Children", Key: kates.ByOwner("ConfigMap")})
	return r, func() (all []string) {
		r.runs()
		for len(done) > 0 {
			all = append(all, <-done)
		}
		return all
	}
}

func TestAnObjectMayBeOwnedByOneRootAndNameAnotherInFieldsOfOneKind(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "ua", "1")
		w.root("b", "ub", "1")
		r, calls := runSeveral(w)
		assert.ElementsMatch(t, []string{"ns/a", "ns/b"}, calls())
		d := ownedObject("a", "ua", "d")
		d.Labels = map[string]string{"app": "ns/b"}
		w.put(deploys, d)
		assert.ElementsMatch(t, []string{"ns/a +d", "ns/b *d"}, calls())
		d.Labels["app"] = "ns/a"
		w.put(deploys, d)
		assert.ElementsMatch(t, []string{"ns/a +d *d", "ns/b"}, calls())
		w.owns("b", "ub", "d") // and its label names nobody any more
		assert.ElementsMatch(t, []string{"ns/a", "ns/b +d"}, calls())
		d = ownedObject("b", "ub", "d")
		d.OwnerReferences = nil
		w.put(deploys, d)
		assert.Equal(t, []string{"ns/b"}, calls(), "it is nobody's")
		r.stop()
	})
}

func TestTheChildrenOfARootInATreeOfOneKindAreInASecondFieldOfIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "ua", "1")
		r, calls := runSeveral(w)
		assert.Equal(t, []string{"ns/a"}, calls())
		parent, child := rootObject("a", "ua", ""), rootObject("b", "ub", "1")
		parent.APIVersion, parent.Kind = "v1", "ConfigMap"
		require.NoError(t, kates.SetControllerReference(parent, child))
		w.put(configs, child)
		assert.ElementsMatch(t, []string{"ns/a >b", "ns/b"}, calls())
		child.Data["a"] = "2"
		w.put(configs, child)
		assert.ElementsMatch(t, []string{"ns/a >b", "ns/b"}, calls(), "it is a root, and a part of one")
		w.remove(configs, "ns", "a")
		assert.Equal(t, []string{"ns/a >b deleted"}, calls())
		w.put(configs, child)
		w.remove(configs, "ns", "b")
		assert.Equal(t, []string{"ns/b deleted"}, calls(), "its parent is gone")
		r.stop()
	})
}
