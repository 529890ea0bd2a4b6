package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// hunter is the data of a Secret, as text and in base64.
const hunter, hunter64 = "hunter2", "aHVudGVyMg=="

const shop = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: prod, labels: {app: web}}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: prod}
data: {password: ` + hunter64 + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: elsewhere}
`

// cluster is a server with some objects, a kubeconfig for it, and a client to change it.
type cluster struct {
	*katestest.Server
	t          *testing.T
	faults     *katestest.Faults
	user       *kates.Client
	kubeconfig string
	mu         sync.Mutex
	accepts    []string // what was accepted of the lists and watches of Secrets
}

func newCluster(t *testing.T, options ...katestest.Option) *cluster {
	t.Helper()
	c := &cluster{t: t, faults: katestest.NewFaults(t, 1)}
	c.Server = katestest.NewServer(t, append([]katestest.Option{katestest.WithManifests(shop)}, options...)...)
	c.user = c.Client(t)
	c.kubeconfig = filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(c.kubeconfig, []byte(`
apiVersion: v1
kind: Config
current-context: blue
contexts:
- {name: blue, context: {cluster: c, namespace: prod}}
- {name: green, context: {cluster: c, namespace: elsewhere}}
clusters:
- {name: c, cluster: {server: "http://unused.test"}}
`), 0o600))
	return c
}

// text is an output that is read while it is written.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
	// wrote, if not nil, gets a value after something was written.
	wrote chan struct{}
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case x.wrote <- struct{}{}:
	default:
	}
	return x.b.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// take returns what was written since the last time.
func (x *text) take() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.b.Reset()
	return x.b.String()
}

// running is a program that runs.
type running struct {
	out, err text
	cancel   context.CancelCauseFunc
	code     chan int
}

// start runs the program on the cluster.
func (c *cluster) start(args ...string) *running {
	r := &running{code: make(chan int, 1)}
	r.err.wrote = make(chan struct{}, 1)
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	all := append([]string{"snapwatch", "--kubeconfig", c.kubeconfig}, args...)
	go func() {
		r.code <- execute(ctx, all, streams{in: strings.NewReader(""), out: &r.out, err: &r.err}, c.reached)
	}()
	c.t.Cleanup(func() { cancel(nil) })
	return r
}

// reached has the program reach the server, whatever address its kubeconfig has.
func (c *cluster) reached(o *options) {
	o.config.WrapConfigFn = func(*rest.Config) *rest.Config {
		config := rest.CopyConfig(c.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noting{c, c.faults.Wrap(next)} })
		return config
	}
}

// noting notes how Secrets are asked for.
type noting struct {
	*cluster
	next http.RoundTripper
}

// WrappedRoundTripper is for client-go, which looks below wrappers.
func (n noting) WrappedRoundTripper() http.RoundTripper { return n.next }

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/secrets") {
		n.mu.Lock()
		n.accepts = append(n.accepts, r.Header.Get("Accept"))
		n.mu.Unlock()
	}
	return n.next.RoundTrip(r)
}

// run runs the program until it ends by itself.
func (c *cluster) run(args ...string) (code int, out, err string) {
	r := c.start(args...)
	code = <-r.code
	return code, r.out.String(), r.err.String()
}

// stop ends the program as a signal does, and returns its exit code.
func (r *running) stop(cause error) int {
	r.cancel(cause)
	return <-r.code
}

func (c *cluster) create(manifest string) {
	c.t.Helper()
	objects, err := kates.ParseManifestsToUnstructured(manifest)
	require.NoError(c.t, err)
	for _, o := range objects {
		require.NoError(c.t, c.user.Create(c.t.Context(), o, nil))
	}
}

// status sets an object's status.
func (c *cluster) status(manifest string) {
	c.t.Helper()
	objects, err := kates.ParseManifestsToUnstructured(manifest)
	require.NoError(c.t, err)
	for _, o := range objects {
		require.NoError(c.t, c.user.UpdateStatus(c.t.Context(), o, nil))
	}
}

// bubble runs a test in a bubble, whose clock stands still while anything works.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/does/not/exist")
	synctest.Test(t, f)
}

// settle waits until all that follows from what was done has been done.
func settle() {
	time.Sleep(3 * time.Second) // of the bubble
	synctest.Wait()
}

// listsOf are lists and watches of a resource.
func listsOf(resource string) katestest.Match { return katestest.Match{Resource: resource} }

// api is the deployment of shop under another name.
func api(t *testing.T, name string) string {
	t.Helper()
	all := strings.Split(shop, "---")
	return strings.Replace(all[1], "{name: web, namespace", "{name: "+name+", namespace", 1)
}

// deployed is the status of a deployment.
func deployed(name, is string) string { return fmt.Sprintf(available, name, is) }

func (c *cluster) remove(apiVersion, kind, name string) {
	c.t.Helper()
	u := kates.NewUnstructured(kind, apiVersion)
	u.SetNamespace("prod")
	u.SetName(name)
	require.NoError(c.t, c.user.Delete(c.t.Context(), u, nil))
}
