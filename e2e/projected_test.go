package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

// gadgetLite and serviceLite have some fields of a custom kind, and of a built-in one.
type gadgetLite struct {
	Metadata struct {
		Name    string `json:"name"`
		Version string `json:"resourceVersion"`
	} `json:"metadata"`
	Size int `json:"size"`
	Spec struct {
		Color string `json:"color"`
	} `json:"spec"`
}

type serviceLite struct {
	Metadata struct {
		Name    string            `json:"name"`
		Version string            `json:"resourceVersion"`
		Labels  map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Ports []struct {
			Port       int `json:"port"`
			TargetPort any `json:"targetPort"`
		} `json:"ports"`
		Type string `json:"type"`
	} `json:"spec"`
}

type lites struct {
	Gadgets  []*gadgetLite
	Services []serviceLite `kates:"services"`
	Whole    []*kates.Service
	Deltas   []*kates.Delta
	Invalid  []kates.Invalid
}

func (l *lites) sizes() (all map[string]int) {
	all = map[string]int{}
	for _, g := range l.Gadgets {
		all[g.Metadata.Name] = g.Size
	}
	return all
}

func TestG4G8SomeFieldsOfACustomAndOfABuiltInKindAreThoseOfTheServersObjects(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string]kates.Option{"paged": kates.Tuning{Lists: kates.PagedLists, PageSize: 1}, "streamed": kates.Tuning{Lists: kates.StreamedLists}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, ctx := namespace(t), t.Context()
			g := newGadget(t, ns)
			g.install("v1")
			other, c := newWire(t).client(t), newWire(t).client(t, lists)
			for name, size := range map[string]any{"a": int64(1), "bad": "big", "z": int64(2)} {
				require.NoError(t, other.Create(ctx, g.sized(ns, name, size), nil))
			}
			s, err := kates.Watch[lites](ctx, c, kates.Query{Name: "Gadgets", Kind: g.kind, Namespace: ns},
				kates.Query{Name: "Services", Namespace: ns, LabelSelector: "app=web"}, kates.Query{Name: "Whole", Namespace: ns})
			require.NoError(t, err)
			var snap lites
			awaitSnap(t, s, &snap, func(*lites) bool { return s.Ready() == nil })
			assert.Equal(t, map[string]int{"a": 1, "z": 2}, snap.sizes())
			assert.Equal(t, "red", snap.Gadgets[0].Spec.Color)
			assert.Equal(t, "fields from json", s.Status().Queries[0].Form)
			require.Len(t, snap.Invalid, 1)
			assert.Equal(t, "bad", snap.Invalid[0].Object.GetName())

			patch := func(c *kates.Client, name, size string) {
				require.NoError(t, c.Patch(ctx, g.sized(ns, name, nil), kates.MergePatchType, []byte(`{"size":`+size+`}`), nil))
			}
			patch(other, "bad", "3")
			awaitSnap(t, s, &snap, func(v *lites) bool { return len(v.Invalid) == 0 })
			assert.Equal(t, map[string]int{"a": 1, "bad": 3, "z": 2}, snap.sizes())
			patch(c, "a", `"own"`) // and the very next snapshot has it
			_, err = s.Update(ctx, &snap)
			require.NoError(t, err)
			assert.Equal(t, map[string]int{"bad": 3, "z": 2}, snap.sizes())
			require.Len(t, snap.Invalid, 1)

			service := &kates.Service{TypeMeta: kates.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: kates.ObjectMeta{Namespace: ns, Name: "web", Labels: map[string]string{"app": "web"}}}
			service.Spec.Ports = []kates.ServicePort{{Port: 80}}
			require.NoError(t, c.Create(ctx, service, nil))
			_, err = s.Update(ctx, &snap)
			require.NoError(t, err)
			require.Len(t, snap.Services, 1)
			assert.Equal(t, "ClusterIP", snap.Services[0].Spec.Type, "what the server has made of it")
			require.NoError(t, other.Patch(ctx, service, kates.MergePatchType, []byte(`{"spec":{"ports":[{"port":81}]}}`), nil))
			awaitSnap(t, s, &snap, func(v *lites) bool { return len(v.Services) == 1 && v.Services[0].Spec.Ports[0].Port == 81 })
			awaitSnap(t, s, &snap, func(v *lites) bool { return v.Whole[0].ResourceVersion == v.Services[0].Metadata.Version })
			assert.Equal(t, "fields from protobuf", s.Status().Queries[1].Form)
			assert.InDelta(t, 81, snap.Services[0].Spec.Ports[0].TargetPort, 0)
			assert.Equal(t, map[string]string{"app": "web"}, snap.Services[0].Metadata.Labels)
			require.NoError(t, c.Patch(ctx, service, kates.MergePatchType, []byte(`{"metadata":{"labels":{"app":"db"}}}`), nil))
			_, err = s.Update(ctx, &snap)
			require.NoError(t, err)
			assert.Empty(t, snap.Services, "an own write takes it out of the query")
		})
	}
}
