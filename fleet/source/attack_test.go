package source

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// contender returns a Secret of Argo CD's form, made some hours ago.
func contender(object, name string, hours time.Duration) *kates.Secret {
	s := argoSecret(name, "https://"+object+".test", `{"bearerToken":"t"}`)
	s.Name, s.CreationTimestamp = object, metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Add(-hours*time.Hour))
	return s
}

// step is what becomes of the Secrets, and the members after that.
type step struct {
	now  []*kates.Secret
	want string
}

func TestWhoHasANameKeepsIt(t *testing.T) {
	s := func(all ...*kates.Secret) []*kates.Secret { return all }
	deleting := contender("victim", "prod", 1)
	deleting.DeletionTimestamp = new(metav1.Now())
	broken := contender("victim", "prod", 1)
	broken.Data["config"] = []byte("{")
	for name, steps := range map[string][]step{
		"an older Secret is edited": {
			{s(contender("victim", "prod", 1), contender("evil", "mine", 9)), "mine=evil prod=victim"},
			{s(contender("victim", "prod", 1), contender("evil", "prod", 9)), "prod! prod=victim"},
			{s(contender("evil", "prod", 9)), "prod=evil"},
			{s(contender("victim", "prod", 1), contender("evil", "prod", 9)), "prod! prod=evil"},
		},
		"one without a creation time is edited": {
			{s(contender("victim", "prod", 1)), "prod=victim"},
			{s(contender("victim", "prod", 1), contender("evil", "prod", 1<<18)), "prod! prod=victim"},
		},
		"both are there at first": {
			{s(contender("victim", "prod", 1), contender("evil", "prod", 9)), "prod! prod=evil"},
		},
		"it is deleted and made again between two looks": {
			{s(contender("victim", "prod", 5)), "prod=victim"},
			{s(contender("victim", "prod", 0), contender("evil", "prod", 9)), "prod! prod=victim"},
		},
		"its content breaks": {
			{s(contender("victim", "prod", 1)), "prod=victim"},
			{s(broken, contender("evil", "prod", 9)), "prod! prod!"},
			{s(contender("victim", "prod", 1), contender("evil", "prod", 9)), "prod! prod=victim"},
		},
		"it is being deleted": {
			{s(contender("victim", "prod", 1)), "prod=victim"},
			{s(deleting, contender("evil", "prod", 9)), "prod=evil"},
		},
		"two change their names": {
			{s(contender("a", "x", 1), contender("b", "y", 2)), "x=a y=b"},
			{s(contender("a", "y", 1), contender("b", "x", 2)), "x=b y=a"},
			{s(contender("a", "y", 1), contender("b", "x", 2), contender("c", "x", 3), contender("d", "y", 0)), "x! x=b y! y=a"},
			{s(contender("a", "z", 1), contender("c", "x", 3), contender("d", "y", 0)), "x=c y=d z=a"},
		},
	} {
		made, err := newSecrets(&kates.Client{}, SecretOptions{Form: ArgoCD})
		must(t, err)
		for i, step := range steps {
			got := strings.Join(list(made.members(step.now)), " ")
			if got = strings.NewReplacer("https://", "", ".test", "").Replace(got); got != step.want {
				t.Errorf("%s, step %d: %s, and should be %s", name, i+1, got, step.want)
			}
		}
	}
}

// A source that runs again, after its watch has failed, remembers who has which name.
func TestWhoHasANameKeepsItWhenTheSourceRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := newHome(t, contender("victim", "prod", 1))
		from := Secrets(home.Client, SecretOptions{Form: ArgoCD})
		first := run(t, from)
		synctest.Wait()
		first.end()
		must(t, home.Client.Create(t.Context(), contender("evil", "prod", 9), nil))
		second := run(t, from)
		synctest.Wait()
		second.is(t, "prod!", "prod=https://victim.test")
	})
}

