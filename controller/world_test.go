package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	silent  = kates.WithLogger(slog.New(slog.DiscardHandler))
	configs = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	deploys = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// app is the parts of a root in the tests: a config map that controls deployments, with secrets
// that name it in a label, and nodes for all.
type app struct {
	Root        *corev1.ConfigMap    `kates:",root"`
	Deployments []*appsv1.Deployment `kates:",owned"`
	Secrets     []*corev1.Secret
	Nodes       []*corev1.Node
	Info        controller.Info
}

// text returns the content of a struct: key, root's UID and data, owned, secrets, nodes,
// departure.
func (a *app) text() string {
	s := a.Info.Key
	if a.Root != nil {
		s += fmt.Sprintf(" %s=%s", a.Root.UID, a.Root.Data["a"])
	}
	for _, d := range a.Deployments {
		s += " +" + d.Name
	}
	for _, x := range a.Secrets {
		s += " *" + x.Name
	}
	for _, n := range a.Nodes {
		s += " @" + n.Name
	}
	if a.Info.Departure != "" {
		s += " " + string(a.Info.Departure)
	}
	return s
}

// bySecret gives secrets their keys.
var bySecret = kates.Query{Name: "Secrets", Key: kates.ByLabel("app")}

// world is a fake, and the program that writes to it.
type world struct {
	*testing.T
	*katestest.Fake
}

// inWorld runs a test in a bubble of time, on a fake.
func inWorld(t *testing.T, f func(w *world), options ...kates.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(&world{t, katestest.New(t, katestest.WithClientOptions(append([]kates.Option{silent}, options...)...))})
	})
}

// put writes an object, like another program.
func (w *world) put(r schema.GroupVersionResource, o kates.Object) {
	w.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(w, err)
	u := &kates.Unstructured{Object: content}
	gvk, err := w.Mapper.KindFor(r)
	require.NoError(w, err)
	u.SetGroupVersionKind(gvk)
	in := w.Dynamic.Resource(r).Namespace(u.GetNamespace())
	if _, err = in.Update(context.Background(), u, metav1.UpdateOptions{}); kates.IsNotFound(err) {
		_, err = in.Create(context.Background(), u, metav1.CreateOptions{})
	}
	require.NoError(w, err)
}

func (w *world) remove(r schema.GroupVersionResource, namespace, name string) {
	w.Helper()
	require.NoError(w, w.Dynamic.Resource(r).Namespace(namespace).Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// root writes a root.
func (w *world) root(name, uid, a string) { w.put(configs, rootObject(name, uid, a)) }

func rootObject(name, uid, a string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}, Data: map[string]string{"a": a}}
}

// owns writes a deployment that a root controls.
func (w *world) owns(root, uid, name string) { w.put(deploys, ownedObject(root, uid, name)) }

func ownedObject(root, uid, name string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	owner := rootObject(root, uid, "")
	owner.APIVersion, owner.Kind = "v1", "ConfigMap"
	if err := kates.SetControllerReference(owner, d); err != nil {
		panic(err)
	}
	return d
}

// secret writes a secret for the root of a key.
func (w *world) secret(name, label string) {
	w.put(secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": label}}})
}

// calls records the calls of a reconciler.
type calls struct {
	mu     sync.Mutex
	texts  []string
	answer func(ctx context.Context, a *app) (controller.Result, error)
}

func (c *calls) reconcile(ctx context.Context, a *app) (controller.Result, error) {
	c.mu.Lock()
	c.texts = append(c.texts, a.text())
	c.mu.Unlock()
	if c.answer == nil {
		return controller.Done, nil
	}
	return c.answer(ctx, a)
}

// taken returns the calls since the last time.
func (c *calls) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.texts
	c.texts = nil
	return all
}

// running is a controller in a goroutine.
type running[P any] struct {
	*controller.Controller[P]
	t    *testing.T
	end  context.CancelFunc
	done chan error
}

// run makes a controller, and runs it.
func run[P any](w *world, f func(context.Context, *P) (controller.Result, error), options ...kates.RunOption) *running[P] {
	w.Helper()
	c, err := controller.New(w.Client, "test", f, options...)
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(w.Context())
	r := &running[P]{c, w.T, cancel, make(chan error, 1)}
	go func() { r.done <- c.Run(ctx) }()
	r.runs()
	return r
}

// runs waits until nothing can happen before time passes, and checks that the controller still
// runs.
func (r *running[P]) runs() {
	r.t.Helper()
	synctest.Wait()
	select {
	case err := <-r.done:
		r.t.Fatalf("it has ended: %v", err)
	default:
	}
}

// stop ends the context, and checks that Run returns no error.
func (r *running[P]) stop() {
	r.t.Helper()
	r.end()
	require.NoError(r.t, <-r.done)
}

const (
	second = time.Second
	hour   = time.Hour
)

// after is time.After, under a name that says that the time is a bubble's.
func after(d time.Duration) <-chan time.Time { return time.After(d) }

// count returns the number of requests with a verb.
func (w *world) count(verb string) (n int) {
	for _, a := range w.Dynamic.Actions() {
		if a.GetVerb() == verb {
			n++
		}
	}
	return n
}

// outage makes requests of a kind fail while the value that it returns is true. Call it before
// anything runs.
func (w *world) outage(verb, resource string, err error) *atomic.Bool {
	var on atomic.Bool
	w.Dynamic.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return on.Load(), nil, err
	})
	return &on
}

// journal is the notes of reconcilers, with the time since its start.
type journal struct {
	start time.Time

	mu    sync.Mutex
	notes []string
}

func newJournal() *journal { return &journal{start: time.Now()} }

func (j *journal) note(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notes = append(j.notes, fmt.Sprint(what, " ", time.Since(j.start)))
}

// taken returns the notes since the last time.
func (j *journal) taken() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.notes
	j.notes = nil
	return all
}
