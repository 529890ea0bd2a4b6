package source

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/kates"
)

var kubeconfigs = []string{
	"apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://x}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
	"clusters: [{name: c, cluster: {server: 'https://x', proxy-url: 'http://p', insecure-skip-tls-verify: true, certificate-authority: /etc/ca}}]\nusers: [{name: u, user: {exec: {apiVersion: a, command: rm}, tokenFile: /etc/shadow}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
	"clusters: [null]\nusers: [null]\ncontexts: [null]\ncurrent-context: ''\n", "clusters: {}", "{", "\x00", "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n",
	"clusters: [{name: c, cluster: {server: 'https://a:b@x'}}]\nusers: [{name: u, user: {auth-provider: {name: gcp}, client-key: x, client-certificate: y}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
	`{"clusters":[{"name":"c","cluster":{"server":"x:y","extensions":[{"name":"e","extension":{"a":[]}}]}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`,
}

// harmless fails unless a configuration does nothing that has to be allowed.
func harmless(t *testing.T, from string, c *rest.Config) {
	t.Helper()
	if c.ExecProvider != nil || c.AuthProvider != nil || c.BearerTokenFile != "" || c.CertFile != "" || c.KeyFile != "" || c.CAFile != "" ||
		c.Proxy != nil || c.Insecure {
		t.Fatalf("%q is allowed: %+v", from, c)
	}
	if err := checkAddress("server", c.Host); err != nil {
		t.Fatalf("%q: %v", from, err)
	}
	u, _, err := rest.DefaultServerUrlFor(c)
	if err != nil || strings.HasPrefix(strings.ToLower(c.Host), "https:") && u.Scheme != "https" {
		t.Fatalf("%q is reached at %v, without TLS: %v", from, u, err)
	}
}

func FuzzAKubeconfigThatIsNotAllowedAnythingDoesNothing(f *testing.F) {
	for _, text := range kubeconfigs {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		config, version, err := fromText(text, "", terms{})
		if (err == nil) != (config != nil) || (err == nil) != (version != "") {
			t.Fatalf("%q: %v, %q, %v", text, config, version, err)
		}
		if err == nil {
			harmless(t, string(text), config)
			if again, other, err := fromText(text, "", terms{}); err != nil || other != version || again.Host != config.Host {
				t.Fatalf("%q is read otherwise the second time: %v", text, err)
			}
		}
	})
}

func FuzzAnArgoSecretThatIsNotAllowedAnythingDoesNothing(f *testing.F) {
	f.Add("https://x", []byte(`{"bearerToken":"t","tlsClientConfig":{"insecure":true,"caData":"AA=="}}`))
	f.Add(argoHome, []byte(`{}`))
	f.Add("x", []byte(`{"execProviderConfig":{"command":"rm","env":{"a":"b"}},"awsAuthConfig":null,"proxyUrl":":"}`))
	f.Add("https://a:b@x", []byte(`{"username":"u","password":7}`))
	f.Add("", []byte(`[]`))
	f.Fuzz(func(t *testing.T, server string, config []byte) {
		s := &secrets{}
		s.Form = ArgoCD
		secret := &corev1.Secret{Data: map[string][]byte{"server": []byte(server), "config": config, "project": config}}
		secret.Namespace, secret.Name = "ns", "x"
		m := s.argo(secret)
		if m.Client != nil || (m.Err == nil) != (m.Config != nil) {
			t.Fatalf("%q, %q: %+v", server, config, m)
		}
		if m.Err == nil {
			harmless(t, fmt.Sprintf("%q, %q", server, config), m.Config)
		}
		if m.Err != nil && len(config) > 30 && strings.Contains(m.Err.Error(), string(config)) {
			t.Fatalf("%q is quoted: %v", config, m.Err)
		}
		if argoName(secret) == "" {
			t.Fatalf("%q has no name", server)
		}
	})
}

func FuzzAClusterProfileRunsNothingButTheProgramOfItsProvider(f *testing.F) {
	for _, object := range []string{
		`{"status":{"accessProviders":[{"name":"p","cluster":{"server":"https://x","extensions":[{"name":"client.authentication.k8s.io/exec","extension":{}},{"name":"multicluster.x-k8s.io/clusterprofiles/auth/exec/additional-args","extension":["a"]}]}}]}}`,
		`{"status":{"accessProviders":[{"name":"p","cluster":{"server":"http"}}]}}`,
		`{"status":{"accessProviders":[null,7,{"name":7},{"name":"p","cluster":7}]}}`, `{"status":{"credentialProviders":{},"accessProviders":[{"name":"p"}]}}`,
		`{"status":{"credentialProviders":[{"name":"p","cluster":{"server":"https://x","proxy-url":"http://p","certificate-authority":"/etc/passwd","tls-server-name":"x"}}]}}`,
		`{"status":7,"spec":{"kubeConfig":{"secretRef":{"name":7},"configMapRef":{"name":"x"}}}}`, `{"spec":{"kubeConfig":{"secretRef":{"name":"s","key":"value"}}},"metadata":7}`,
	} {
		f.Add([]byte(object), "[a, b]")
	}
	provider := AccessProvider{Name: "p", Exec: clientcmdapi.ExecConfig{Command: "login", APIVersion: "client.authentication.k8s.io/v1"}, Args: true, Env: EnvReplace}
	p := &profiles{ProfileOptions: ProfileOptions{Providers: []AccessProvider{provider}}}
	f.Fuzz(func(t *testing.T, data []byte, audiences string) {
		u := &kates.Unstructured{}
		if utiljson.Unmarshal(data, &u.Object) != nil || u.Object == nil {
			return
		}
		c, err := p.connect(u)
		if err == nil {
			// client-go sends no credentials over a connection that others can read.
			exec, secret := c.config.ExecProvider, strings.HasPrefix(c.config.Host, "https:")
			if exec == nil && secret || exec != nil && exec.Command != "login" {
				t.Fatalf("%s runs %+v", data, exec)
			}
			c.config.ExecProvider = nil
			harmless(t, string(data), c.config)
		}
		for _, m := range p.members(&profileSnapshot{Profiles: []*unstructured.Unstructured{u}}) {
			if (m.Err == nil) != (m.Config != nil) {
				t.Fatalf("%s: %+v", data, m)
			}
		}
		x := &flux{FluxOptions: FluxOptions{Providers: map[string]func(FluxCluster) (*rest.Config, error){
			"": func(FluxCluster) (*rest.Config, error) { return &rest.Config{}, nil },
		}}}
		snap := &fluxSnapshot{Kustomizations: []*unstructured.Unstructured{u}, ConfigMaps: map[types.NamespacedName]*kates.ConfigMap{}}
		if r := refOf(u); r.kind == "ConfigMap" {
			snap.ConfigMaps[r.NamespacedName] = &corev1.ConfigMap{Data: map[string]string{"audiences": audiences}}
		}
		for _, m := range x.members(snap) {
			if m.Name == "" || (m.Err == nil) != (m.Config != nil) {
				t.Fatalf("%s: %+v", data, m)
			}
		}
	})
}
