package controller_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

// settings is a plain struct that has a part of a config map.
type settings struct {
	Metadata struct{ Name string }
	Data     map[string]string
}

type plainRoot struct {
	Settings    *settings            `kates:"configmaps,root"`
	Deployments []*appsv1.Deployment `kates:",owned"`
	Info        controller.Info
}

func TestARootMayBeAPlainStruct(t *testing.T) {
	inWorld(t, func(w *world) {
		var all []plainRoot
		r := run(w, func(ctx context.Context, p *plainRoot) (controller.Result, error) {
			all = append(all, *p)
			if p.Info.Departure != "" {
				return controller.Done, nil
			}
			d := &appsv1.Deployment{}
			d.Name, d.Namespace = p.Settings.Metadata.Name, p.Info.Root.GetNamespace()
			_, err := w.Client.ApplyOwned(ctx, kates.OwnedSet{
				Owner: p.Info.Root, SetName: "app", Objects: []kates.Object{d}, Existing: controller.Owned(p),
			})
			return controller.Done, err
		})
		w.root("a", "ua", "1")
		r.runs()
		require.Len(t, all, 2, "one for the root, and one for what it owns")
		assert.Equal(t, "1", all[0].Settings.Data["a"])
		assert.Equal(t, "a", all[0].Settings.Metadata.Name)
		assert.Equal(t, "ua", string(all[0].Info.Root.GetUID()))
		assert.Same(t, all[0].Settings, all[1].Settings, "the root has not changed")
		require.Len(t, all[1].Deployments, 1)
		assert.True(t, kates.HasOwnerReference(all[1].Info.Root, all[1].Deployments[0]))

		all = nil
		w.root("a", "ua", "2")
		r.runs()
		require.Len(t, all, 1)
		assert.Equal(t, "2", all[0].Settings.Data["a"])

		all = nil
		w.remove(configs, "ns", "a")
		r.runs()
		require.NotEmpty(t, all)
		assert.Equal(t, controller.Deleted, all[0].Info.Departure)
		assert.Equal(t, "2", all[0].Settings.Data["a"], "as it was known last")
		assert.Equal(t, "ua", string(all[0].Info.Root.GetUID()))
	})
}

func TestAPlainRootThatDoesNotDecodeFailsItsKeyAlone(t *testing.T) {
	type numbers struct {
		Root *struct{ Data map[string]int } `kates:"configmaps,root"`
	}
	inWorld(t, func(w *world) {
		var called int
		r := run(w, func(context.Context, *numbers) (controller.Result, error) { called++; return controller.Done, nil })
		w.root("a", "ua", "1") // a text
		r.runs()
		assert.Zero(t, called)
		require.Len(t, r.Status().Failing, 1)
		assert.ErrorContains(t, r.Status().Failing[0].Err, "the root cannot be read")
	})
}

func TestAPlainRootNeedsItsKindInTheTag(t *testing.T) {
	type untagged struct {
		Root *settings `kates:",root"`
	}
	inWorld(t, func(w *world) {
		_, err := controller.New(w.Client, "test", func(context.Context, *untagged) (controller.Result, error) { return controller.Done, nil })
		assert.ErrorContains(t, err, "neither its type nor its tag nor its query says a kind")
	})
}
