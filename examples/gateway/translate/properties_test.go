package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

func pick[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

// drawn is an Ingress of few hosts, paths, Services and Secrets, so that many are in conflict.
func drawn(t *rapid.T, n int) *networkingv1.Ingress {
	class := pick(t, "class", "ours", "ours", "ours", "other")
	in := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: &class}}
	in.APIVersion, in.Kind = "networking.k8s.io/v1", "Ingress"
	in.Namespace, in.Name = pick(t, "namespace", "prod", "dev"), fmt.Sprintf("in-%d", n)
	in.UID, in.ResourceVersion = types.UID(in.Name), "1"
	in.CreationTimestamp = metav1.Time{Time: born.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour)}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		rule := networkingv1.IngressRule{Host: pick(t, "host", "", "a.example.com", "b.example.com", "*.example.com")}
		rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
		for range rapid.IntRange(1, 3).Draw(t, "paths") {
			kind := pick(t, "type", networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)
			rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{
				Path: pick(t, "path", "/", "/a", "/a/", "/a/b"), PathType: &kind, Backend: *backendOf(pick(t, "service", "web", "api", "none")),
			})
		}
		in.Spec.Rules = append(in.Spec.Rules, rule)
	}
	if len(in.Spec.Rules) == 0 || rapid.Bool().Draw(t, "default") {
		in.Spec.DefaultBackend = backendOf(pick(t, "service", "web", "api"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "tls") {
		in.Spec.TLS = append(in.Spec.TLS, networkingv1.IngressTLS{
			SecretName: pick(t, "secret", "one", "two", "none", ""),
			Hosts:      pick(t, "hosts", nil, []string{"a.example.com"}, []string{"b.example.com", "*.example.com"}),
		})
	}
	in.Annotations = map[string]string{}
	if rapid.Bool().Draw(t, "annotated") {
		in.Annotations[prefix+pick(t, "annotation", "canary-weight", "use-regex", "ssl-redirect", "timeout")] = pick(t, "value", "20", "90", "true", "false", "10s")
	}
	return in
}

func backendOf(service string) *networkingv1.IngressBackend {
	return &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}}}
}

// worldOf is a snapshot of drawn Ingresses. pairs are of the Secrets one and two.
func worldOf(t *rapid.T, pairs map[string][2][]byte) *Snapshot {
	snap := snapshotOf(t, ourClass, slice("web-1", `{addresses: [10.0.0.1]}`), slice("web-2", `{addresses: [10.0.0.2]}`))
	for _, s := range snap.Services {
		s = s.DeepCopy()
		s.Namespace = "dev"
		snap.Services = append(snap.Services, s)
	}
	for _, namespace := range []string{"dev", "prod"} {
		for _, called := range slices.Sorted(maps.Keys(pairs)) {
			s := secret(called, pairs[called][0], pairs[called][1])
			s.Namespace, s.UID = namespace, types.UID(namespace+called)
			snap.Secrets = append(snap.Secrets, s)
		}
	}
	for n := range rapid.IntRange(1, 6).Draw(t, "ingresses") {
		snap.Ingresses = append(snap.Ingresses, drawn(t, n))
	}
	return snap
}

func pairsOf(t require.TestingT) map[string][2][]byte {
	ca, pairs := newAuthority(t), map[string][2][]byte{}
	for _, called := range []string{"one", "two"} {
		chain, key := ca.issue(t, "a.example.com", "*.example.com")
		pairs[called] = [2][]byte{chain, key}
	}
	return pairs
}

func TestTheOrderOfObjectsDoesNotMatter(t *testing.T) {
	pairs := pairsOf(t)
	rapid.Check(t, func(t *rapid.T) {
		snap := worldOf(t, pairs)
		want := Translate(snap, Options{Published: []string{"192.0.2.1"}})
		other := *snap
		other.Ingresses = rapid.Permutation(snap.Ingresses).Draw(t, "ingresses")
		other.Slices = rapid.Permutation(snap.Slices).Draw(t, "slices")
		other.Classes = rapid.Permutation(snap.Classes).Draw(t, "classes")
		require.Equal(t, want, Translate(&other, Options{Published: []string{"192.0.2.1"}}))
	})
}

// broken is an Ingress with something wrong in each part of it, younger than all others.
func broken(t *rapid.T) *networkingv1.Ingress {
	in := drawn(t, 99)
	in.Name, in.UID = "bad", "bad"
	in.CreationTimestamp = metav1.Time{Time: born.AddDate(1, 0, 0)}
	for i := range in.Spec.TLS {
		in.Spec.TLS[i].SecretName = pick(t, "bad secret", "none", "")
	}
	for i := range in.Spec.Rules {
		in.Spec.Rules[i].Host = pick(t, "bad host", in.Spec.Rules[i].Host, "x;}", "A.example.com", "*")
		for k := range in.Spec.Rules[i].HTTP.Paths {
			p := &in.Spec.Rules[i].HTTP.Paths[k]
			p.Path = pick(t, "bad path", p.Path, "", "a", "/\n;")
			p.Backend = pick(t, "bad backend", p.Backend, *backendOf("none"), networkingv1.IngressBackend{
				Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "b"},
			})
		}
	}
	in.Annotations = map[string]string{}
	if key := pick(t, "bad annotation", "", "canary-weight", "use-regex", "timeout", "unknown"); key != "" {
		in.Annotations[prefix+key] = pick(t, "bad value", "101", "-1", "yes", "$host;}")
	}
	return in
}

func TestABadIngressChangesNothingOfTheOthers(t *testing.T) {
	pairs := pairsOf(t)
	rapid.Check(t, func(t *rapid.T) {
		snap := worldOf(t, pairs)
		before := Translate(snap, Options{})
		with := *snap
		with.Ingresses = append(slices.Clip(snap.Ingresses), broken(t))
		after := Translate(&with, Options{})

		servers := map[listener]nginx.Server{}
		for _, s := range after.Config.Servers {
			servers[listener{s.Address, s.Port, s.TLS, s.Host}] = s
		}
		for _, want := range before.Config.Servers {
			got := servers[listener{want.Address, want.Port, want.TLS, want.Host}]
			got.Locations = without(got.Locations, "bad")
			require.Equal(t, want, got)
		}
		for id, want := range before.Config.Upstreams {
			require.Equal(t, want, after.Config.Upstreams[id])
		}
		for id := range before.Config.Certificates { // which is a hash of the content
			require.True(t, after.Config.Certificates[id].Key != nil)
		}
		known := map[types.UID]Report{}
		for _, r := range before.Reports {
			known[r.Object.GetUID()] = r
		}
		for _, r := range after.Reports {
			if uid := r.Object.GetUID(); uid != "bad" {
				require.Equal(t, known[uid].Status, r.Status)
				// A certificate may have found a rule that it is for. What another namespace claims,
				// too, is told.
				fresh := slices.DeleteFunc(slices.Clone(r.Problems), func(p Problem) bool {
					return slices.Contains(known[uid].Problems, p) || strings.Contains(p.Reason+p.Message, "ertificate") || p.Reason == "Conflict"
				})
				require.Empty(t, fresh)
			}
		}
	})
}

// without returns locations without the rules of an object.
func without(all []nginx.Location, uid types.UID) (rest []nginx.Location) {
	for _, l := range all {
		l.Rules = slices.DeleteFunc(slices.Clone(l.Rules), func(r nginx.Rule) bool { return r.Source.UID == uid })
		if len(l.Rules) > 0 {
			rest = append(rest, l)
		}
	}
	return rest
}
