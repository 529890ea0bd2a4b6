package kates_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func ingress(namespace, name string, secrets ...string) *networkingv1.Ingress {
	in := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, s := range secrets {
		in.Spec.TLS = append(in.Spec.TLS, networkingv1.IngressTLS{SecretName: s})
	}
	return in
}

func tlsSecrets(in *networkingv1.Ingress) (names []types.NamespacedName) {
	for _, tls := range in.Spec.TLS {
		names = append(names, types.NamespacedName{Name: tls.SecretName})
	}
	return names
}

func TestOnlyTheObjectsThatOthersNameAreInAQueryWithRefs(t *testing.T) {
	type plain struct {
		Spec struct{ TLS []struct{ SecretName string } }
	}
	for name, ref := range map[string]kates.Ref{
		"typed": kates.RefsOf("Ingresses", tlsSecrets),
		"plain": kates.RefsOf("Ingresses", func(p plain) (names []types.NamespacedName) {
			for _, tls := range p.Spec.TLS {
				names = append(names, types.NamespacedName{Namespace: "a", Name: tls.SecretName})
			}
			return names
		}),
		"metadata": kates.RefsOf("Ingresses", func(o metav1.Object) []types.NamespacedName {
			return []types.NamespacedName{{Name: "x"}, {Name: "missing"}}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			type snapshot struct {
				Ingresses []*networkingv1.Ingress
				Secrets   kates.Lookup[*corev1.Secret]
				Listed    []*corev1.Secret
			}
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
				for _, o := range []kates.Object{ingress("a", "in", "x", "missing"), secret("a", "x", "1"), secret("a", "y", "1"), secret("b", "x", "1")} {
					require.NoError(t, fake.Client.Create(t.Context(), o, nil))
				}
				s, snap := first[snapshot](t, fake.Client,
					kates.Query{Name: "Secrets", Refs: []kates.Ref{ref}}, kates.Query{Name: "Listed", Refs: []kates.Ref{ref}})
				all, err := snap.Secrets.List("", nil)
				require.NoError(t, err)
				assert.Len(t, all, 1)
				_, err = snap.Secrets.Get("a", "x")
				require.NoError(t, err)
				assert.Len(t, snap.Listed, 1)
				assert.Equal(t, 2, s.Status().Queries[1].Refs)
				require.NoError(t, fake.Client.Create(t.Context(), secret("a", "missing", "1"), nil))
				_, err = s.Update(t.Context(), snap)
				require.NoError(t, err)
				assert.Len(t, snap.Listed, 2)
			})
		})
	}
}

func TestRefsThatCannotBeMeantAreErrorsThatNameTheirQuery(t *testing.T) {
	type snapshot struct {
		Ingresses []*networkingv1.Ingress
		Secrets   []*corev1.Secret
	}
	c := katestest.NewClient(t)
	for want, q := range map[string]kates.Query{
		"there is no query of that name":        {Refs: []kates.Ref{kates.RefsOf("None", tlsSecrets)}},
		"in a circle":                           {Refs: []kates.Ref{kates.RefsOf("Secrets", func(metav1.Object) []types.NamespacedName { return nil })}},
		"is empty: use RefsOf":                  {Refs: []kates.Ref{{}}},
		"it was made of a function that is nil": {Refs: []kates.Ref{kates.RefsOf[*networkingv1.Ingress]("Ingresses", nil)}},
		"no object is a int":                    {Refs: []kates.Ref{kates.RefsOf("Ingresses", func(int) []types.NamespacedName { return nil })}},
		"has no namespaces and no AnyOf ":       {Namespace: "a", Refs: []kates.Ref{kates.RefsOf("Ingresses", tlsSecrets)}},
	} {
		q.Name = "Secrets"
		_, err := kates.Watch[snapshot](t.Context(), c, q)
		assert.ErrorContains(t, err, want)
	}
	assert.Empty(t, c.Status().Queries)
}

