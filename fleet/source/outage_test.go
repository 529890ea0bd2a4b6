package source

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// failing makes a fake fail: its open watches end, and reads are refused.
type failing struct {
	mu   sync.Mutex
	why  error
	open []watch.Interface
	// compacted: the next watch of each of these is told that its version has expired. The fake
	// does not know what has happened meanwhile.
	watched, compacted map[schema.GroupVersionResource]bool
}

func newFailing(home *katestest.Fake) *failing {
	f := &failing{watched: make(map[schema.GroupVersionResource]bool)}
	tracker := home.Dynamic.Tracker()
	home.Dynamic.Lock() // it may be in use; PrependWatchReactor takes the lock itself
	for _, verb := range []string{"get", "list"} {
		home.Dynamic.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.why != nil, nil, f.why
		})
	}
	home.Dynamic.Unlock()
	home.Dynamic.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.why != nil {
			return true, nil, f.why
		}
		if f.compacted[a.GetResource()] {
			delete(f.compacted, a.GetResource())
			return true, nil, apierrors.NewResourceExpired("compacted")
		}
		w, err := tracker.Watch(a.GetResource(), a.GetNamespace())
		f.open, f.watched[a.GetResource()] = append(f.open, w), true
		return true, w, err
	})
	return f
}

// because has everything fail from now on, for a reason; nil: no more.
func (f *failing) because(why error) {
	f.mu.Lock()
	f.why = why
	open := f.open
	f.open, f.compacted = nil, maps.Clone(f.watched)
	f.mu.Unlock()
	for _, w := range open {
		w.Stop()
	}
}

// homes are sources of two clusters, x/a and x/b. gone is what names x/b.
var homes = map[string]func(t *testing.T) (home *katestest.Fake, s fleet.Source, gone kates.Object){
	"Secrets": func(t *testing.T) (*katestest.Fake, fleet.Source, kates.Object) {
		b := secret("x", "b", plainLabel, map[string]string{"kubeconfig": kubeconfigText(t, "https://127.0.0.1:2")})
		home := newHome(t, b, secret("x", "a", plainLabel, map[string]string{"kubeconfig": kubeconfigText(t, "https://127.0.0.1:1")}))
		return home, Secrets(home.Client, SecretOptions{Hosts: loopback}), b
	},
	"Flux": func(t *testing.T) (*katestest.Fake, fleet.Source, kates.Object) {
		b := fluxObject("HelmRelease", "b", secretRef("b", ""))
		home := newFlux(t, fluxObject("Kustomization", "a", secretRef("a", "")), b,
			secret("x", "a", nil, map[string]string{"value": kubeconfigText(t, "https://127.0.0.1:1")}),
			secret("x", "b", nil, map[string]string{"value": kubeconfigText(t, "https://127.0.0.1:2")}))
		return home, Flux(home.Client, FluxOptions{Hosts: loopback}), b
	},
	"ClusterProfiles": func(t *testing.T) (*katestest.Fake, fleet.Source, kates.Object) {
		b := profile("b", "accessProviders", map[string]any{"first": server("https://127.0.0.1:2")})
		home := katestest.New(t, katestest.WithClientOptions(kates.WithInterval(0)), katestest.WithObjects(b,
			profile("a", "accessProviders", map[string]any{"first": server("https://127.0.0.1:1")})))
		return home, ClusterProfiles(home.Client, ProfileOptions{Providers: providers, Hosts: loopback}), b
	},
}

// The home cluster fails, or refuses, after clusters have joined. They stay, the status of the
// source says why, and what has left meanwhile leaves when the home cluster is well again.
func TestClustersStayWhileTheHomeClusterFails(t *testing.T) {
	for name, why := range map[string]error{
		"outage":  errors.New("connection refused"),
		"refusal": apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no rights")),
	} {
		for kind, newSource := range homes {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					home, s, gone := newSource(t)
					faults := newFailing(home)
					r := run(t, s)
					synctest.Wait()
					both := []string{"x/a=https://127.0.0.1:1", "x/b=https://127.0.0.1:2"}
					r.is(t, both...)
					faults.because(why)
					must(t, home.Dynamic.Tracker().Delete(resourceOf(t, home, gone), gone.GetNamespace(), gone.GetName()))
					for range 10 {
						time.Sleep(time.Minute)
						synctest.Wait()
						r.is(t, both...)
						if got := r.trouble(); !strings.Contains(got, why.Error()) {
							t.Fatalf("it says of its trouble: %q", got)
						}
					}
					faults.because(nil)
					time.Sleep(10 * time.Minute)
					synctest.Wait()
					if r.is(t, both[0]); r.trouble() != "" {
						t.Error(r.trouble())
					}
				})
			})
		}
	}
}

func resourceOf(t *testing.T, home *katestest.Fake, o kates.Object) schema.GroupVersionResource {
	t.Helper()
	kind := "Secret"
	if u, ok := o.(*kates.Unstructured); ok {
		kind = u.GetKind()
	}
	m, err := home.Client.Mapping(t.Context(), kind)
	must(t, err)
	return m.Resource
}