// Every text that an object of a namespace may choose says that it is of another one.
func TestANameWithANamespaceIsNotClaimedFromAnother(t *testing.T) {
	const evil = "evil"
	for _, text := range []string{"x/a", "/x/a", "../x/a", "a", "x/a/value", "evil/../x/a"} {
		s := secret(evil, text, map[string]string{clusterAPILabel: text, "name": text}, map[string]string{"name": text, "kubeconfig": "", "value": ""})
		s.Type = clusterAPIType
		s.Name += clusterAPISuffix
		var names []string
		for _, form := range []SecretForm{Kubeconfigs, ClusterAPI} {
			made, err := newSecrets(&kates.Client{}, SecretOptions{Form: form})
			must(t, err)
			for _, m := range made.members([]*kates.Secret{s}) {
				names = append(names, m.Name)
			}
		}
		o, p := fluxObject("Kustomization", text, secretRef(text, text)), profile(text, "accessProviders", nil)
		o.SetNamespace(evil)
		p.SetNamespace(evil)
		for _, m := range (&flux{}).members(&fluxSnapshot{Kustomizations: []*kates.Unstructured{o}}) {
			names = append(names, m.Name)
		}
		for _, m := range (&profiles{}).members(&profileSnapshot{Profiles: []*kates.Unstructured{p}}) {
			names = append(names, m.Name)
		}
		if len(names) != 4 {
			t.Errorf("%q: not each source has a cluster: %q", text, names)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, evil+"/") {
				t.Errorf("%q has the name %q", text, name)
			}
		}
	}
}

func TestArgoCDsSecretsAreReadInItsOwnNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evil := contender("evil", "prod", 9)
		evil.Namespace = "tenant"
		home := newHome(t, contender("victim", "prod", 1), evil)
		r, other := run(t, Secrets(home.Client, SecretOptions{Form: ArgoCD})), run(t, Secrets(home.Client, SecretOptions{Form: ArgoCD, Namespaces: []string{"tenant"}}))
		synctest.Wait()
		r.is(t, "prod=https://victim.test")
		other.is(t, "prod=https://evil.test")
	})
}

// special are servers that a tenant's configuration must not lead to.
var special = []string{
	"https://127.0.0.1:6443", "https://[::1]", "https://[::ffff:127.0.0.1]", "https://[64:ff9b::7f00:1]", "http://169.254.169.254", "http://[fd00:ec2::254]", "http://100.100.100.200",
	"https://0.0.0.0:6443", "https://2130706433", "https://0x7f.1", "https://0177.0.0.1:6443", "127.0.0.1:8080", "http://127.1", "https://224.0.0.1",
}

func TestNoSourceLeadsToASpecialAddress(t *testing.T) {
	for _, address := range special {
		config := kubeconfigText(t, address)
		s, err := newSecrets(&kates.Client{}, SecretOptions{})
		must(t, err)
		argo, err := newSecrets(&kates.Client{}, SecretOptions{Form: ArgoCD, Allow: allowEverything})
		must(t, err)
		p := &profiles{ProfileOptions: ProfileOptions{Providers: providers}}
		f := &flux{FluxOptions: FluxOptions{Providers: map[string]func(FluxCluster) (*rest.Config, error){
			"generic": func(c FluxCluster) (*rest.Config, error) { return &rest.Config{Host: c.Address}, nil },
		}}}
		login := &kates.ConfigMap{Data: map[string]string{"provider": "generic", "address": address}}
		profile := profile("a", "accessProviders", map[string]any{"first": server(address)})
		_, profileErr := p.connect(profile)
		for what, err := range map[string]error{
			"Secrets": s.member(s, secret("x", "a", nil, map[string]string{"kubeconfig": config})).Err,
			"Argo CD": argo.argo(argoSecret("a", address, "{}")).Err,
			"Flux":    kubeconfigMember(secret("x", "a", nil, map[string]string{"value": config}), "value", f.terms).Err,
			"a login": f.login(login).Err, "ClusterProfiles": profileErr,
		} {
			if err == nil || !strings.Contains(err.Error(), "the option Hosts") {
				t.Errorf("%s, %s: %v", what, address, err)
			}
		}
	}
}

func TestAProxyOfATenantIsCheckedAndSoIsWhatIsBehindIt(t *testing.T) {
	by := func(proxy string) edit {
		return func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = proxy }
	}
	for _, c := range []struct {
		server, proxy string
		hosts         []string
		refused       bool
	}{
		{"https://a.test", "http://127.0.0.1:3128", nil, true},
		{"https://a.test", "socks5://[::1]:3128", nil, true},
		{"https://127.0.0.1", "http://p.test", nil, true},
		{"https://localhost", "http://p.test", nil, true},
		{"https://2852039166", "http://p.test", nil, true},
		{"https://a.test", "http://p.test", nil, false},
		{"https://a.test", "http://p.test", []string{"p.test"}, true},
		{"https://a.test", "http://p.test", []string{"p.test", "10.0.0.0/8"}, true},
		{"https://a.test", "http://p.test", []string{"p.test", "a.test"}, false},
		{"https://10.0.0.1", "http://127.0.0.1:1", []string{"127.0.0.1", "10.0.0.0/8"}, false},
	} {
		may, err := newTerms(AllowProxy, c.hosts)
		must(t, err)
		_, _, err = fromText([]byte(kubeconfigText(t, c.server, by(c.proxy))), "", may)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "the option Hosts") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// What a tenant names is asked only if the option says so, whatever its name resolves to.
