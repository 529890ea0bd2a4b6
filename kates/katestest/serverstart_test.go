package katestest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// definition is that of a custom kind; subresources is JSON.
func definition(kind, plural, subresources string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[2]s.top.test"},"spec":{
"group":"top.test","scope":"Namespaced","names":{"kind":"%[1]s","plural":"%[2]s"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":%[3]s,
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]},
"status":{"acceptedNames":{"kind":"","plural":""},"conditions":[],"storedVersions":[]}}`, kind, plural, subresources)
}

func TestStartingObjectsKeepTheirStatus(t *testing.T) {
	started := map[string]struct{ text, status string }{
		"a pod":                         {"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: i}]}", "{podIP: 10.0.0.1}"},
		"its phase":                     {"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: i}]}", "{phase: Running}"},
		"a node":                        {"apiVersion: v1\nkind: Node", "{addresses: [{type: Hostname, address: h}]}"},
		"a service":                     {"apiVersion: v1\nkind: Service\nspec: {ports: [{port: 80}]}", "{loadBalancer: {ingress: [{ip: 192.0.2.1}]}}"},
		"a claim":                       {"apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}", "{phase: Bound}"},
		"a deployment":                  {"apiVersion: apps/v1\nkind: Deployment\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}", "{readyReplicas: 1, replicas: 1}"},
		"a daemon set":                  {"apiVersion: apps/v1\nkind: DaemonSet\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}", "{numberReady: 2, desiredNumberScheduled: 2}"},
		"custom":                        {"apiVersion: top.test/v1\nkind: With", "{phase: Ready}"},
		"custom, without a subresource": {"apiVersion: top.test/v1\nkind: Without", "{phase: Ready}"},
		"of a kind that takes anything": {"apiVersion: any.test/v1\nkind: Any", "{phase: Ready}"},
	}
	for name, start := range started {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				text := start.text + "\nmetadata: {name: x, labels: {of: test}}\nstatus: " + start.status
				s := katestest.NewServer(t, katestest.WithManifests(text),
					katestest.WithManifests(definition("With", "withs", `{"status":{}}`)), katestest.WithManifests(definition("Without", "withouts", "{}")),
					katestest.WithKinds(katestest.Kind{APIVersion: "any.test/v1", Kind: "Any"}))
				objects, err := kates.ParseManifestsToUnstructured(text)
				require.NoError(t, err)
				want := objects[0].(*kates.Unstructured)
				var got *kates.Unstructured
				require.NoError(t, s.Client(t).Get(t.Context(), want, &got))
				status, _ := got.Object["status"].(map[string]any)
				for field, value := range want.Object["status"].(map[string]any) {
					assert.Equal(t, value, status[field], field)
				}
				assert.Equal(t, map[string]string{"of": "test"}, got.GetLabels())
			})
		})
	}
}

func TestAStartingPodKeepsWhatTheServerAddsToItsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := &kates.Pod{ObjectMeta: kates.ObjectMeta{Name: "web"}}
		pod.Spec.Containers = []kates.Container{{Name: "c", Image: "i"}}
		pod.Status.PodIP = "10.0.0.1"
		s := katestest.NewServer(t, katestest.WithObjects(pod))
		pod.Namespace = "default"
		require.NoError(t, s.Client(t).Get(t.Context(), pod, pod))
		assert.Equal(t, "10.0.0.1", pod.Status.PodIP)
		assert.Equal(t, "Pending", string(pod.Status.Phase))
		assert.NotEmpty(t, pod.Status.QOSClass)
	})
}

func TestAStartingObjectThatIsBeingDeletedIsAnError(t *testing.T) {
	_, err := katestest.StartServer(katestest.WithManifests(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, finalizers: [test/f], deletionTimestamp: 2026-01-01T00:00:00Z}"))
	assert.ErrorContains(t, err, "it has a deletionTimestamp")
}

func TestEachServerIsAClusterOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[any]bool{}
		for range 3 {
			s := katestest.NewServer(t)
			uid, err := s.Client(t).ClusterUID(t.Context())
			require.NoError(t, err)
			again, err := s.Client(t).ClusterUID(t.Context())
			require.NoError(t, err)
			assert.Equal(t, uid, again)
			seen[uid] = true
		}
		assert.Len(t, seen, 3)
	})
}

func TestAFleetNoticesThatAnotherServerHasTakenAName(t *testing.T) {
	type world struct{ ConfigMaps map[string][]*kates.ConfigMap }
	synctest.Test(t, func(t *testing.T) {
		f, err := fleet.New(fleet.Options{})
		require.NoError(t, err)
		defer f.Close()
		member := func(name string) {
			s := katestest.NewServer(t, katestest.WithObjects(settingsMap(name, "v")))
			require.NoError(t, f.Set(fleet.Member{Name: "a", Config: s.Config, Version: name}))
		}
		member("one")
		w, err := fleet.Watch[world](t.Context(), f, kates.Query{Name: "ConfigMaps", Namespace: "default"})
		require.NoError(t, err)
		defer w.Close()
		shows := func(name string) {
			time.Sleep(10 * time.Minute)
			var now world
			_, err := w.Update(t.Context(), &now)
			require.NoError(t, err)
			require.Len(t, now.ConfigMaps["a"], 1)
			assert.Equal(t, name, now.ConfigMaps["a"][0].Name)
		}
		shows("one")
		member("two")
		shows("two")
	})
}

// warnings records those of the server that client-go would log.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

func TestTheListsOfTheKitWarnOfNothing(t *testing.T) {
	heard := &warnings{}
	rest.SetDefaultWarningHandler(heard)
	defer rest.SetDefaultWarningHandler(rest.WarningLogger{})
	synctest.Test(t, func(t *testing.T) {
		katestest.CrashAnywhere(t, func() *katestest.Server {
			return katestest.NewServer(t, katestest.WithObjects(settingsMap("a", "v")))
		}, func(ctx context.Context, config *rest.Config) error {
			c, err := kates.NewClientFromRESTConfig(config)
			if err != nil {
				return err
			}
			defer c.Close()
			return c.Apply(ctx, settingsMap("b", "v"), nil)
		})
	})
	assert.Empty(t, heard.text)
}
