package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return c.faults.Wrap(next) })
		return config
	}
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

func TestEachSnapshotIsALineInAPipe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start("svc,deploy", "pods")
		settle()
		assert.Regexp(t, `^\d\d:\d\d:\d\d #1 services 1, deployments 1, pods 0\n$`, r.out.take())
		c.create(`{apiVersion: v1, kind: Service, metadata: {name: new, namespace: prod}, spec: {ports: [{port: 80}]}}`)
		settle()
		assert.Regexp(t, `^\S+ #2 services 2 \(\+1\), deployments 1, pods 0\n$`, r.out.take())
		c.status(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod}, status: {replicas: 1}}`)
		settle()
		assert.Regexp(t, `^\S+ #3 services 2, deployments 1 \(~1\), pods 0\n$`, r.out.take())
		assert.Zero(t, r.stop(nil))
		assert.Empty(t, r.err.take())
	})
}

func TestTheFlagsOfKubectlSayWhichObjects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for args, wanted := range map[string]string{
			"cm --once -o name":                                     "configmap/other",
			"svc --once -o name":                                    "service/web",
			"svc -A -l app=web --once -o name":                      "service/web",
			"svc -A -l app!=web --once -o name":                     "",
			"svc,cm -A --once -o name":                              "service/web configmap/other",
			"services -n elsewhere --once -o name":                  "",
			"svc/web deploy/web --once -o name":                     "service/web deployment.apps/web",
			"svc/none --once -o name":                               "",
			"svc --field-selector metadata.name=web --once -o name": "service/web",
			"ns --once -o name -l kubernetes.io/metadata.name=prod": "namespace/prod",
			"Deployment.v1.apps svc svc/web --once -o name":         "deployment.apps/web service/web",
		} {
			if strings.HasPrefix(args, "cm ") {
				args += " --context green"
			}
			code, out, err := c.run(strings.Fields(args)...)
			assert.Zero(t, code, "%s: %s", args, err)
			assert.Equal(t, wanted, strings.Join(strings.Fields(out), " "), args)
		}
	})
}

func TestErrorsAndExitCodesAreKubectls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for args, wanted := range map[string]string{
			"foo":                             `error: the server doesn't have a resource type "foo"`,
			"svc,foo --once":                  `error: the server doesn't have a resource type "foo"`,
			"":                                `error: you must specify the kinds to watch`,
			"svc/":                            `error: arguments in resource/name form must have a single resource and name`,
			"svc,":                            `error: "svc," is not a kind`,
			"svc/web -l a=b":                  `error: name cannot be provided when a selector is specified`,
			"svc/web -A":                      `error: a resource cannot be retrieved by name across all namespaces`,
			"svc -o xml":                      `error: unable to match a printer suitable for the output format "xml"`,
			"svc --bogus":                     "error: unknown flag: --bogus\nSee 'snapwatch --help' for usage",
			"svc --for=ready":                 `error: --for=ready is not a condition`,
			"svc --once --for=create":         `error: --once and --for cannot be used together`,
			"svc --timeout 1s":                `error: --timeout is for --for and --once`,
			"svc --interval 0s":               `error: --interval=0s is not a time above 0`,
			"svc -n a_b":                      `error: invalid namespace "a_b"`,
			"svc -l a=b=c":                    `error: `,
			"svc --context none":              `context "none" does not exist`,
			"svc --replay x --record y":       `error: --record and --replay cannot be used together`,
			"--replay /does/not/exist":        `error: open /does/not/exist`,
			"--replay x --speed -1":           `error: --speed=-1 is not a speed`,
			"svc --record /does/not/exist/at": `no such file`,
			"svc --serve nowhere":             `error: --serve=nowhere is not an address`,
			"svc --plain -o json":             `error: --plain and -o cannot be used together`,
		} {
			code, out, err := c.run(strings.Fields(args)...)
			assert.Equal(t, 1, code, args)
			assert.Empty(t, out, args)
			assert.Contains(t, err, wanted, args)
		}
		r := c.start("svc")
		settle()
		assert.Equal(t, 130, r.stop(signalled(2)), "as after ctrl-C")
		assert.Empty(t, r.err.take())
	})
}

func TestAForbiddenKindSaysSoAndHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		rule := c.faults.On(katestest.Match{Resource: "secrets"}).Status(403, "Forbidden", 0)
		r := c.start("svc", "secrets")
		time.Sleep(time.Minute)
		assert.Regexp(t, `^\S+ #1 services 1, secrets forbidden\n$`, r.out.take())
		assert.Regexp(t, `^secrets: forbidden: \S.*\n$`, r.err.take(), "it is said once")
		rule.Stop()
		time.Sleep(5 * time.Minute)
		assert.Regexp(t, `#2 services 1, secrets 1 \(\+1\)\n$`, r.out.take())
		assert.Equal(t, "secrets: synced again\n", r.err.take())
		assert.Zero(t, r.stop(nil))
	})
}

func TestASnapshotWithoutAForbiddenKindIsAnErrorOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.faults.On(katestest.Match{Resource: "secrets"}).Status(403, "Forbidden", 0)
		code, out, err := c.run("svc,secrets", "--once", "-o", "name")
		assert.Equal(t, 1, code)
		assert.Equal(t, "service/web\n", out, "what there is, is printed")
		assert.Contains(t, err, "error: not all kinds are in the snapshot: secrets: forbidden")
	})
}

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hosts.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: hosts, singular: host, kind: Host, listKind: HostList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

func TestAKindThatIsInstalledLaterIsMissingUntilThen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start("svc", "hosts.example.com", "--ignore-not-found")
		settle()
		assert.Regexp(t, `#1 services 1, hosts missing\n$`, r.out.take())
		assert.Contains(t, r.err.take(), "hosts: missing: ")
		c.create(crd)
		time.Sleep(time.Minute)
		c.create(`{apiVersion: example.com/v1, kind: Host, metadata: {name: a, namespace: prod}}`)
		time.Sleep(time.Minute)
		assert.Contains(t, r.out.take(), "hosts 1 (+1)")
		assert.Equal(t, "hosts: synced again\n", r.err.take())
		assert.Zero(t, r.stop(nil))
	})
}

func TestAServerThatFailsIsShownAsRetrying(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start("svc", "pods")
		settle()
		r.out.take()
		c.faults.On(katestest.Match{Resource: "pods"}).Status(500, "InternalError", 0)
		c.faults.Now(katestest.Match{Resource: "pods"}).Cut(0)
		settle()
		assert.Contains(t, r.err.take(), "pods: retrying: ")
		c.faults.Heal()
		time.Sleep(5 * time.Minute)
		assert.Equal(t, "pods: synced again\n", r.err.take())
		assert.Zero(t, r.stop(nil))
	})
}

func TestNoSecretDataIsInLinesDeltasOrTables(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for _, args := range []string{
			"secrets", "secrets -o deltas", "secrets -o table", "secrets -o wide", "secrets -o name",
			"secrets --for=jsonpath={.data.password}=x --timeout=5s",
		} {
			r := c.start(strings.Fields(args)...)
			settle()
			require.NoError(t, c.user.Patch(t.Context(), &kates.Secret{
				TypeMeta:   kates.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: kates.ObjectMeta{Namespace: "prod", Name: "key"},
			}, kates.MergePatchType, []byte(`{"metadata":{"annotations":{"at":"`+time.Now().String()+`"}}}`), nil))
			time.Sleep(10 * time.Second)
			r.stop(nil)
			all := r.out.String() + r.err.String()
			assert.NotEmpty(t, all, args)
			assert.NotContains(t, all, hunter, args)
			assert.NotContains(t, all, hunter64, args)
		}
		_, out, _ := c.run("secrets", "--once", "-o", "json")
		assert.Contains(t, out, hunter64, "JSON is what kubectl prints")
	})
}

func TestWhatOnlyNamesObjectsReadsNoMoreThanTheirMetadata(t *testing.T) {
	for args, whole := range map[string]bool{
		"": false, "-o deltas": false, "-o name": false, "--for=delete": false, "--for=create": false,
		"-o json": true, "-o table": true, "--for=condition=Ready": true, "--record f": true, "--serve :0": true,
	} {
		cmd, o := newCommand("snapwatch", nil)
		require.NoError(t, cmd.ParseFlags(strings.Fields(args)))
		v, err := o.view(streams{})
		require.NoError(t, err)
		assert.Equal(t, whole, v.whole(o), args)
	}
}
