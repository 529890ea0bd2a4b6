package source

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var fluxKinds = katestest.WithKinds(
	katestest.Kind{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization"},
	katestest.Kind{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease"})

// fluxObject returns a Kustomization or a HelmRelease that deploys to a cluster.
func fluxObject(kind, name string, kubeConfig map[string]any) *kates.Unstructured {
	apiVersion := "kustomize.toolkit.fluxcd.io/v1"
	if kind == "HelmRelease" {
		apiVersion = "helm.toolkit.fluxcd.io/v2"
	}
	u := &kates.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": map[string]any{"interval": "1m"}}}
	u.SetNamespace("x")
	u.SetName(name)
	if kubeConfig != nil {
		u.Object["spec"].(map[string]any)["kubeConfig"] = kubeConfig
	}
	return u
}

func secretRef(name, key string) map[string]any {
	ref := map[string]any{"name": name}
	if key != "" {
		ref["key"] = key
	}
	return map[string]any{"secretRef": ref}
}

func configMapRef(name string) map[string]any {
	return map[string]any{"configMapRef": map[string]any{"name": name}}
}

func newFlux(t *testing.T, objects ...kates.Object) *katestest.Fake {
	t.Helper()
	return katestest.New(t, fluxKinds, katestest.WithObjects(objects...), katestest.WithClientOptions(kates.WithInterval(0)))
}

func TestWhatFluxNamesAreClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labels := map[string]string{"tier": "prod"}
		home := newFlux(t,
			fluxObject("Kustomization", "here", nil),
			fluxObject("Kustomization", "a1", secretRef("a", "")), fluxObject("Kustomization", "a2", secretRef("a", "value")),
			fluxObject("Kustomization", "a3", secretRef("a", "other")),
			fluxObject("HelmRelease", "b", secretRef("b", "")), fluxObject("HelmRelease", "c", secretRef("c", "")),
			fluxObject("HelmRelease", "d", secretRef("d", "missing")), fluxObject("HelmRelease", "e", secretRef("e", "")),
			fluxObject("HelmRelease", "f", secretRef("f", "")),
			secret("x", "a", labels, map[string]string{"value": kubeconfigText(t, "https://a"), "value.yaml": canary, "other": kubeconfigText(t, "https://other")}),
			secret("x", "b", labels, map[string]string{"value.yaml": kubeconfigText(t, "https://b")}),
			secret("x", "c", labels, map[string]string{"kubeconfig": kubeconfigText(t, "https://c")}),
			secret("x", "d", labels, map[string]string{"value": kubeconfigText(t, "https://d")}),
			secret("x", "f", labels, map[string]string{"value": kubeconfigText(t, "https://f", exec("no-such-program"))}),
			secret("x", "unnamed", labels, map[string]string{"value": kubeconfigText(t, "https://unnamed")}))
		r := run(t, Flux(home.Client, FluxOptions{}))
		synctest.Wait()
		r.is(t, "x/a/other=https://other", "x/a=https://a", "x/b=https://b", "x/c!", "x/d/missing!", "x/e!", "x/f!")
		if r.member(t, "x/a").Labels["tier"] != "prod" {
			t.Error("the labels of the Secret are missing")
		}
		for name, want := range map[string]string{"x/c": `under any of ["value" "value.yaml"]`, "x/d/missing": `"missing"`, "x/e": "does not exist", "x/f": "source.AllowExec"} {
			if err := r.member(t, name).Err.Error(); !strings.Contains(err, want) || !strings.Contains(err, "Secret x/") {
				t.Errorf("%s: %s", name, err)
			}
		}
		must(t, home.Client.Create(t.Context(), secret("x", "e", nil, map[string]string{"value": kubeconfigText(t, "https://e")}), nil))
		must(t, home.Client.Delete(t.Context(), fluxObject("HelmRelease", "b", nil), nil))
		must(t, home.Client.Delete(t.Context(), fluxObject("Kustomization", "a1", nil), nil))
		must(t, home.Client.Update(t.Context(), fluxObject("Kustomization", "here", secretRef("unnamed", "")), nil))
		time.Sleep(time.Second)
		synctest.Wait()
		r.is(t, "x/a/other=https://other", "x/a=https://a", "x/c!", "x/d/missing!", "x/e=https://e", "x/f!", "x/unnamed=https://unnamed")
	})
}

