package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// user is the ServiceAccount of the gateway.
const user = "system:serviceaccount:gateway:gateway"

// patience is a bound that no machine misses.
const patience = 3 * time.Minute

// world is an API server that writes down what the gateway asks of it, and an administrator.
type world struct {
	t       *testing.T
	dir     string
	cluster *apiserver.Cluster
	admin   *kates.Client
	http    string // where nginx listens for port 80
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir()}
	policy := filepath.Join(w.dir, "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte(fmt.Sprintf(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata, users: [%q]}, {level: None}]
`, user)), 0o600))
	w.cluster = apiserver.StartAPIServer(t, apiserver.WithCRDs(definitions(t)), apiserver.WithFlags(
		"audit-policy-file="+policy, "audit-log-path="+w.audit(), "audit-log-mode=blocking"))
	var err error
	w.admin, err = kates.NewClientFromRESTConfig(w.cluster.Config, kates.WithScheme(translate.Scheme()))
	require.NoError(t, err)
	t.Cleanup(w.admin.Close)
	return w
}

func (w *world) audit() string { return filepath.Join(w.dir, "audit.log") }

// definitions is the folder of the CustomResourceDefinitions of the Gateway API, in its module.
func definitions(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out)) + "/config/crd/standard"
}

// request is a line of the API server's audit log.
type request struct {
	Verb           string
	ObjectRef      reference
	ResponseStatus struct{ Code int }
}

type reference struct{ Resource, Subresource, Namespace, Name, APIGroup string }

func (r reference) path() string { return strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/") }

func (q request) String() string {
	return fmt.Sprintf("%s %s.%s %s/%s", q.Verb, q.ObjectRef.path(), q.ObjectRef.APIGroup, q.ObjectRef.Namespace, q.ObjectRef.Name)
}

// requests are all that the gateway has made.
func (w *world) requests() (all []request) {
	w.t.Helper()
	file, err := os.Open(w.audit())
	require.NoError(w.t, err)
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var q request
		require.NoError(w.t, json.Unmarshal(lines.Bytes(), &q))
		all = append(all, q)
	}
	require.NotEmpty(w.t, all)
	return all
}

func (w *world) create(objects ...kates.Object) {
	w.t.Helper()
	for _, o := range objects {
		require.NoError(w.t, w.admin.Create(w.t.Context(), o, nil))
	}
}

// build builds the program, and returns the command that runs it as the ServiceAccount.
func (w *world) build() []string {
	program, config := filepath.Join(w.dir, "gateway"), filepath.Join(w.dir, "kubeconfig")
	build := exec.CommandContext(w.t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	account, err := w.cluster.AddUser(user)
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(config, kubeconfig(w.t, account), 0o600))
	return []string{program, "-kubeconfig", config}
}

// start runs the containers of a pod.
func (w *world) start(of map[string]container) (stop func()) {
	plain, tls := freePort(w.t), freePort(w.t)
	w.http = fmt.Sprintf("http://127.0.0.1:%d", plain)

	nginx, _ := w.run(of["nginx"].command...)
	gateway, _ := w.run(slices.Concat(w.build(), of["gateway"].command, []string{
		"-ports", fmt.Sprintf("80:%d,443:%d", plain, tls), "-address", "127.0.0.1", "-listen", "", "-publish-address", "192.0.2.1",
	})...)
	return func() {
		require.NoError(w.t, gateway.Process.Signal(syscall.SIGTERM))
		require.NoError(w.t, gateway.Wait())
		assert.Equal(w.t, http.StatusServiceUnavailable, w.get("blog.example.com"), "nginx serves on")
		out, err := exec.Command(of["nginx"].preStop[0], of["nginx"].preStop[1:]...).CombinedOutput()
		require.NoError(w.t, err, "%s", out)
		require.NoError(w.t, nginx.Wait())
	}
}

// run starts a process that does not outlive the test, nor do those that it starts.
func (w *world) run(command ...string) (cmd *exec.Cmd, log *output) {
	log = &output{}
	cmd = exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
		if w.t.Failed() {
			w.t.Logf("%s: %s", command[0], log.String())
		}
	})
	return cmd, log
}

// output is what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// kubeconfig is the file that says how to reach a cluster.
func kubeconfig(t *testing.T, c *rest.Config) []byte {
	file := clientcmdapi.Config{
		CurrentContext: "test", Contexts: map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"test": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
	}
	text, err := clientcmd.Write(file)
	require.NoError(t, err)
	return text
}

// reported is what the gateway tells.
type reported struct {
	Ingresses []*networkingv1.Ingress
	Classes   []*gatewayv1.GatewayClass
	Gateways  []*gatewayv1.Gateway
	Routes    []*gatewayv1.HTTPRoute
	Events    []*eventsv1.Event `kates:"events.events.k8s.io"`
}

// reports waits until the gateway has reported on each kind of object, and has recorded an event
// twice.
func (w *world) reports() {
	snapshots, err := kates.Watch[reported](w.t.Context(), w.admin)
	require.NoError(w.t, err)
	defer snapshots.Close()
	until := func(is func(s *reported) bool) {
		w.t.Helper()
		katestest.Until(w.t, snapshots, is, katestest.Within(patience))
	}
	until(func(s *reported) bool {
		return len(s.Ingresses[0].Status.LoadBalancer.Ingress) == 1 && len(s.Classes[0].Status.Conditions) > 0 &&
			len(s.Gateways[0].Status.Conditions) > 0 && len(s.Routes[0].Status.Parents) == 1
	})
	text := `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: shop, name: other},
		spec: {ingressClassName: kates, rules: [{host: other.example.com, http: {paths: [
			{path: /, pathType: Prefix, backend: {service: {name: other, port: {number: 80}}}}]}}]}}`
	other, err := kates.ParseManifests(text)
	require.NoError(w.t, err)
	w.create(append(other, service())...)
	for round := range 2 { // the second time it is a series
		require.NoError(w.t, w.admin.Delete(w.t.Context(), service(), nil))
		until(func(s *reported) bool { return count(s, "InvalidBackend") == round+1 })
		w.create(service())
		until(func(s *reported) bool { return count(s, "Resolved") == round+1 })
	}
}

// service is that of another Ingress.
func service() *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	s.Namespace, s.Name = "shop", "other"
	return s
}

// count says how often an event about that Ingress was recorded.
func count(s *reported, reason string) (n int) {
	for _, e := range s.Events {
		if e.Reason != reason || e.Regarding.Name != "other" {
			continue
		}
		if n++; e.Series != nil {
			n += int(e.Series.Count) - 1
		}
	}
	return n
}

// serves waits until nginx serves. The blog has no endpoints.
func (w *world) serves() {
	require.Eventually(w.t, func() bool { return w.get("blog.example.com") == http.StatusServiceUnavailable }, patience, 20*time.Millisecond)
}

// get returns the status of an answer, and 0 if there is none.
func (w *world) get(host string) int {
	request, err := http.NewRequest(http.MethodGet, w.http, nil)
	if err != nil { // not require: this may be another goroutine
		return 0
	}
	request.Host = host
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := web.Do(request)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// ports are below those that connections get, so nobody takes one before nginx listens there.
var ports = 10000 + os.Getpid()*40%20000

func freePort(t *testing.T) int {
	t.Helper()
	for range 20000 {
		ports++
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports)); err == nil {
			require.NoError(t, l.Close())
			return ports
		}
	}
	t.Fatal("there is no free port")
	return 0
}
