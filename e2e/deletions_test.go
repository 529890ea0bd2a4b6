package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
				w, ns, ctx := newWire(t), namespace(t), t.Context()
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

// threeForms shows the config maps in each form, all by watches without a selector.
type threeForms struct {
	Typed   []*corev1.ConfigMap            `kates:"configmaps"`
	Brief   []*kates.PartialObjectMetadata `kates:"configmaps"` // of all namespaces
	Untyped []*kates.Unstructured          `kates:"configmaps"`
}

func (s *threeForms) has(uid types.UID) (has [3]bool) {
	has[0] = slices.ContainsFunc(s.Typed, func(o *corev1.ConfigMap) bool { return o.UID == uid })
	has[1] = slices.ContainsFunc(s.Brief, func(o *kates.PartialObjectMetadata) bool { return o.UID == uid })
	has[2] = slices.ContainsFunc(s.Untyped, func(o *kates.Unstructured) bool { return o.GetUID() == uid })
	return has
}

// The answers have no version, and the client does not ask the server for it. Before the event,
// the watch shows the deleted object; after it, the event has said when. The client would ask
// only if a watch had to list anew in between.
func TestG4ADeletionIsShownWithoutAListWhereAWatchHasNoSelector(t *testing.T) {
	t.Parallel()
	for _, eventsFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("events first ", eventsFirst), func(t *testing.T) {
			t.Parallel()
			w, ns, ctx := newWire(t), namespace(t), t.Context()
			c := w.client(t, kates.WithNamespace(ns))
			watch := func() *kates.Snapshots[threeForms] {
				s, err := kates.Watch[threeForms](ctx, c, kates.Query{Name: "Typed", Namespace: ns}, kates.Query{Name: "Untyped", Namespace: ns})
				require.NoError(t, err)
				<-s.Changed()
				return s
			}
			s, other := watch(), watch()
			reading := func(s *kates.Snapshots[threeForms], uid types.UID) [3]bool {
				var snap threeForms
				_, err := s.Update(ctx, &snap)
				assert.NoError(t, err)
				return snap.has(uid)
			}
			var deleting types.UID
			w.hookAfter(func(r *http.Request) error {
				if last := r.Method == http.MethodDelete && !strings.HasSuffix(r.URL.Path, "-kept") || r.Method == http.MethodPatch; last && eventsFirst {
					assert.Eventually(t, func() bool { return reading(other, deleting) == [3]bool{} }, patience, time.Millisecond)
				}
				return nil
			})
			for i := range 200 {
				cm := &corev1.ConfigMap{ObjectMeta: named(ns, fmt.Sprint("cm-", i%7))}
				if i%5 == 0 {
					cm.Name, cm.Finalizers = cm.Name+"-kept", []string{"example.com/kept"}
				}
				require.NoError(t, c.Create(ctx, cm, cm))
				require.Equal(t, [3]bool{true, true, true}, reading(s, cm.UID))
				deleting = cm.UID
				if i%2 == 0 {
					require.NoError(t, c.Delete(ctx, cm, nil))
				} else {
					require.NoError(t, c.Delete(ctx, cm, nil, kates.IfUID(cm.UID)))
				}
				if len(cm.Finalizers) > 0 {
					require.Equal(t, [3]bool{true, true, true}, reading(s, cm.UID), "it is kept")
					require.NoError(t, c.Patch(ctx, cm, kates.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil))
				}
				require.Equal(t, [3]bool{}, reading(s, cm.UID))
			}
			lists := w.seen("configmaps", func(r request) bool { return strings.Contains(r.query.Get("fieldSelector"), "metadata.name=") })
			t.Logf("%d lists for 200 deletions", lists)
			restarts := 0
			for _, q := range s.Status().Queries {
				restarts += q.Restarts
			}
			assert.LessOrEqual(t, lists, restarts)
			require.NoError(t, c.Sync(ctx))
			for _, q := range s.Status().Queries {
				assert.Zero(t, q.Pending, "G6: %s", q.Name)
			}
		})
	}
}

func TestG4DeleteAllListsNothingButWhatThereIsWhereAWatchHasNoSelector(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	w.set("configmaps", 0)
	makeConfigMaps(t, ns, 200)
	require.NoError(t, c.Sync(ctx))
	require.NoError(t, c.DeleteAll(ctx, kates.Query{Kind: "cm", Namespace: ns}))
	r.look("")
	require.Len(t, r.snap.Objects, 20, "those with finalizers")
	lists := w.seen("configmaps", func(r request) bool { return strings.Contains(r.query.Get("fieldSelector"), "metadata.name=") })
	assert.LessOrEqual(t, lists, r.acc.Status().Queries[0].Restarts)
	r.settled(w, "configmaps")
}
