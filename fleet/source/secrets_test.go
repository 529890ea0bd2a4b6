package source

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var plainLabel = map[string]string{kubeconfigLabel: "true", "tier": "prod"}

func newHome(t *testing.T, objects ...kates.Object) *katestest.Fake {
	t.Helper()
	return katestest.New(t, katestest.WithObjects(objects...), katestest.WithClientOptions(kates.WithInterval(0)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecretsWithAKubeconfigAreClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := newHome(t,
			secret("x", "a", plainLabel, map[string]string{"kubeconfig": kubeconfigText(t, "https://a"), "other": canary}),
			secret("x", "b", map[string]string{"tier": "prod"}, map[string]string{"kubeconfig": kubeconfigText(t, "https://b")}),
			secret("y", "c", plainLabel, map[string]string{"value": kubeconfigText(t, "https://c")}))
		r := run(t, Secrets(home.Client, SecretOptions{}))
		other := run(t, Secrets(home.Client, SecretOptions{LabelSelector: "tier=prod", Namespaces: []string{"x"}, Key: "kubeconfig",
			Name: func(s *kates.Secret) string { return strings.TrimPrefix(s.Name, "b") }}))
		synctest.Wait()
		r.is(t, "x/a=https://a", "y/c!")
		other.is(t, "a=https://a")
		a := r.member(t, "x/a")
		if a.Labels["tier"] != "prod" || a.Config.BearerToken != canary+"-token" || a.Version == "" {
			t.Errorf("%+v", a)
		}
		if err := r.member(t, "y/c").Err.Error(); !strings.Contains(err, "Secret y/c") || !strings.Contains(err, `"kubeconfig"`) {
			t.Error(err)
		}
		must(t, home.Client.Update(t.Context(), secret("x", "a", plainLabel, map[string]string{"kubeconfig": kubeconfigText(t, "https://a", token("new"))}), nil))
		must(t, home.Client.Create(t.Context(), secret("z", "d", plainLabel, map[string]string{"kubeconfig": canary}), nil))
		must(t, home.Client.Delete(t.Context(), secret("y", "c", nil, nil), nil))
		synctest.Wait()
		r.is(t, "x/a=https://a", "z/d!")
		if now := r.member(t, "x/a"); now.Version == a.Version || now.Config.BearerToken != "new" {
			t.Errorf("%+v", now)
		}
	})
}

func TestClusterAPIsKubeconfigsAreClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(cluster, suffix string) *kates.Secret {
			s := secret("x", cluster+suffix, map[string]string{clusterAPILabel: cluster}, map[string]string{"value": kubeconfigText(t, "https://"+cluster), "key": canary})
			s.Type = clusterAPIType
			return s
		}
		opaque := of("opaque", "-kubeconfig")
		opaque.Type = "Opaque"
		home := newHome(t, of("a", "-kubeconfig"), of("a", "-ca"), of("b", "-user-kubeconfig"), opaque)
		r := run(t, Secrets(home.Client, SecretOptions{Form: ClusterAPI}))
		synctest.Wait()
		r.is(t, "x/a=https://a")
		if name := r.source.String(); name != "Secrets of ClusterAPI" {
			t.Error(name)
		}
	})
}

func argoSecret(name, server, config string) *kates.Secret {
	data := map[string]string{"server": server, "config": config}
	if name != "" {
		data["name"] = name
	}
	return secret("argocd", "cluster-"+name, map[string]string{argoLabel: "cluster"}, data)
}

func TestASecretOfArgoCDWithoutLabelsIsACluster(t *testing.T) {
	secret := &kates.Secret{Data: map[string][]byte{"server": []byte("https://x"), "config": []byte(`{"bearerToken":"t"}`), "project": []byte("p")}}
	m := (&secrets{}).argo(secret)
	if m.Err != nil || m.Labels["argocd.argoproj.io/project"] != "p" || secret.Labels != nil {
		t.Fatalf("%+v of %+v", m, secret)
	}
}

func TestArgoCDsSecretsAreClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := argoSecret("limited", "https://limited", `{"username":"me","password":"`+canary+`"}`)
		limited.Data["project"], limited.Data["namespaces"] = []byte("shop"), []byte("a,b")
		home := newHome(t, limited,
			argoSecret("token", "https://token", `{"bearerToken":"`+canary+`","tlsClientConfig":{"serverName":"s","caData":"Y2E="}}`),
			argoSecret("cert", "https://cert", `{"tlsClientConfig":{"certData":"YQ==","keyData":"Yg=="}}`),
			argoSecret("", "https://unnamed", `{}`),
			argoSecret("broken", "https://broken", `{"bearerToken":{"`+canary+`":1}}`),
			argoSecret("cut", "https://cut", `{"bearerToken":"`+canary),
			argoSecret("aws", "https://aws", `{"awsAuthConfig":{"clusterName":"c","roleARN":"r","profile":"p"}}`),
			argoSecret("exec", "https://exec", `{"execProviderConfig":{"command":"`+canary+`","apiVersion":"client.authentication.k8s.io/v1","env":{"B":"2","A":"1"}}}`),
			argoSecret("proxy", "https://proxy", `{"proxyUrl":"http://me:`+canary+`@p"}`),
			argoSecret("insecure", "https://insecure", `{"tlsClientConfig":{"insecure":true}}`),
			argoSecret("here", argoHome, `{"tlsClientConfig":{"insecure":false}}`))
		r := run(t, Secrets(home.Client, SecretOptions{Form: ArgoCD}))
		all := run(t, Secrets(home.Client, SecretOptions{Form: ArgoCD, Allow: allowEverything}))
		synctest.Wait()
		r.is(t, "aws!", "broken!", "cert=https://cert", "cut!", "exec!", "here!", "https://unnamed=https://unnamed", "insecure!",
			"limited=https://limited", "proxy!", "token=https://token")
		all.is(t, "aws=https://aws", "broken!", "cert=https://cert", "cut!", "exec=https://exec", "here@",
			"https://unnamed=https://unnamed", "insecure=https://insecure", "limited=https://limited", "proxy=https://proxy", "token=https://token")
		if c := r.member(t, "token").Config; c.BearerToken != canary || c.ServerName != "s" || string(c.CAData) != "ca" {
			t.Errorf("%v", c)
		}
		if m := r.member(t, "limited"); m.Config.Username != "me" || m.Config.Password != canary ||
			m.Labels["argocd.argoproj.io/project"] != "shop" || m.Labels["argocd.argoproj.io/namespaces"] != "a,b" {
			t.Errorf("%v", m)
		}
		if c := all.member(t, "aws").Config.ExecProvider; strings.Join(append([]string{c.Command}, c.Args...), " ") !=
			"argocd-k8s-auth aws --cluster-name c --role-arn r --profile p" {
			t.Errorf("%v", c)
		}
		if c := all.member(t, "exec").Config.ExecProvider; c.Command != canary || len(c.Env) != 2 || c.Env[0].Name != "A" {
			t.Errorf("%v", c)
		}
		if all.member(t, "here").Client != home.Client {
			t.Error("the home cluster has another client")
		}
	})
}

