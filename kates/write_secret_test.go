package kates_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// login is a Secret of which a program knows one field.
type login struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	StringData        map[string]string `json:"stringData"`
}

// loginForms make a Secret with stringData.
var loginForms = map[string]func(map[string]string) any{
	"typed": func(plain map[string]string) any {
		return &kates.Secret{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "login"}, StringData: plain}
	},
	"untyped": func(plain map[string]string) any {
		u := kates.NewUnstructured("Secret", "v1")
		u.SetNamespace("default")
		u.SetName("login")
		u.Object["stringData"] = plain // as programs write it by hand
		return u
	},
	"a map": func(plain map[string]string) any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret", "stringData": plain,
			"metadata": map[string]any{"namespace": "default", "name": "login"},
		}
	},
	"a struct of one's own": func(plain map[string]string) any {
		l := &login{StringData: plain}
		l.APIVersion, l.Kind, l.Namespace, l.Name = "v1", "Secret", "default", "login"
		return l
	},
}

// storedLogin is what the server has of the Secret.
func storedLogin(t *testing.T, s *katestest.Server) map[string]string {
	t.Helper()
	c := s.Client(t)
	defer c.Close()
	got := &kates.Secret{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "login"}}
	require.NoError(t, c.Get(t.Context(), got, got))
	stored := map[string]string{}
	for key, value := range got.Data {
		stored[key] = string(value)
	}
	for _, e := range got.ManagedFields {
		assert.NotContains(t, string(e.FieldsV1.GetRawBytes()), "stringData")
	}
	return stored
}

// TestAKeyOfStringDataThatIsRenamedLeavesTheSecret: what a program no longer writes, a method that
// replaces takes away.
func TestAKeyOfStringDataThatIsRenamedLeavesTheSecret(t *testing.T) {
	methods := map[string]func(context.Context, *kates.Client, any) error{
		"Apply": func(ctx context.Context, c *kates.Client, o any) error { return c.Apply(ctx, o, nil) },
		"ApplyOwned": func(ctx context.Context, c *kates.Client, o any) error {
			object, ok := o.(kates.Object)
			if !ok {
				object = kates.NewUnstructured("Secret", "v1")
				data, _ := json.Marshal(o)
				if err := json.Unmarshal(data, object); err != nil {
					return err
				}
			}
			owner := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "owner"}}
			if err := c.Upsert(ctx, nil, owner, owner); err != nil {
				return err
			}
			_, err := c.ApplyOwned(ctx, kates.OwnedSet{Owner: owner, SetName: "s", Objects: []kates.Object{object}})
			return err
		},
		"Upsert": func(ctx context.Context, c *kates.Client, o any) error { return c.Upsert(ctx, nil, o, nil) },
		"Upsert by name": func(ctx context.Context, c *kates.Client, o any) error {
			name := loginForms["typed"](nil)
			return c.Upsert(ctx, name, o, nil)
		},
		"Update": func(ctx context.Context, c *kates.Client, o any) error {
			if err := c.Create(ctx, o, nil); kates.IsAlreadyExists(err) {
				return c.Update(ctx, o, nil)
			} else {
				return err
			}
		},
	}
	for method, write := range methods {
		for form, secret := range loginForms {
			t.Run(method+" of "+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := katestest.NewServer(t)
					c := s.Client(t)
					defer c.Close()
					require.NoError(t, write(t.Context(), c, secret(map[string]string{"username": "a", "password": "p"})))
					require.NoError(t, write(t.Context(), c, secret(map[string]string{"user": "a", "password": "q"})))
					assert.Equal(t, map[string]string{"user": "a", "password": "q"}, storedLogin(t, s))
				})
			})
		}
	}
}

func TestOfAKeyInDataAndInStringDataTheLatterIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := katestest.NewServer(t)
		c := s.Client(t)
		defer c.Close()
		secret := loginForms["typed"](map[string]string{"a": "plain"}).(*kates.Secret)
		secret.Data = map[string][]byte{"a": []byte("x"), "b": []byte("y")}
		for _, write := range []func() error{
			func() error { return c.Create(t.Context(), secret, nil) },
			func() error { return c.Update(t.Context(), secret, nil) },
			func() error { return c.Upsert(t.Context(), nil, secret, nil) },
			func() error { return c.Apply(t.Context(), secret, nil, kates.ForceOwnership()) },
		} {
			require.NoError(t, write())
			assert.Equal(t, map[string]string{"a": "plain", "b": "y"}, storedLogin(t, s))
		}
	})
}

// writerOfSecrets is a client whose requests about Secrets are counted, and perhaps a watch.
func writerOfSecrets[S any](t *testing.T, s *katestest.Server) (*kates.Client, func() (sent []string)) {
	faults := katestest.NewFaults(t, 1)
	config := rest.CopyConfig(s.Config)
	config.Wrap(faults.Wrap)
	c, err := kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	w, err := kates.Watch[S](t.Context(), c)
	require.NoError(t, err)
	<-w.Changed()
	from := len(faults.Requests(katestest.Match{Resource: "secrets"}))
	return c, func() (sent []string) {
		all := faults.Requests(katestest.Match{Resource: "secrets"})
		for _, r := range all[from:] {
			sent = append(sent, r.Verb)
		}
		from = len(all)
		return sent
	}
}

// ofSecretWatches runs a test for a client that watches Secrets in Go types, and untyped.
func ofSecretWatches(t *testing.T, test func(t *testing.T, s *katestest.Server, c *kates.Client, sent func() []string)) {
	type typed struct{ Secrets []*kates.Secret }
	type untyped struct {
		Secrets []*kates.Unstructured `kates:"secrets"`
	}
	t.Run("typed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := katestest.NewServer(t)
			c, sent := writerOfSecrets[typed](t, s)
			defer c.Close()
			test(t, s, c, sent)
		})
	})
	t.Run("untyped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := katestest.NewServer(t)
			c, sent := writerOfSecrets[untyped](t, s)
			defer c.Close()
			test(t, s, c, sent)
		})
	})
}

