package fleet

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestAFieldThatComesLaterIsAnErrorOfAFleet: a watch of many clusters has no Add, so nothing would
// ever fill the field.
func TestAFieldThatComesLaterIsAnErrorOfAFleet(t *testing.T) {
	type common struct {
		Pods []*kates.Pod `kates:",later"`
	}
	type each struct {
		Maps []*kates.ConfigMap
		common
	}
	type all struct {
		Maps map[string][]*kates.ConfigMap
		Pods map[string][]*kates.Pod `kates:"pods,optional,later"`
	}
	type parts struct {
		Root *kates.ConfigMap `kates:",root"`
		Pods []*kates.Pod     `kates:",owned,later"`
	}
	f := newFleet(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, watched := Watch[all](ctx, f)
	_, made := NewController(f, "x", func(context.Context, *Cluster, *parts) (controller.Result, error) { return controller.Done, nil })
	_, home := NewHomeController(f, katestest.NewClient(t), "x", func(context.Context, *Parts[rootParts, common]) (controller.Result, error) {
		return controller.Done, nil
	})
	for what, err := range map[string]error{
		"Watch":             watched,
		"Run":               Run(ctx, f, func(context.Context, *all) error { return nil }),
		"RunEach":           RunEach(ctx, f, func(context.Context, Key, *each) error { return nil }, byName),
		"NewController":     made,
		"NewHomeController": home,
	} {
		if err == nil || !strings.Contains(err.Error(), "field Pods: its tag says that its query comes later") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