// Of two that are there at first, the older counts.
func TestOfTwoSecretsForOneClusterTheOlderCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		older, younger := argoSecret("a", "https://127.0.0.1:1", "{}"), argoSecret("a", "https://127.0.0.1:2", "{}")
		older.Name, younger.Name = "z", "b"
		older.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		younger.CreationTimestamp = metav1.NewTime(time.Now())
		home := newHome(t, older, younger)
		r := run(t, Secrets(home.Client, SecretOptions{Form: ArgoCD, Hosts: loopback}))
		f := newFleet(t, Secrets(home.Client, SecretOptions{Form: ArgoCD, Hosts: loopback, Name: func(*kates.Secret) string { return "a" }}))
		synctest.Wait()
		r.is(t, "a!", "a=https://127.0.0.1:1")
		want := `cluster "a" is that of Secret argocd/z: Secret argocd/b names it too`
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the status of the fleet: %v", err)
		}
		must(t, home.Client.Delete(t.Context(), older, nil))
		synctest.Wait()
		r.is(t, "a=https://127.0.0.1:2")
	})
}

func TestASecretThatIsBeingDeletedIsNoCluster(t *testing.T) {
	s := secret("x", "a", plainLabel, map[string]string{"kubeconfig": kubeconfigText(t, "https://a")})
	made, err := newSecrets(&kates.Client{}, SecretOptions{})
	must(t, err)
	if got := list(made.members([]*kates.Secret{s})); len(got) != 1 {
		t.Fatal(got)
	}
	s.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if got := list(made.members([]*kates.Secret{s})); len(got) != 0 {
		t.Error(got)
	}
}

// Private keys of a cluster's authorities, for example, are in Secrets of the same labels.
func TestOnlyTheDataThatIsNeededIsHeld(t *testing.T) {
	for form, want := range map[SecretForm]string{Kubeconfigs: "kubeconfig", ClusterAPI: "", ArgoCD: "name"} {
		s := secret("x", "a", plainLabel, map[string]string{"kubeconfig": "k", "value": "v", "name": "n", "tls.key": canary})
		s.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": canary, "mine": "1"}
		made, err := newSecrets(&kates.Client{}, SecretOptions{Form: form})
		must(t, err)
		must(t, made.strip(s))
		var keys []string
		for key := range s.Data {
			keys = append(keys, key)
		}
		if strings.Join(keys, ",") != want || len(s.Annotations) != 1 {
			t.Errorf("%q: data %v, annotations %v are held", form, keys, s.Annotations)
		}
	}
}

func TestOptionsThatMakeNoSenseAreErrorsOfTheSource(t *testing.T) {
	home := newHome(t)
	for _, s := range []interface {
		Run(t *testing.T) error
	}{
		runnable{Secrets(home.Client, SecretOptions{Form: "other"}).Run},
		runnable{Secrets(home.Client, SecretOptions{Form: ArgoCD, Key: "x"}).Run},
		runnable{Secrets(home.Client, SecretOptions{LabelSelector: "a=b=c"}).Run},
		runnable{Secrets(nil, SecretOptions{}).Run},
	} {
		if s.Run(t) == nil {
			t.Error("accepted")
		}
	}
}

// In an outage of the home cluster, and without rights, nobody leaves, and the status says why.
func TestTroubleOfTheHomeClusterRemovesNothingAndIsShown(t *testing.T) {
	for name, fault := range map[string]error{
		"outage":  errors.New("connection refused"),
		"missing": apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no rights")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				home := newHome(t, argoSecret("a", argoHome, ""))
				down := true
				for _, verb := range []string{"list", "watch"} {
					home.Dynamic.PrependReactor(verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
						return down, nil, fault
					})
				}
				f := newFleet(t, Secrets(home.Client, SecretOptions{Form: ArgoCD, Allow: AllowHome}))
				time.Sleep(15 * time.Second)
				synctest.Wait()
				if err := f.Ready(); err == nil || !strings.Contains(err.Error(), fault.Error()) {
					t.Errorf("ready: %v", err)
				}
				if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), fault.Error()) {
					t.Errorf("the status: %v", err)
				}
				home.Dynamic.Lock()
				down = false
				home.Dynamic.Unlock()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if f.Ready() != nil || f.Cluster("a") == nil || f.Status().Sources[0].Error != "" {
					t.Error(f.Status())
				}
			})
		})
	}
}
