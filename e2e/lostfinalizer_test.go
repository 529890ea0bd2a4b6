package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admission "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

// deletionGate is a webhook that allows all deletions of config maps in a namespace. It can hold
// one up: at that point the server has found that the object has no finalizer.
type deletionGate struct {
	*httptest.Server
	t        *testing.T
	asked    atomic.Bool
	hold     atomic.Pointer[string] // the name of the object whose deletion is held up, once
	held, on chan struct{}
}

func newDeletionGate(t *testing.T, ns string) *deletionGate {
	t.Helper()
	g := &deletionGate{t: t, held: make(chan struct{}), on: make(chan struct{})}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(g.review))
	t.Cleanup(g.Close)
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	url, none, seconds := g.URL, admissionv1.SideEffectClassNone, int32(30)
	hooks := admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = hooks.Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gate-" + ns},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "gate.example.com", SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{
				URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Delete},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, hooks.Delete(context.Background(), "gate-"+ns, metav1.DeleteOptions{})) })

	maps := admin.CoreV1().ConfigMaps(ns)
	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named(ns, "probe")}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		err := maps.Delete(t.Context(), "probe", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && g.asked.Load()
	}, patience, 50*time.Millisecond, "the webhook is in force")
	return g
}

// review answers an AdmissionReview. See
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
func (g *deletionGate) review(w http.ResponseWriter, r *http.Request) {
	g.asked.Store(true)
	var review admission.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if name := g.hold.Load(); name != nil && *name == review.Request.Name && g.hold.CompareAndSwap(name, nil) {
		g.held <- struct{}{}
		<-g.on
	}
	review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// during runs do while the server deletes an object, after it has found no finalizer.
func (g *deletionGate) during(client *kates.Client, cm *corev1.ConfigMap, do func(), opts ...kates.WriteOption) error {
	g.t.Helper()
	g.hold.Store(&cm.Name)
	deleted := make(chan error, 1)
	go func() { deleted <- client.Delete(g.t.Context(), cm, nil, opts...) }() // ends with the request
	receive(g.t, g.held)
	do()
	g.on <- struct{}{}
	return receive(g.t, deleted)
}

type mapParts struct {
	Root *corev1.ConfigMap `kates:",root"`
	Info controller.Info
}

// The server takes an object away, finalizer and all, if the finalizer came after it had begun
// the deletion. The departure is reconciled all the same. A deletion on the condition of a
// version is a conflict then, and the object stays.
func TestAFinalizerThatComesDuringADeletionIsLostAndTheDepartureIsReconciled(t *testing.T) {
	t.Parallel()
	ns, w := namespace(t), newWire(t)
	client, users := w.client(t), newWire(t).client(t)
	gate := newDeletionGate(t, ns)
	const f = "example.com/f"
	made, departed := make(chan string, 10), make(chan *corev1.ConfigMap, 10)
	reconcile := func(ctx context.Context, p *mapParts) (controller.Result, error) {
		if p.Info.Departure != "" {
			departed <- p.Root
			return controller.Done, nil
		}
		return controller.Done, kates.UnderFinalizer(ctx, client, p.Root, f,
			func(_ context.Context, cm *corev1.ConfigMap) error { made <- cm.Name; return nil },
			func(context.Context, *corev1.ConfigMap) error { t.Error("it is not being deleted"); return nil })
	}
	c, err := controller.New(client, "maps", reconcile, kates.Query{Name: "Root", Namespace: ns, LabelSelector: "reconcile=yes"})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }() // ends with ctx
	defer func() { stop(); receive(t, ended) }()

	begin := func(cm *corev1.ConfigMap) func() { // reconciles it, and returns when its finalizer is there
		return func() {
			_, err := kates.Modify(t.Context(), users, cm, func(now *corev1.ConfigMap) error {
				now.Labels = map[string]string{"reconcile": "yes"}
				return nil
			})
			assert.NoError(t, err)
			for receive(t, made) != cm.Name { // others are reconciled again
			}
		}
	}
	lost := &corev1.ConfigMap{ObjectMeta: named(ns, "lost")}
	require.NoError(t, users.Create(t.Context(), lost, &lost))
	require.NoError(t, gate.during(users, lost, begin(lost)))
	gone := receive(t, departed)
	assert.Equal(t, lost.UID, gone.UID)
	assert.Equal(t, []string{f}, gone.Finalizers, "there was no cleanup")
	require.True(t, kates.IsNotFound(users.Get(t.Context(), lost, nil)))

	kept := &corev1.ConfigMap{ObjectMeta: named(ns, "kept")}
	require.NoError(t, users.Create(t.Context(), kept, &kept))
	err = gate.during(users, kept, begin(kept), kates.IfResourceVersion(kept.ResourceVersion))
	require.True(t, kates.IsConflict(err), "%v", err)
	require.NoError(t, users.Get(t.Context(), kept, &kept))
	assert.Equal(t, []string{f}, kept.Finalizers)
	assert.Nil(t, kept.DeletionTimestamp)
}
