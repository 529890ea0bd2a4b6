package source

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

type edit = func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)

func exec(command string) edit {
	return func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		u.Token = ""
		u.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: command, InteractiveMode: "IfAvailable"}
	}
}

// A kubeconfig that comes from a cluster must not run programs or read files here. What allows it
// is in the error.
func TestWhatAKubeconfigMayNotDoIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit  edit
		what  string
		by    string
		allow Allow
	}{
		"exec": {exec("no-such-program"), "(exec)", "source.AllowExec", AllowExec},
		"auth-provider": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{"id-token": canary}}
		}, "(auth-provider)", "source.AllowExec", AllowExec},
		"tokenFile": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = path }, "(tokenFile)", "source.AllowFiles", AllowFiles},
		"client-certificate": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificate, u.ClientKeyData, u.Token = path, []byte("x"), ""
		}, "(client-certificate)", "source.AllowFiles", AllowFiles},
		"client-key": {func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientKey, u.ClientCertificateData, u.Token = path, []byte("x"), ""
		}, "(client-key)", "source.AllowFiles", AllowFiles},
		"certificate-authority": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthority = path }, "(certificate-authority)", "source.AllowFiles", AllowFiles},
		"proxy-url": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.ProxyURL = "http://" + canary + ":" + canary + "@proxy"
		}, "(proxy-url)", "source.AllowProxy", AllowProxy},
		"insecure": {func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.InsecureSkipTLSVerify = true }, "(insecure-skip-tls-verify)", "source.AllowInsecure", AllowInsecure},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(kubeconfigText(t, "https://a", c.edit))
			for _, allow := range []Allow{0, allowEverything &^ c.allow} {
				config, _, err := fromText(text, "", terms{Allow: allow})
				if err == nil || config != nil {
					t.Fatalf("%v is accepted", config)
				}
				for _, want := range []string{"refused", c.what, c.by} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q: %v", want, err)
					}
				}
				if strings.Contains(err.Error(), canary) {
					t.Errorf("the error quotes a credential: %v", err)
				}
			}
			for _, allow := range []Allow{c.allow, allowEverything} {
				config, version, err := fromText(text, "", terms{Allow: allow})
				if err != nil || config.Host != "https://a" || version == "" {
					t.Errorf("allowed: %v %v", config, err)
				}
			}
		})
	}
}

// Only the current context is used, so nothing else is judged.
func TestWhatIsNotUsedIsNotRefused(t *testing.T) {
	parsed, err := parseKubeconfig([]byte(kubeconfigText(t, "https://a")), "")
	if err != nil {
		t.Fatal(err)
	}
	parsed.AuthInfos["other"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "no-such-program"}}
	if _, err := connectionOf(parsed, parsed.CurrentContext, terms{}); err != nil {
		t.Error(err)
	}
}

func TestAProgramOfAForeignKubeconfigHasNoTerminal(t *testing.T) {
	text := []byte(kubeconfigText(t, "https://a", exec("no-such-program")))
	config, _, err := fromText(text, "", terms{Allow: AllowExec})
	if err != nil || config.ExecProvider.InteractiveMode != clientcmdapi.NeverExecInteractiveMode {
		t.Errorf("%v %v", config, err)
	}
	config, _, err = fromText(text, "", terms{Allow: allowEverything})
	if err != nil || config.ExecProvider.InteractiveMode != clientcmdapi.IfAvailableExecInteractiveMode {
		t.Errorf("this machine's own: %v %v", config, err)
	}
}

func TestABrokenKubeconfigIsNotQuoted(t *testing.T) {
	whole := kubeconfigText(t, "https://a")
	asJSON, err := json.Marshal(map[string]any{"kind": "Config", "users": canary})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{
		"empty": "", "blank": " \n", "no kubeconfig": canary, "a list": "- " + canary, "wrong types": "apiVersion: v1\nkind: Config\nusers: " + canary + "\n",
		"json": string(asJSON), "half json": string(asJSON[:len(asJSON)-2]), "another kind": "apiVersion: v1\nkind: " + canary,
		"a tab":            "apiVersion: v1\nkind: Config\n\tusers: " + canary,
		"no base64":        strings.Replace(whole, "token:", "client-certificate-data: "+canary+"!\n    token:", 1),
		"no context":       strings.Replace(whole, "current-context: a-context", "current-context: \"\"", 1),
		"another context":  strings.Replace(whole, "current-context: a-context", "current-context: "+canary, 1),
		"another cluster":  strings.Replace(whole, "cluster: a-cluster", "cluster: "+canary, 1),
		"another user":     strings.Replace(whole, "user: a-user", "user: "+canary, 1),
		"no server":        kubeconfigText(t, ""),
		"a wrong server":   kubeconfigText(t, "https://"+canary+"%zz"),
		"a server of none": kubeconfigText(t, "ftp://"+canary),
		"a password":       kubeconfigText(t, "https://me:"+canary+"@a"),
		"a wrong proxy":    kubeconfigText(t, "https://a", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.ProxyURL = "ftp://me:" + canary + "@a" }),
		"two credentials":  kubeconfigText(t, "https://a", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Username, u.Password = canary, canary }),
		"no key":           kubeconfigText(t, "https://a", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificateData = []byte(canary) }),
		"an interactive program": kubeconfigText(t, "https://a", exec("x"), func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec.InteractiveMode, u.Exec.APIVersion = canary, ""
		}),
	}
	for n := range whole {
		if n%7 == 0 && n < len(whole)-len("token: "+canary+"-token\n") {
			texts["cut at "+whole[:n]] = whole[:n]
		}
	}
	for name, text := range texts {
		for _, allow := range []Allow{0, AllowExec | AllowProxy} {
			config, version, err := fromText([]byte(text), "", terms{Allow: allow})
			if err == nil {
				t.Errorf("%s: accepted: %v %s", name, config, version)
			} else if strings.Contains(err.Error(), canary) {
				t.Errorf("%s: the error quotes the text: %v", name, err)
			}
		}
	}
}

