package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/examples/configmapgen/generator"
	"github.com/kates-go/kates/kates"
)

// generated is the example's operator in a namespace, with a user.
type generated struct {
	*testing.T
	ns       string
	user     *kates.Client
	admin    *kubernetes.Clientset
	registry *generator.FileRegistry
}

func newGenerated(t *testing.T) *generated {
	t.Helper()
	scheme, err := generator.Scheme()
	require.NoError(t, err)
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	g := &generated{T: t, ns: namespace(t), admin: admin, registry: &generator.FileRegistry{Path: filepath.Join(t.TempDir(), "registry.json")}}
	client := newWire(t).client(t, kates.WithScheme(scheme))
	g.user = newWire(t).client(t, kates.WithScheme(scheme))
	operator := &generator.Generator{Client: client, Registry: g.registry, Log: slog.New(secrecy.Handler(slog.DiscardHandler))}
	options := append(generator.Queries(g.ns), kates.WithBackoff(10*time.Millisecond, 100*time.Millisecond), kates.WithQuietOwnWrites())
	c, err := controller.New(client, "configmapgen", operator.Reconcile, options...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, receive(t, done))
	})
	return g
}

// root returns the ConfigTemplate from the server, or nil.
func (g *generated) root(name string) *generator.ConfigTemplate {
	g.Helper()
	root := &generator.ConfigTemplate{ObjectMeta: named(g.ns, name)}
	err := g.user.Get(g.Context(), root, root)
	if kates.IsNotFound(err) {
		return nil
	}
	require.NoError(g, err)
	return root
}

// configMap returns a config map from the server, or nil.
func (g *generated) configMap(name string) *corev1.ConfigMap {
	g.Helper()
	cm, err := g.admin.CoreV1().ConfigMaps(g.ns).Get(g.Context(), name, metav1.GetOptions{})
	if kates.IsNotFound(err) {
		return nil
	}
	require.NoError(g, err)
	return cm
}

// becomes waits until the root's condition has this status for the newest generation.
func (g *generated) becomes(name string, status metav1.ConditionStatus, reason, message string) *generator.ConfigTemplate {
	g.Helper()
	var root *generator.ConfigTemplate
	var ready kates.Condition
	poll(g, func() bool {
		if root = g.root(name); root == nil {
			return false
		}
		if c := kates.FindCondition(root, generator.Ready); c != nil {
			ready = *c
		}
		return ready.Status == status && ready.Reason == reason && ready.ObservedGeneration == root.Generation
	}, fmt.Sprintf("%s is %s, %s, at its newest generation", name, status, reason), func() any { return root })
	assert.Contains(g, ready.Message, message)
	assert.Equal(g, root.Generation, root.Status.ObservedGeneration)
	return root
}

func (g *generated) writes(err error) {
	g.Helper()
	require.NoError(g, err)
}

// data waits until a config map has the value, and returns it.
func (g *generated) data(name, key, value string) *corev1.ConfigMap {
	g.Helper()
	var cm *corev1.ConfigMap
	poll(g, func() bool { cm = g.configMap(name); return cm != nil && cm.Data[key] == value },
		fmt.Sprintf("%s has %s=%s", name, key, value), func() any { return cm })
	return cm
}

func TestTheExampleOperatorGeneratesConfigMapsAndCleansUp(t *testing.T) {
	t.Parallel()
	g, ctx := newGenerated(t), t.Context()
	manifests, err := os.ReadFile("../examples/configmapgen/example.yaml")
	require.NoError(t, err)
	objects, err := kates.ParseManifests(string(manifests))
	require.NoError(t, err)
	require.Len(t, objects, 2)
	secret, template := objects[0], objects[1]
	secrecy.Harmless("shop", "sam", "db.example.com")
	for _, o := range objects {
		o.SetNamespace(g.ns)
	}
	key := g.ns + "/web"

	// Without its secret the root has a condition that says so. It has its finalizer already.
	g.writes(g.user.Create(ctx, template, nil))
	root := g.becomes("web", metav1.ConditionFalse, "SecretNotFound", `there is no secret "db"`)
	assert.Equal(t, []string{generator.Finalizer}, root.Finalizers)
	assert.Nil(t, g.configMap("web-env"))

	// With the secret the wanted objects exist, and the root owns them.
	g.writes(g.user.Create(ctx, secret, nil))
	root = g.becomes("web", metav1.ConditionTrue, "Generated", "")
	assert.Equal(t, []string{"web-env", "web-banner"}, root.Status.ConfigMaps)
	cm := g.data("web-env", "DATABASE", "postgres://shop@db.example.com/web")
	owner := metav1.GetControllerOf(cm)
	require.NotNil(t, owner)
	assert.Equal(t, root.UID, owner.UID)
	assert.NotNil(t, g.configMap("web-banner"))
	entries, err := g.registry.Entries()
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{key: {"web-env", "web-banner"}}, entries)

	// The content of the secret counts, and a foreign change is undone.
	patch := []byte(`{"stringData":{"user":"sam"}}`)
	g.writes(g.user.Patch(ctx, secret, kates.MergePatchType, patch, nil))
	cm = g.data("web-env", "DATABASE", "postgres://sam@db.example.com/web")
	cm.Data["DATABASE"] = "mine"
	_, err = g.admin.CoreV1().ConfigMaps(g.ns).Update(ctx, cm, metav1.UpdateOptions{})
	require.NoError(t, err)
	g.data("web-env", "DATABASE", "postgres://sam@db.example.com/web")

	g.prunes(root)

	// The external record goes before the root does.
	g.writes(g.user.Delete(ctx, root, nil))
	poll(t, func() bool { return g.root("web") == nil }, "the root is gone")
	entries, err = g.registry.Entries()
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// prunes changes what the root wants: unwanted objects go. An object of somebody else stays, and
// a condition reports it.
func (g *generated) prunes(root *generator.ConfigTemplate) {
	g.Helper()
	t, ctx := g.T, g.Context()
	_, err := g.admin.CoreV1().ConfigMaps(g.ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: named(g.ns, "web-taken")}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = kates.Modify(ctx, g.user, root, func(c *generator.ConfigTemplate) error {
		c.Spec.ConfigMaps[1] = generator.ConfigMapTemplate{Name: "taken", Data: map[string]string{"a": "b"}}
		return nil
	})
	require.NoError(t, err)
	g.becomes("web", metav1.ConditionFalse, "ApplyFailed", "web-taken")
	assert.Empty(t, g.configMap("web-taken").Data)
	assert.Nil(t, g.configMap("web-banner"))
	require.NoError(t, g.admin.CoreV1().ConfigMaps(g.ns).Delete(ctx, "web-taken", metav1.DeleteOptions{}))
	g.becomes("web", metav1.ConditionTrue, "Generated", "")
	g.data("web-taken", "a", "b")
}
