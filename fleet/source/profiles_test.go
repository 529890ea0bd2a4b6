package source

import (
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// profile returns a ClusterProfile with access providers, by name.
func profile(name, field string, providers map[string]any) *kates.Unstructured {
	var list []any
	for provider, cluster := range providers {
		list = append(list, map[string]any{"name": provider, "cluster": cluster})
	}
	u := &kates.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"spec":   map[string]any{"clusterManager": map[string]any{"name": "m"}},
		"status": map[string]any{field: list},
	}}
	u.SetNamespace("x")
	u.SetName(name)
	u.SetLabels(map[string]string{"x-k8s.io/cluster-manager": "m"})
	return u
}

func server(address string, more ...any) map[string]any {
	cluster := map[string]any{"server": address, "certificate-authority-data": "Y2E="}
	for i := 0; i < len(more); i += 2 {
		cluster[more[i].(string)] = more[i+1]
	}
	return cluster
}

func extension(name string, content any) map[string]any {
	return map[string]any{"name": name, "extension": content}
}

var providers = []AccessProvider{
	{Name: "first", Exec: clientcmdapi.ExecConfig{Command: "first", APIVersion: "client.authentication.k8s.io/v1"}},
	{Name: "second", Args: true, Env: EnvAppendIfNotExists, Exec: clientcmdapi.ExecConfig{
		Command: "second", APIVersion: "client.authentication.k8s.io/v1", Args: []string{"own"}, ProvideClusterInfo: true,
		Env: []clientcmdapi.ExecEnvVar{{Name: "A", Value: "own"}},
	}},
	{Name: "third", Env: EnvReplace, Exec: clientcmdapi.ExecConfig{
		Command: "third", APIVersion: "client.authentication.k8s.io/v1", Env: []clientcmdapi.ExecEnvVar{{Name: "A", Value: "own"}},
	}},
}

func TestClusterProfilesAreClusters(t *testing.T) {
	extensions := []any{
		extension("client.authentication.k8s.io/exec", map[string]any{"clusterName": "c"}),
		extension(profileArgs, []any{"--more"}), extension(profileEnv, map[string]any{"A": "profile", "B": "profile"}),
	}
	synctest.Test(t, func(t *testing.T) {
		home := katestest.New(t, katestest.WithClientOptions(kates.WithInterval(0)), katestest.WithObjects(
			profile("a", "accessProviders", map[string]any{"first": server("https://a1"), "second": server("https://a2")}),
			profile("b", "credentialProviders", map[string]any{"second": server("https://b", "extensions", extensions)}),
			profile("c", "accessProviders", map[string]any{"third": server("https://c", "extensions", extensions)}),
			profile("d", "accessProviders", map[string]any{"unknown": server("https://d")}),
			profile("e", "other", nil),
			profile("f", "accessProviders", map[string]any{"first": server("https://f", "certificate-authority", "/etc/passwd")}),
			profile("g", "accessProviders", map[string]any{"first": server("https://g", "proxy-url", "http://p")}),
			profile("h", "accessProviders", map[string]any{"first": map[string]any{"server": int64(1), "x": canary}}),
			profile("i", "accessProviders", map[string]any{"second": server("https://i", "extensions", []any{extension(profileArgs, canary)})}),
		))
		r := run(t, ClusterProfiles(home.Client, ProfileOptions{Providers: providers}))
		synctest.Wait()
		r.is(t, "x/a=https://a1", "x/b=https://b", "x/c=https://c", "x/d!", "x/e!", "x/f!", "x/g!", "x/h!", "x/i!")
		for name, want := range map[string]string{"x/d": "(unknown)", "x/e": "no access provider", "x/f": "source.AllowFiles", "x/g": "source.AllowProxy"} {
			if err := r.member(t, name).Err.Error(); !strings.Contains(err, want) {
				t.Errorf("%s: %s", name, err)
			}
		}
		a := r.member(t, "x/a")
		if e := a.Config.ExecProvider; e.Command != "first" || string(a.Config.CAData) != "ca" || a.Labels["x-k8s.io/cluster-manager"] != "m" {
			t.Errorf("%+v %v", a, e)
		}
		b := r.member(t, "x/b").Config.ExecProvider
		if strings.Join(b.Args, " ") != "own --more" || env(b) != "A=own B=profile" || b.InteractiveMode != clientcmdapi.NeverExecInteractiveMode {
			t.Errorf("%v", b)
		}
		if info, ok := b.Config.(*runtime.Unknown); !ok || string(info.Raw) != `{"clusterName":"c"}` {
			t.Errorf("the plugin gets %v", b.Config)
		}
		if c := r.member(t, "x/c").Config.ExecProvider; len(c.Args) != 0 || env(c) != "A=profile B=profile" {
			t.Errorf("%v %s", c, env(c))
		}
		must(t, home.Client.Update(t.Context(), profile("a", "accessProviders", map[string]any{"first": server("https://new")}), nil))
		must(t, home.Client.Delete(t.Context(), profile("b", "", nil), nil))
		synctest.Wait()
		if now := r.member(t, "x/a"); now.Version == a.Version || now.Config.Host != "https://new" {
			t.Errorf("%+v", now)
		}
		r.is(t, "x/a=https://new", "x/c=https://c", "x/d!", "x/e!", "x/f!", "x/g!", "x/h!", "x/i!")
	})
	if len(providers[1].Exec.Args) != 1 || len(providers[1].Exec.Env) != 1 {
		t.Error("the program's own options have changed")
	}
}

// env returns a plugin's variables as one text.
func env(e *clientcmdapi.ExecConfig) string {
	var all []string
	for _, v := range e.Env {
		all = append(all, v.Name+"="+v.Value)
	}
	return strings.Join(all, " ")
}

func TestProvidersThatMakeNoSenseAreErrorsOfTheSource(t *testing.T) {
	home := newHome(t)
	for _, p := range []AccessProvider{{}, {Name: "x"}, {Name: "x", Exec: providers[0].Exec, Env: "Other"}} {
		if (runnable{ClusterProfiles(home.Client, ProfileOptions{Providers: []AccessProvider{p}}).Run}).Run(t) == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}