// client-go takes what is no URL for the name of a server, and connects to it without TLS.
func TestAnAddressThatLacksASlashIsRefusedAndIsNotAServerCalledHTTPS(t *testing.T) {
	for _, address := range []string{
		"https:/", "https:", "HTTPS:/", "http:/", "https:443", "https:/me:" + canary + "@a", "https://https://a", "a/b", "://a", "//a",
	} {
		cluster := clientcmdapi.NewCluster()
		cluster.Server = address
		c, err := connect(cluster, clientcmdapi.NewAuthInfo(), ownTerms)
		if err == nil {
			t.Errorf("%q is reached by %q", address, c.config.Host)
		} else if !strings.Contains(err.Error(), "is no address") || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"a", "a:6443", "http://a", "HTTPS://a", "https://a:6443/prefix", "[::1]:6443", "https.ns.svc"} {
		if err := checkAddress("server", address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestAUserWithoutCredentialsIsRefusedHoweverTheServerOfTLSIsWritten(t *testing.T) {
	anonymous := func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		u.Token, c.CertificateAuthorityData = "", []byte("ca")
	}
	for _, address := range []string{"https://a", "HTTPS://a", "a", "a:6443"} {
		_, _, err := fromText([]byte(kubeconfigText(t, address, anonymous)), "", terms{})
		if err == nil || !strings.Contains(err.Error(), "has no credentials") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, _, err := fromText([]byte(kubeconfigText(t, "http://a", anonymous)), "", terms{}); err != nil {
		t.Error("without TLS no credentials are sent: ", err)
	}
}

func TestAVersionIsThatOfTheConfigurationAlone(t *testing.T) {
	version := func(text string) string {
		_, version, err := fromText([]byte(text), "", terms{})
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	text := kubeconfigText(t, "https://a")
	same := map[string]string{
		"other names":     strings.NewReplacer("a-cluster", "b", "a-user", "c", "a-context", "d").Replace(text),
		"another comment": "# " + canary + "\n" + text,
		"a namespace":     strings.Replace(text, "    user: a-user", "    user: a-user\n    namespace: x", 1),
	}
	for name, other := range same {
		if other == text || version(other) != version(text) {
			t.Errorf("%s: another version", name)
		}
	}
	for _, other := range []string{kubeconfigText(t, "https://b"), kubeconfigText(t, "https://a", token("other"))} {
		if version(other) == version(text) {
			t.Errorf("one version for two configurations: %s", other)
		}
	}
	if strings.Contains(version(text), canary) {
		t.Error("the version has the credential")
	}
}

func TestAValueOfAWrongFormIsNamedAndNotQuoted(t *testing.T) {
	const begin = "apiVersion: v1\nkind: Config\n"
	for text, want := range map[string]string{
		begin + "users: [{name: a, user: {token: 1234567}}]":                                    "the kubeconfig does not parse: users[0].user.token is a number, want a string: put it in quotes",
		begin + "users: [{name: a, user: {token: \"1\"}}, {name: b, user: {token: on}}]":        "the kubeconfig does not parse: users[1].user.token is a boolean, want a string: YAML reads",
		begin + "clusters: [{name: a, cluster: {certificate-authority-data: " + canary + "!}}]": "clusters[0].cluster.certificate-authority-data is a string, want base64",
		begin + "users: [{name: a, user: {as-user-extra: {'" + canary + "\"]': 5}}}]":           "users[0].user.as-user-extra[…] is a number, want a list",
		begin + "users: {token: " + canary + "}":                                                "the kubeconfig does not parse: users is an object, want a list",
		begin + "users: [\n" + canary + ": " + canary + ": x":                                   "the kubeconfig does not parse (line ",
	} {
		_, err := parseKubeconfig([]byte(text), "")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "1234567") {
			t.Errorf("%v, not %q", err, want)
		}
	}
	for text, want := range map[string]string{
		`{"bearerToken": 1234567}`:                           "its config: bearerToken is a number, want a string",
		`{"tlsClientConfig": {"insecure": "true"}}`:          "its config: tlsClientConfig.insecure is a string, want a boolean",
		`{"tlsClientConfig": {"caData": "` + canary + `!"}}`: "its config: tlsClientConfig.caData is a string, want base64",
		`{"bearerToken": "` + canary:                         "its config is no JSON",
		`["` + canary + `"]`:                                 "its config: it is a list, want an object",
	} {
		err := wrongConfig([]byte(text))
		if err.Error() != want {
			t.Errorf("%v, not %q", err, want)
		}
	}
}