func TestAConfigMapThatFluxNamesNeedsALoginOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		configMap := func(name string, data map[string]string) *kates.ConfigMap {
			c := &kates.ConfigMap{Data: data}
			c.Namespace, c.Name, c.Labels = "x", name, map[string]string{"tier": name}
			return c
		}
		home := newFlux(t,
			fluxObject("Kustomization", "a", configMapRef("a")), fluxObject("Kustomization", "b", configMapRef("b")),
			fluxObject("Kustomization", "c", configMapRef("c")), fluxObject("Kustomization", "d", configMapRef("d")),
			fluxObject("Kustomization", "e", configMapRef("e")), fluxObject("Kustomization", "f", configMapRef("a-secret")),
			fluxObject("HelmRelease", "f", secretRef("a-secret", "")),
			configMap("a", map[string]string{"provider": "generic", "address": "https://a", "ca.crt": "ca", "audiences": "- x\n- z\n", "serviceAccountName": "s", "cluster": "z"}),
			configMap("b", map[string]string{"provider": "aws", "cluster": "arn"}),
			configMap("c", map[string]string{"provider": "generic", "audiences": "{" + canary}),
			configMap("d", map[string]string{"provider": "panics"}),
			configMap("a-secret", map[string]string{"provider": "generic", "address": "https://b"}),
			secret("x", "a-secret", nil, map[string]string{"value": kubeconfigText(t, "https://secret")}))
		var seen FluxCluster
		r := run(t, Flux(home.Client, FluxOptions{Providers: map[string]func(FluxCluster) (*rest.Config, error){
			"generic": func(c FluxCluster) (*rest.Config, error) {
				if c.Name == "a" {
					seen = c
				}
				return &rest.Config{Host: c.Address}, nil
			},
			"panics": func(FluxCluster) (*rest.Config, error) { panic("broken") },
		}}))
		synctest.Wait()
		r.is(t, "x/a-secret!", "x/a-secret=https://secret", "x/a=https://a", "x/b!", "x/c!", "x/d!", "x/e!")
		if seen.Namespace != "x" || seen.CA != "ca" || seen.Cluster != "z" || seen.ServiceAccountName != "s" || strings.Join(seen.Audiences, ",") != "x,z" {
			t.Errorf("%+v", seen)
		}
		if err := r.member(t, "x/b").Err.Error(); !strings.Contains(err, `"aws"`) || !strings.Contains(err, "FluxOptions.Providers") {
			t.Error(err)
		}
		a := r.member(t, "x/a")
		must(t, home.Client.Update(t.Context(), configMap("a", map[string]string{"provider": "generic", "address": "https://new"}), nil))
		time.Sleep(time.Second)
		synctest.Wait()
		if now := r.member(t, "x/a"); now.Version == a.Version || now.Config.Host != "https://new" || now.Labels["tier"] != "a" {
			t.Errorf("%+v", now)
		}
	})
}

// A kind that is not installed is empty. One that may not be read is not, and that is said.
func TestAKindThatFluxMayNotReadIsNotEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := newFlux(t, fluxObject("Kustomization", "a", secretRef("a", "")),
			secret("x", "a", nil, map[string]string{"value": kubeconfigText(t, "https://a")}))
		refused := true
		for _, verb := range []string{"list", "watch"} {
			home.Dynamic.PrependReactor(verb, "helmreleases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return refused, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "helmreleases"}, "", errors.New("no rights"))
			})
		}
		r := run(t, Flux(home.Client, FluxOptions{}))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if r.sets() != 0 || !strings.Contains(r.trouble(), "no rights") {
			t.Errorf("it has said something %d times; trouble: %q", r.sets(), r.trouble())
		}
		home.Dynamic.Lock()
		refused = false
		home.Dynamic.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if r.is(t, "x/a=https://a"); r.trouble() != "" {
			t.Error(r.trouble())
		}
	})
}

func TestFluxIsOptional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := newHome(t)
		r, p := run(t, Flux(home.Client, FluxOptions{})), run(t, ClusterProfiles(home.Client, ProfileOptions{}))
		time.Sleep(time.Minute)
		synctest.Wait()
		r.is(t)
		p.is(t)
		if r.trouble()+p.trouble() != "" {
			t.Error(r.trouble(), p.trouble())
		}
	})
}

// Other fields of Flux's objects are not held.
func TestOfFluxsObjectsOnlyWhatNamesAClusterIsHeld(t *testing.T) {
	o := fluxObject("HelmRelease", "a", secretRef("a", ""))
	o.Object["spec"].(map[string]any)["values"] = map[string]any{"password": canary}
	o.Object["status"] = canary
	must(t, stripFluxObject(o))
	if text, err := o.MarshalJSON(); err != nil || strings.Contains(string(text), canary) || refOf(o).cluster() != "x/a" {
		t.Errorf("%s %v", text, err)
	}
}