func TestAFleetDoesNotConnectWhereNoSourceMayLead(t *testing.T) {
	asked := make(chan string, 100)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.URL.Path; w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(far.Close)
	_, port, err := net.SplitHostPort(far.Listener.Addr().String())
	must(t, err)
	home := newHome(t, secret("x", "a", plainLabel, map[string]string{"kubeconfig": kubeconfigText(t, "http://localhost:"+port)}))
	f := newFleet(t, Secrets(home.Client, SecretOptions{}))
	eventually(t, f, "it is refused", func() bool { return strings.Contains(f.Status().String(), "the option Hosts") })
	if len(asked) > 0 {
		t.Errorf("it was asked for %s", <-asked)
	}
	f = newFleet(t, Secrets(home.Client, SecretOptions{Hosts: append(loopback, "::1")}))
	<-asked
	f.Close()
}

// Go reads the variables of a proxy once. So a process of its own has them.
func TestTheProxyOfTheEnvironmentIsTrustedForTenantsAndNothingBehindIt(t *testing.T) {
	const own = "KATES_TEST_PROXY"
	proxy := os.Getenv(own)
	if proxy == "" {
		asked := make(chan string, 100)
		far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Host + " " + r.URL.Path }))
		defer far.Close()
		c := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), own+"="+far.URL, "HTTP_PROXY="+far.URL, "HTTPS_PROXY="+far.URL, "NO_PROXY=", "no_proxy=")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		close(asked)
		var got []string
		for one := range asked {
			got = append(got, one)
		}
		if want := "api.test /x"; strings.Join(got, ", ") != want {
			t.Errorf("the proxy was asked for %q, and should be for %q", got, want)
		}
		return
	}
	get := func(server string, edits ...edit) error {
		made, _, err := fromText([]byte(kubeconfigText(t, server, edits...)), "", terms{Allow: AllowProxy})
		if err != nil {
			return err
		}
		client, err := rest.HTTPClientFor(made)
		must(t, err)
		question, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+"/x", nil)
		must(t, err)
		question.Close = true
		answer, err := client.Do(question)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	must(t, get("http://api.test"))
	byTenant := func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = proxy }
	for what, err := range map[string]error{
		"the proxy as a server": get(proxy), "the same of another form": get(strings.Replace(proxy, "127.0.0.1", "2130706433", 1)),
		"the proxy by a name": get(strings.Replace(proxy, "127.0.0.1", "localhost", 1)), "cloud metadata": get("http://169.254.169.254"),
		"a name of this machine": get("http://ip6-localhost"), "a tenant's proxy": get("http://api.test", byTenant),
	} {
		if err == nil || !strings.Contains(err.Error(), "the option Hosts") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestHostsThatMakeNoSenseAreErrorsOfTheSource(t *testing.T) {
	home, wrong := newHome(t), []string{"https://a"}
	for _, s := range []fleet.Source{
		Secrets(home.Client, SecretOptions{Hosts: wrong}), Flux(home.Client, FluxOptions{Hosts: wrong}), ClusterProfiles(home.Client, ProfileOptions{Hosts: wrong}),
	} {
		if err := (runnable{s.Run}).Run(t); err == nil || !strings.Contains(err.Error(), "the option Hosts") {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// A provider of the program may bring its own way to connect, and keeps it.
func TestAProvidersOwnWayToConnectStays(t *testing.T) {
	own := errors.New("own")
	config := &rest.Config{Host: "https://a.test", Dial: func(context.Context, string, string) (net.Conn, error) { return nil, own }}
	must(t, terms{}.guard(config))
	if _, err := config.Dial(t.Context(), "tcp", "a.test:443"); !errors.Is(err, own) {
		t.Error(err)
	}
	if terms.guard(terms{}, &rest.Config{Host: "https://127.0.0.1", Transport: http.DefaultTransport}) == nil {
		t.Error("the address is not looked at")
	}
}

func TestAProfileSetsNoVariableThatChoosesCodeFilesOrAddresses(t *testing.T) {
	for _, name := range []string{
		"PATH", "Path", "LD_PRELOAD", "ld_library_path", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "IFS", "PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT",
		"NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "GODEBUG", "GIT_SSH_COMMAND", "OPENSSL_CONF", "GCONV_PATH", "GLIBC_TUNABLES",
		"HOME", "TMPDIR", "XDG_CONFIG_HOME", "KUBECONFIG", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG",
		"AZURE_CONFIG_DIR", "HTTPS_PROXY", "http_proxy", "ALL_PROXY", "NO_PROXY", "AWS_ENDPOINT_URL_STS", "AWS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"AZURE_AUTHORITY_HOST", "HOSTALIASES", "KUBERNETES_EXEC_INFO", "KUBERNETES_SERVICE_HOST", "CLOUDSDK_PYTHON", "CLOUDSDK_PYTHON_SITEPACKAGES",
		"CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER", "CLOUDSDK_PROXY_ADDRESS", "CLOUDSDK_AUTH_DISABLE_SSL_VALIDATION", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN", "GCE_METADATA_IP", "GCE_METADATA_ROOT", "VAULT_ADDR", "VAULT_SKIP_VERIFY", "SSLKEYLOGFILE",
		"CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", "HISTFILE", "INPUTRC", "TERMINFO", "TERMINFO_DIRS", "KRB5CCNAME", "ZDOTDIR", "FPATH", "LESSOPEN", "SUDO_ASKPASS",
		"CDPATH", "AWS_PAGER", "AWS_ROLE_PROFILE_FILE", "CLOUDSDK_CORE_UNIVERSE_DOMAIN", "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "VAULT_CACERT", "VAULT_TLS_SERVER_NAME",
		"AWS_STS_REGIONAL_ENDPOINTS", "NETRC", "PROMPT_COMMAND", "CLASSPATH", "TMPDIR", "USERPROFILE", "SOCKS_SERVER", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "PROFILE_URL",
		"", "A=B", "LD_PRELOAD=/x", "A B", "A\x00", "1A", "\u202eA", "A\nB",
	} {
		err := checkEnv(map[string]string{"FINE": "x", name: "x"})
		if err == nil || !strings.Contains(err.Error(), "source.EnvPolicy") || strings.ContainsAny(err.Error(), "\x00\n\u202e") {
			t.Errorf("%q: %v", name, err)
		}
		u := profile("a", "accessProviders", map[string]any{"third": server("https://a", "extensions", []any{extension(profileEnv, map[string]any{name: "x"})})})
		p := &profiles{ProfileOptions: ProfileOptions{Providers: providers}}
		if _, err := p.connect(u); err == nil {
			t.Errorf("%q is set", name)
		}
	}
	if checkEnv(map[string]string{"A": "x\x00LD_PRELOAD=/x"}) == nil {
		t.Error("a value with a zero byte")
	}
	for _, name := range []string{
		"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_SECURITY_TOKEN", "CLOUDSDK_CORE_PROJECT",
		"CLOUDSDK_CORE_ACCOUNT", "CLOUDSDK_COMPUTE_ZONE", "CLOUDSDK_ACTIVE_CONFIG_NAME", "GOOGLE_CLOUD_PROJECT", "USE_GKE_GCLOUD_AUTH_PLUGIN", "AZURE_TENANT_ID",
		"AZURE_CLIENT_ID", "AZURE_SUBSCRIPTION_ID", "AAD_LOGIN_METHOD", "VAULT_NAMESPACE", "CLUSTER", "CLUSTER_NAME", "LANG", "a1",
	} {
		if err := checkEnv(map[string]string{name: "x"}); err != nil {
			t.Error(err)
		}
	}
	ignored := providers[0]
	c, err := ignored.connect(server("https://a", "extensions", []any{extension(profileEnv, map[string]any{"PATH": "x"})}), terms{})
	if err != nil {
		t.Errorf("a variable that is ignored is refused: %v", err)
	}
	if set := c.config.ExecProvider.Env; len(set) > 0 {
		t.Errorf("variables that are ignored are set: %v", set)
	}
}
