package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/page"
)

// password is in a Secret.
const password = "the-password-of-the-database"

// snapshot is what the program makes its output of. One widget does not decode, and gadgets are
// not installed.
type snapshot struct {
	ConfigMaps  []*corev1.ConfigMap
	Services    []*corev1.Service
	Secrets     []*corev1.Secret
	Deployments []*appsv1.Deployment
	Widgets     []widget         `kates:"widgets.example.com"`
	Gadgets     []map[string]any `kates:"gadgets.example.com,optional"`
}

type widget struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
}

// rules is a snapshot that never comes: the server forbids to list policies.
type rules struct {
	NetworkPolicies []*networkingv1.NetworkPolicy
}

// program is one with failures of each sort.
type program struct {
	url    string // of its page
	server *katestest.Server
	faults *katestest.Faults
	others *kates.Client // writes what other programs would
	client *kates.Client

	snapshots *kates.Snapshots[snapshot]
}

func objects() (all []kates.Object) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	for i := range 250 {
		all = append(all, &corev1.ConfigMap{ObjectMeta: meta(fmt.Sprintf("settings-%03d", i)), Data: map[string]string{"n": "0"}})
	}
	for _, name := range []string{"cart", "checkout", "search"} {
		all = append(all, &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			deployment(name, 2))
	}
	all = append(all, &corev1.Secret{ObjectMeta: meta("database"), Data: map[string][]byte{"password": []byte(password)}},
		aWidget("small", int64(1)), aWidget("broken", "very large"))
	return all
}

func aWidget(name string, size any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "shop", "name": name}, "spec": map[string]any{"size": size},
	}}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/" + name + ":1"}}},
			},
		},
	}
}

// run runs a program until the test ends, which takes snapshots as soon as it can.
func run(t *testing.T) *program { return runAt(t, 0, kates.Tuning{}) }

// runAt is run for a program with that interval between snapshots.
func runAt(t *testing.T, interval time.Duration, tuning kates.Tuning) *program {
	t.Helper()
	p := &program{
		server: katestest.NewServer(t, katestest.WithObjects(objects()...), katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Widget"})),
		faults: katestest.NewFaults(t, 1),
	}
	p.faults.On(katestest.Match{Resource: "networkpolicies.networking.k8s.io"}).Status(403, metav1.StatusReasonForbidden, 0)
	p.others = p.server.Client(t)
	status := page.New()
	t.Cleanup(status.Close)
	config := rest.CopyConfig(p.server.Config)
	config.Wrap(p.faults.Wrap)
	var err error
	p.client, err = kates.NewClientFromRESTConfig(config, kates.WithInterval(interval), kates.WithObserver(status), tuning)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/debug/kates/", status)
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	p.url = site.URL + "/debug/kates/"

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		p.client.Close()
	})
	p.snapshots, err = kates.Watch[snapshot](ctx, p.client)
	require.NoError(t, err)
	_, err = kates.Watch[rules](ctx, p.client)
	require.NoError(t, err)
	complete, some := make(chan struct{}), sync.Once{}
	graph := passwords()
	status.Derived(graph)
	running.Go(func() {
		for snap := range p.snapshots.All(ctx) {
			if _, err := graph.Update(snap); err != nil {
				t.Error(err)
			}
			some.Do(func() { close(complete) })
		}
	})
	type service struct{ Services []*corev1.Service }
	running.Go(func() {
		_ = kates.RunEach(ctx, p.client, func(_ context.Context, key string, _ *service) error {
			if key == "checkout" {
				return errors.New("no load balancer is free")
			}
			return nil
		}, kates.Query{Name: "Services", Key: kates.ByName}, kates.WithWorkers(2)) // ends with ctx
	})
	<-complete
	return p
}

// passwords is a graph that has what nobody may see as values.
func passwords() *derive.Graph[snapshot] {
	g := derive.New[snapshot]("passwords")
	secrets := derive.Objects(g, "secrets", func(s *snapshot) []*corev1.Secret { return s.Secrets })
	of := derive.Map(secrets, "password", func(_ *derive.Reader, _ types.NamespacedName, s *corev1.Secret) (string, error) {
		return string(s.Data["password"]), nil
	})
	derive.Map(of, "checked", func(_ *derive.Reader, _ types.NamespacedName, password string) (string, error) {
		return password, errors.New("the password is weak")
	})
	return g
}

// set changes a config map as another program.
func (p *program) set(t *testing.T, name, value string) {
	t.Helper()
	require.NoError(t, p.others.Update(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"n": value},
	}, nil))
}