// TestG6NamesThatComeAndGoInSeveralNamespacesAreFoundWhileTheyAreNamed changes names faster than
// the client learns what they name.
func TestG6NamesThatComeAndGoInSeveralNamespacesAreFoundWhileTheyAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type snap struct {
			Ingresses []*networkingv1.Ingress
			Secrets   kates.Lookup[*corev1.Secret]
		}
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
		for _, ns := range []string{"a", "b"} {
			for i := range 5 {
				require.NoError(t, fake.Client.Create(t.Context(), secret(ns, fmt.Sprint("s", i), "1"), nil))
			}
		}
		named := func(in *networkingv1.Ingress) (names []types.NamespacedName) {
			for _, tls := range in.Spec.TLS {
				names = append(names, types.NamespacedName{Namespace: in.Labels["in"], Name: tls.SecretName})
			}
			return names
		}
		s, snapshot := first[snap](t, fake.Client, kates.Query{Name: "Secrets", Refs: []kates.Ref{kates.RefsOf("Ingresses", named)}})
		for i := range 60 {
			in := ingress("a", fmt.Sprint("i", i%4), fmt.Sprint("s", i%5), fmt.Sprint("s", (i+1)%5), "none", "s0")
			if i%3 == 0 {
				in.Labels = map[string]string{"in": "b"}
			}
			require.NoError(t, fake.Client.Upsert(t.Context(), in, in, nil))
			if i%2 == 0 {
				synctest.Wait()
			}
			_, err := s.Update(t.Context(), snapshot)
			require.NoError(t, err)
			for _, in := range snapshot.Ingresses {
				for _, name := range named(in) {
					_, err := snapshot.Secrets.Get(cmp.Or(name.Namespace, "a"), name.Name)
					assert.Equal(t, name.Name == "none", kates.IsNotFound(err))
				}
			}
		}
		for i := range 4 {
			require.NoError(t, fake.Client.Delete(t.Context(), ingress("a", fmt.Sprint("i", i)), nil))
		}
		synctest.Wait()
		_, err := s.Update(t.Context(), snapshot)
		require.NoError(t, err)
		all, err := snapshot.Secrets.List("", nil)
		require.NoError(t, err)
		assert.Empty(t, all)
		assert.Zero(t, s.Status().Queries[1].Refs)
	})
}

func TestWhatAnObjectThatDoesNotDecodeRefersToIsLoggedOncePerVersion(t *testing.T) {
	type snapshot struct {
		Ingresses []*kates.Unstructured `kates:"ingresses"`
		Secrets   []*corev1.Secret
	}
	broken := func(tls any) *kates.Unstructured {
		u := kates.NewUnstructured("Ingress", "networking.k8s.io/v1")
		u.SetNamespace("a")
		u.SetName("in")
		u.Object["spec"] = map[string]any{"tls": tls}
		return u
	}
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		fake := katestest.New(t, katestest.WithObjects(broken("text"), secret("a", "x", "1")),
			katestest.WithClientOptions(kates.WithInterval(0), kates.WithLogger(slog.New(slog.NewTextHandler(out, nil)))))
		snapshots, err := kates.Watch[snapshot](t.Context(), fake.Client,
			kates.Query{Name: "Secrets", Refs: []kates.Ref{kates.RefsOf("Ingresses", tlsSecrets)}})
		require.NoError(t, err)
		var snap snapshot
		update := func() {
			synctest.Wait()
			_, err := snapshots.Update(t.Context(), &snap)
			require.NoError(t, err)
		}
		const says = `"cannot read what an object refers to: it keeps the references of its last version that could be read"`
		update()
		for _, namespace := range []string{"a", "", "a"} {
			require.NoError(t, snapshots.Replace(t.Context(), kates.Query{Name: "Ingresses", Namespace: namespace}))
			update()
			require.Len(t, snap.Ingresses, 1)
			assert.Equal(t, 1, out.count(says), &out.text)
		}
		assert.Equal(t, 1, out.count(says+` err="convert Ingress \"a/in\" to *v1.Ingress: `), &out.text)
		assert.Equal(t, 1, out.count(" query=Ingresses object=a/in referred=Secrets"), &out.text)

		require.NoError(t, fake.Client.Update(t.Context(), broken([]any{map[string]any{"secretName": "x"}}), nil))
		update()
		assert.Len(t, snap.Secrets, 1)
		require.NoError(t, fake.Client.Update(t.Context(), broken("text"), nil))
		update()
		assert.Len(t, snap.Secrets, 1, "it refers to what it did before")
		assert.Equal(t, 2, out.count(says), "once for each version: %s", &out.text)
	})
}