func TestModifyComparesStringDataWithData(t *testing.T) {
	ofSecretWatches(t, func(t *testing.T, s *katestest.Server, c *kates.Client, sent func() []string) {
		secret := loginForms["typed"](map[string]string{"a": "b"})
		require.NoError(t, c.Create(t.Context(), secret, nil))
		sent()
		set := func(value string) {
			t.Helper()
			_, err := kates.Modify(t.Context(), c, secret, func(s *kates.Secret) error {
				s.StringData = map[string]string{"a": value}
				return nil
			})
			require.NoError(t, err)
			_, err = kates.Modify(t.Context(), c, secret, func(l *login) error {
				l.StringData = map[string]string{"a": value}
				return nil
			})
			require.NoError(t, err)
		}
		set("b")
		assert.NotContains(t, sent(), "patch")
		set("c")
		assert.Equal(t, 1, count(sent(), "patch"))
		assert.Equal(t, map[string]string{"a": "c"}, storedLogin(t, s))
	})
}

func count(all []string, one string) (n int) {
	for _, v := range all {
		if v == one {
			n++
		}
	}
	return n
}

// TestApplyOwnedKnowsTheStringDataThatItHasApplied: it sends nothing again, and finds out that
// somebody else has changed a value.
func TestApplyOwnedKnowsTheStringDataThatItHasApplied(t *testing.T) {
	ofSecretWatches(t, func(t *testing.T, s *katestest.Server, c *kates.Client, sent func() []string) {
		owner := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "owner"}}
		require.NoError(t, c.Create(t.Context(), owner, owner))
		for _, form := range []string{"typed", "untyped"} {
			apply := func(opts ...kates.WriteOption) (kates.OwnedResult, error) {
				secret := loginForms[form](map[string]string{"a": form}).(kates.Object)
				return c.ApplyOwned(t.Context(), kates.OwnedSet{
					Owner: owner, SetName: "s", Objects: []kates.Object{secret}, Existing: []kates.Object{},
				}, opts...)
			}
			result, err := apply()
			require.NoError(t, err)
			assert.Len(t, result.Applied, 1)
			require.NoError(t, c.Sync(t.Context()))
			sent()
			_, err = apply()
			require.NoError(t, err)
			assert.Empty(t, sent())

			other := s.Client(t, kates.WithFieldManager("another"))
			name := loginForms["typed"](nil)
			require.NoError(t, other.Patch(t.Context(), name, kates.MergePatchType, []byte(`{"data":{"a":"eA=="}}`), nil))
			other.Close()
			require.NoError(t, c.Sync(t.Context()))
			_, err = apply()
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"a": form}, storedLogin(t, s))
		}
	})
}

// TestStringDataOverwritesWhatOthersOwnAndNothingElseDoes: another manager has a value and a label.
func TestStringDataOverwritesWhatOthersOwnAndNothingElseDoes(t *testing.T) {
	ofSecretWatches(t, func(t *testing.T, s *katestest.Server, c *kates.Client, _ func() []string) {
		secret := func(of func(*kates.Secret)) *kates.Secret {
			o := &kates.Secret{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "login"}}
			of(o)
			return o
		}
		other := s.Client(t, kates.WithFieldManager("another"))
		defer other.Close()
		theirs := secret(func(o *kates.Secret) {
			o.Data, o.Labels = map[string][]byte{"a.b": []byte("theirs"), "c": []byte("theirs")}, map[string]string{"l": "theirs"}
		})
		require.NoError(t, other.Apply(t.Context(), theirs, nil))
		for what, ours := range map[string]*kates.Secret{
			"data": secret(func(o *kates.Secret) { o.Data = map[string][]byte{"a.b": []byte("ours")} }),
			"data beside stringData": secret(func(o *kates.Secret) {
				o.Data, o.StringData = map[string][]byte{"c": []byte("ours")}, map[string]string{"a.b": "ours"}
			}),
			"a label beside stringData": secret(func(o *kates.Secret) {
				o.StringData, o.Labels = map[string]string{"a.b": "ours"}, map[string]string{"l": "ours"}
			}),
		} {
			err := c.Apply(t.Context(), ours, nil)
			assert.True(t, kates.IsConflict(err), "%s: %v", what, err)
			assert.Equal(t, map[string]string{"a.b": "theirs", "c": "theirs"}, storedLogin(t, s), what)
		}
		ours := secret(func(o *kates.Secret) { o.StringData = map[string]string{"a.b": "ours"} })
		require.NoError(t, c.Apply(t.Context(), ours, nil))
		assert.Equal(t, map[string]string{"a.b": "ours", "c": "theirs"}, storedLogin(t, s))

		owner := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "owner"}}
		require.NoError(t, c.Create(t.Context(), owner, owner))
		_, err := c.ApplyOwned(t.Context(), kates.OwnedSet{Owner: owner, SetName: "s", Objects: []kates.Object{ours}})
		assert.ErrorIs(t, err, kates.ErrNotOwned, "an object of others loses nothing")
	})
}

func TestAMalformedStringDataIsTheServersToRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewServer(t).Client(t)
		defer c.Close()
		u := loginForms["untyped"](nil).(*kates.Unstructured)
		u.Object["stringData"] = map[string]any{"a": int64(1)}
		assert.Error(t, c.Create(t.Context(), u, nil))
		assert.Error(t, c.Apply(t.Context(), u, nil))
		assert.Equal(t, map[string]any{"a": int64(1)}, u.Object["stringData"])
	})
}
