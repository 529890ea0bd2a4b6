package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/kates"
)

// fieldCase is an object that enters and leaves a query by a field that the server can select by.
type fieldCase struct {
	kind, resource, selector string
	object                   func(ns string) any
	in, out                  string // merge patches; "" if only creation and deletion move it
	status                   bool   // the patches change the status
	clusterScoped            bool   // other tests have such objects too, so a label tells them apart
}

func named(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name}
}

func pod(ns string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named(ns, "x"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

var fieldCases = map[string]fieldCase{
	"a Pod's phase": {
		kind: "pods", resource: "pods", selector: "status.phase=Running",
		object: func(ns string) any { return pod(ns) }, status: true,
		in: `{"status":{"phase":"Running"}}`, out: `{"status":{"phase":"Pending"}}`,
	},
	"a Pod without a node": {
		kind: "pods", resource: "pods", selector: "spec.nodeName=,metadata.name=x",
		object: func(ns string) any { return pod(ns) },
	},
	"a Service's type": {
		kind: "services", resource: "services", selector: "spec.type=NodePort",
		object: func(ns string) any {
			return &corev1.Service{ObjectMeta: named(ns, "x"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		},
		in: `{"spec":{"type":"NodePort"}}`, out: `{"spec":{"type":"ClusterIP"}}`,
	},
	"a Secret's type": {
		kind: "secrets", resource: "secrets", selector: "type=example.com/t",
		object: func(ns string) any { return &corev1.Secret{ObjectMeta: named(ns, "x"), Type: "example.com/t"} },
	},
	"an Event's reason": {
		kind: "events", resource: "events", selector: "reason=In,involvedObject.kind=Pod",
		object: func(ns string) any {
			return &corev1.Event{ObjectMeta: named(ns, "x"), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "p"}, Reason: "Out"}
		},
		in: `{"reason":"In"}`, out: `{"reason":"Out"}`,
	},
	"a Node that takes no pods": {
		kind: "nodes", resource: "nodes", selector: "spec.unschedulable=true", clusterScoped: true,
		object: func(ns string) any {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x-" + ns, Labels: map[string]string{"of": ns}}}
		},
		in: `{"spec":{"unschedulable":true}}`, out: `{"spec":{"unschedulable":null}}`,
	},
	"a name": {
		kind: "configmaps", resource: "configmaps", selector: "metadata.name=x",
		object: func(ns string) any { return &corev1.ConfigMap{ObjectMeta: named(ns, "x")} },
	},
	"any name but one": {
		kind: "serviceaccounts", resource: "serviceaccounts", selector: "metadata.name!=default",
		object: func(ns string) any { return &corev1.ServiceAccount{ObjectMeta: named(ns, "x")} },
	},
}

// prepare makes what the server requires first. It returns the object's name and its query.
func (f fieldCase) prepare(t *testing.T, c *kates.Client, ns string) (string, kates.Query) {
	t.Helper()
	if f.resource == "pods" { // pods need a service account
		require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named(ns, "default")}, nil))
	}
	if f.clusterScoped {
		return "x-" + ns, kates.Query{Kind: f.kind, FieldSelector: f.selector, LabelSelector: "of=" + ns}
	}
	return "x", kates.Query{Kind: f.kind, Namespace: ns, FieldSelector: f.selector}
}

// move patches the object, or updates its status, as a controller would.
func (f fieldCase) move(ctx context.Context, c *kates.Client, o any, in bool) error {
	patch := map[bool]string{true: f.in, false: f.out}[in]
	if !f.status {
		return c.Patch(ctx, o, kates.MergePatchType, []byte(patch), nil)
	}
	var p *corev1.Pod
	if err := c.Get(ctx, o, &p); err != nil {
		return err
	}
	p.Status.Phase = map[bool]corev1.PodPhase{true: corev1.PodRunning, false: corev1.PodPending}[in]
	return c.UpdateStatus(ctx, p, nil)
}

func TestG4OwnWritesMoveObjectsInAndOutOfEveryFieldSelectorThoughTheWatchIsLate(t *testing.T) {
	t.Parallel()
	for name, f := range fieldCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ns, ctx := newWire(t), namespace(t), t.Context()
			c := w.client(t)
			name, query := f.prepare(t, c, ns)
			r := lateReader(t, w, c, query, f.resource)
			for range 2 { // two objects under one name
				o, asked := f.object(ns), listsSeen(w, f.resource)
				require.NoError(t, c.Create(ctx, o, nil))
				require.Equal(t, f.in == "", r.look(name) != nil, "created")
				for _, in := range []bool{true, false, true} {
					if f.in == "" {
						break
					}
					require.NoError(t, f.move(ctx, c, o, in))
					require.Equal(t, in, r.look(name) != nil, "moved in: %t", in)
				}
				require.Equal(t, asked, listsSeen(w, f.resource), "no list was needed")
				require.NoError(t, c.Delete(ctx, o, nil))
				require.Nil(t, r.look(name))
			}
			r.settled(w, f.resource)
		})
	}
}

func TestForeignWritesMoveObjectsInAndOutOfEveryFieldSelector(t *testing.T) {
	t.Parallel()
	for name, f := range fieldCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ns, ctx := newWire(t), namespace(t), t.Context()
			c, other := w.client(t), newWire(t).client(t)
			name, query := f.prepare(t, other, ns)
			r := promptReader(t, w, c, query, f.resource)
			is := func(in bool) {
				t.Helper()
				r.swift(fmt.Sprintf("the object, in the query: %t", in), func() bool { return (r.look(name) != nil) == in })
			}
			o := f.object(ns)
			require.NoError(t, other.Create(ctx, o, nil))
			is(f.in == "")
			for _, in := range []bool{true, false, true} {
				if f.in != "" {
					require.NoError(t, f.move(ctx, other, o, in))
					is(in)
				}
			}
			require.NoError(t, other.Delete(ctx, o, nil))
			is(false)
			r.settled(w, f.resource)
		})
	}
}

func TestAPodThatIsBoundLeavesTheQueryOfUnboundOnesAndJoinsItsNodes(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	f := fieldCases["a Pod without a node"]
	_, query := f.prepare(t, c, ns)
	unbound := promptReader(t, w, c, query, "pods")
	query.FieldSelector = "spec.nodeName=n"
	bound := promptReader(t, w, c, query, "pods")
	require.NoError(t, c.Create(ctx, f.object(ns), nil))
	require.NotNil(t, unbound.look("x"))
	require.Nil(t, bound.look("x"))
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	require.NoError(t, admin.CoreV1().Pods(ns).Bind(ctx, &corev1.Binding{ObjectMeta: named(ns, "x"), Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}, metav1.CreateOptions{}))
	bound.swift("the pod", func() bool { return bound.look("x") != nil })
	unbound.swift("no pod", func() bool { return unbound.look("x") == nil })
	w.set("pods", late)
	require.NoError(t, c.Delete(ctx, f.object(ns), nil))
	require.NotNil(t, bound.look("x"), "a node has to end it first")
	assert.NotNil(t, bound.look("x").GetDeletionTimestamp())
	require.NoError(t, c.Delete(ctx, f.object(ns), nil, kates.GracePeriod(0)))
	require.Nil(t, bound.look("x"))
	bound.settled(w, "pods")
	unbound.settled(w, "pods")
}
