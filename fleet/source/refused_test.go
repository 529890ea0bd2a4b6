package source

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// definition returns a custom kind that takes any content.
func definition(group, version, kind, plural string) *kates.Unstructured {
	u := &kates.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}
	u.SetName(plural + "." + group)
	return u
}

// TestWhatWasHeldBackIsSaidWhenAKindThatWasRefusedIsServedNoMore: the snapshot does not change by
// that, the state of the kind alone does.
func TestWhatWasHeldBackIsSaidWhenAKindThatWasRefusedIsServedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		releases := definition("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
		server := katestest.NewServer(t, katestest.WithObjects(
			releases, definition("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations"),
			fluxObject("Kustomization", "a", secretRef("a", "")),
			secret("x", "a", nil, map[string]string{"value": kubeconfigText(t, "https://a")})))
		faults := katestest.NewFaults(t, 1)
		config := rest.CopyConfig(server.Config)
		config.Wrap(faults.Wrap)
		client, err := kates.NewClientFromRESTConfig(config, kates.WithInterval(0))
		must(t, err)
		t.Cleanup(client.Close)
		faults.On(katestest.Match{Resource: "helmreleases"}).Status(http.StatusForbidden, "", 0)
		r := run(t, Flux(client, FluxOptions{}))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if r.sets() != 0 || !strings.Contains(r.trouble(), "forbidden") {
			t.Fatalf("it has said something %d times; trouble: %q", r.sets(), r.trouble())
		}
		must(t, server.Client(t).Delete(t.Context(), releases, nil))
		faults.Heal()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		r.is(t, "x/a=https://a")
		if r.trouble() != "" {
			t.Error(r.trouble())
		}
	})
}
