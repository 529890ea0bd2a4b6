package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// withContexts returns a kubeconfig whose contexts have servers of their names.
func withContexts(t *testing.T, names ...string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for _, name := range names {
		cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
		cluster.Server, user.Token = "https://"+name, canary
		config.Clusters[name], config.AuthInfos[name] = cluster, user
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestContextsAreClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "config")
		write(t, path, withContexts(t, "a", "b"))
		all, some := run(t, Contexts(path)), run(t, Contexts(path, "b", "c", "b"))
		synctest.Wait()
		all.is(t, "a=https://a", "b=https://b")
		some.is(t, "b=https://b", "c!")
		before := all.member(t, "b")
		write(t, path, withContexts(t, "b", "c"))
		look()
		all.is(t, "a=https://a", "b=https://b") // until it is certain
		look()
		all.is(t, "b=https://b", "c=https://c")
		some.is(t, "b=https://b", "c=https://c")
		if all.member(t, "b").Version != before.Version {
			t.Error("b has another version, though another context has changed")
		}
		n := all.sets()
		for _, text := range []string{"", "apiVersion: v1\nkind: Config\nusers: " + canary, canary} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			look()
			all.is(t, "b=https://b", "c=https://c")
			if trouble := all.trouble(); !strings.Contains(trouble, path) || strings.Contains(trouble, canary) {
				t.Errorf("trouble with %q: %q", text, trouble)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		look()
		if !strings.Contains(all.trouble(), "there is no kubeconfig") || all.sets() != n {
			t.Errorf("trouble: %q; it has said %d times that nothing has changed", all.trouble(), all.sets()-n)
		}
		write(t, path, "apiVersion: v1\nkind: Config\n") // the beginning of a file
		look()
		write(t, path, withContexts(t, "b"))
		look()
		all.is(t, "b=https://b", "c=https://c")
		look()
		all.is(t, "b=https://b")
		some.is(t, "b=https://b", "c!")
		if all.trouble() != "" {
			t.Error(all.trouble())
		}
	})
}

func TestContextsWithoutAPathFollowKubectlsRules(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	t.Setenv("KUBECONFIG", strings.Join([]string{one, two, one + "-missing"}, string(filepath.ListSeparator)))
	synctest.Test(t, func(t *testing.T) {
		write(t, one, withContexts(t, "a"))
		write(t, two, withContexts(t, "a", "b"))
		r := run(t, Contexts(""))
		synctest.Wait()
		r.is(t, "a=https://a", "b=https://b")
		write(t, two, withContexts(t, "c"))
		look()
		look()
		r.is(t, "a=https://a", "c=https://c")
	})
}
