package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
)

func TestG1G2AWarmStartShowsThePresentAndListsNothing(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, serverOf(t), namespace(t))
	w.make(0, 20)
	for name, how := range w.forms() {
		assert.Equal(t, "list: nothing is kept of it", how, name)
	}
	w.client.Close()
	for range 3 {
		lists := w.lists()
		began := w.forms()
		allWarm(t, began)
		assert.Equal(t, lists, w.lists(), "nothing was listed")
		w.client.Close()
		if w.others.Resource(configMaps).Namespace(w.ns).Delete(t.Context(), "o-05", metav1.DeleteOptions{}) == nil {
			w.make(5+20, 6+20)
			_, err := w.others.Resource(configMaps).Namespace(w.ns).Patch(t.Context(), "o-03", types.MergePatchType, []byte(`{"data":{"changed":"yes"}}`), metav1.PatchOptions{})
			require.NoError(t, err)
		}
	}
}

func TestG4OwnWritesRightAfterAWarmStartAreShown(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, serverOf(t), namespace(t))
	w.make(0, 10)
	w.forms()
	w.client.Close()
	client := w.connect()
	snapshots, err := kates.Watch[warmForms](t.Context(), client, formsIn(w.ns)...)
	require.NoError(t, err)
	var made kates.ConfigMap // before anything has caught up
	require.NoError(t, client.Create(t.Context(), object(configMaps, w.ns, "own", nil), &made))
	require.NoError(t, client.Delete(t.Context(), object(configMaps, w.ns, "o-00", nil), nil))
	var snap warmForms
	require.Eventually(t, func() bool {
		ok, err := snapshots.Update(t.Context(), &snap)
		return err == nil && ok
	}, patience, 10*time.Millisecond)
	w.compare(&snap)
	assert.Contains(t, names(snap.ConfigMaps), "own")
	assert.NotContains(t, names(snap.ConfigMaps), "o-00")
}

func TestG1G5AWarmStartInDoubtListsOnARealServer(t *testing.T) {
	t.Parallel()
	c := breakable(t, "watch-cache=false") // it knows only what etcd knows
	w := newWarmed(t, c.Config, "ns")
	w.make(0, 10)
	w.lived()

	t.Run("etcd was compacted", func(t *testing.T) {
		w.change()
		require.NoError(t, c.Compact(t.Context()))
		w.doubtful("forgotten")
	})
	t.Run("a file is damaged", func(t *testing.T) {
		all, err := filepath.Glob(filepath.Join(w.dir, "configmaps*"))
		require.NoError(t, err)
		require.Len(t, all, 2)
		for _, path := range all {
			file, err := os.ReadFile(path)
			require.NoError(t, err)
			file[len(file)/2] ^= 1
			require.NoError(t, os.WriteFile(path, file, 0o600))
		}
		w.doubtful("cannot be read")
	})
	t.Run("etcd is restored from a backup", func(t *testing.T) {
		backup, err := c.Backup()
		require.NoError(t, err)
		w.make(30, 32)
		w.livedBusy()
		require.NoError(t, c.Restore(backup))
		w.doubtful("it was restored")
	})
	t.Run("etcd is restored, and has passed the version", func(t *testing.T) {
		backup, err := c.Backup()
		require.NoError(t, err)
		w.make(40, 42)
		w.livedBusy()
		reached, err := c.Revision(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Restore(backup))
		for i := 0; ; i++ {
			now, err := c.Revision(t.Context())
			require.NoError(t, err)
			if now > reached+2 {
				break
			}
			_, err = w.others.Resource(configMaps).Namespace("ns").Patch(t.Context(), "o-00", types.MergePatchType, fmt.Appendf(nil, `{"data":{"i":"%d"}}`, i), metav1.PatchOptions{})
			require.NoError(t, err)
		}
		w.doubtful("the server has")
	})
	t.Run("and when all is well it is warm again", func(t *testing.T) {
		w.lived()
		defer w.busy()()
		w.connect()
		_, _, began := runWarm[struct{ ConfigMaps []*kates.ConfigMap }](w, w.in("ConfigMaps")...)
		allWarm(t, began)
		w.client.Close()
	})
	t.Run("the API server was restarted", func(t *testing.T) {
		require.NoError(t, c.Server().Stop())
		require.NoError(t, c.Server().Start())
		w.change2()
		defer w.busy()()
		w.connect()
		lists := w.lists()
		_, _, began := runWarm[struct{ ConfigMaps []*kates.ConfigMap }](w, w.in("ConfigMaps")...)
		allWarm(t, began)
		assert.Equal(t, lists, w.lists())
	})
}

func TestG5AWarmStartAfterTheDefinitionOfItsKindHasChangedLists(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, serverOf(t), namespace(t))
	g := newGadget(t, w.ns)
	g.install("v1")
	g.make("v1", w.ns, "a", "b")
	type gadgets struct{ Gadgets []*kates.Unstructured }
	query := kates.Query{Name: "Gadgets", Kind: g.kind, Namespace: w.ns}
	start := func() (*gadgets, string) {
		w.connect()
		_, snap, began := runWarm[gadgets](w, query)
		w.client.Close()
		return snap, began["Gadgets"]
	}
	require.Eventually(t, func() bool { // its schema is published some time after the kind is served
		_, how := start()
		return how == "warm"
	}, patience, time.Second)
	patch := `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size","value":{"type":"string","default":"small"}},
		{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/default","value":{}}]`
	_, err := g.others().Resource(definitions).Patch(t.Context(), g.kind, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		list, err := g.others().Resource(g.resource("v1")).Namespace(w.ns).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 2 && strings.Contains(fmt.Sprint(list.Items[0].Object), "small")
	}, patience, 100*time.Millisecond)
	require.Eventually(t, func() bool { // the schema is published a little later
		snap, how := start()
		return strings.Contains(how, "schema") && strings.Contains(fmt.Sprint(snap.Gadgets[0].Object), "small")
	}, patience, time.Second)
	g.remove()
	w.connect()
	_, err = kates.Watch[gadgets](t.Context(), w.client, query)
	assert.Error(t, err, "it is not served")
}

func TestG8AWarmStartShowsNothingThatMayNoLongerBeRead(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, serverOf(t), namespace(t))
	w.make(0, 5)
	user := newSubject(t, w.ns+"-warm")
	user.is(w.config)
	read := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}
	user.grant(w.ns, "namespace", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	revoke := user.grant(w.ns, "read", read)

	w.doubtful("which cluster") // it may not get the namespace kube-system
	files, err := os.ReadDir(w.dir)
	require.NoError(t, err)
	assert.Empty(t, files)

	user.grant("", "cluster", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	w.lived()
	w.connect()
	_, _, began := runWarm[struct{ ConfigMaps []*kates.ConfigMap }](w, w.in("ConfigMaps")...)
	allWarm(t, began)
	w.client.Close()
	revoke()
	w.connect()
	snapshots, err := kates.Watch[struct{ ConfigMaps []*kates.ConfigMap }](t.Context(), w.client, w.in("ConfigMaps")...)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return snapshots.Status().Queries[0].State == kates.StateForbidden }, patience, 10*time.Millisecond)
	var snap struct{ ConfigMaps []*kates.ConfigMap }
	complete, err := snapshots.Update(t.Context(), &snap)
	assert.NoError(t, err)
	assert.False(t, complete)
	assert.Empty(t, snap.ConfigMaps)
	user.grant(w.ns, "again", read)
	require.Eventually(t, func() bool {
		complete, err := snapshots.Update(t.Context(), &snap)
		return err == nil && complete && len(snap.ConfigMaps) == 5
	}, patience, 10*time.Millisecond)
}

func TestAnotherSelectorOrStructHasNothingThatWasKept(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, serverOf(t), namespace(t))
	w.make(0, 6)
	type first struct {
		Fields []struct {
			Metadata struct{ Name string }
			Data     map[string]string
		} `kates:"configmaps"`
	}
	type second struct {
		Fields []struct {
			Metadata struct{ Name string }
			Data     map[string]string `json:"data"`
			Kind     string
		} `kates:"configmaps"`
	}
	w.connect()
	runWarm[first](w, w.in("Fields")...)
	w.client.Close()
	w.connect()
	_, _, began := runWarm[first](w, w.in("Fields")...)
	allWarm(t, began)
	w.client.Close()
	w.connect()
	_, snap, began := runWarm[second](w, w.in("Fields")...)
	assert.Equal(t, "list: nothing is kept of it", began["Fields"])
	assert.Len(t, snap.Fields, 6)
	assert.Equal(t, "ConfigMap", snap.Fields[0].Kind)
	w.client.Close()
	w.connect()
	_, selected, began := runWarm[first](w, kates.Query{Name: "Fields", Namespace: w.ns, LabelSelector: "n=1"})
	assert.Equal(t, "list: nothing is kept of it", began["Fields"])
	assert.Len(t, selected.Fields, 3)
}

func TestSecretsAreKeptWithAKeyAloneAndNowhereReadable(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, serverOf(t), namespace(t))
	value := secrecy.Mark("a password that nobody may read")
	for i := range 3 {
		s := object(secrets, w.ns, fmt.Sprint("s-", i), nil)
		s.Object["stringData"] = map[string]any{"password": value}
		_, err := w.others.Resource(secrets).Namespace(w.ns).Create(t.Context(), s, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	type snapshot struct{ Secrets []*kates.Secret }
	start := func() string {
		w.connect()
		_, snap, began := runWarm[snapshot](w, w.in("Secrets")...)
		require.Len(t, snap.Secrets, 3)
		assert.Equal(t, value, string(snap.Secrets[0].Data["password"]))
		w.client.Close()
		return began["Secrets"]
	}
	for range 2 {
		assert.Contains(t, start(), "only with a key")
	}
	_, err := os.Stat(w.dir)
	require.NoError(t, err)
	w.more = []kates.WarmStartSetting{kates.WarmStartKey(bytes.Repeat([]byte{3}, 32))}
	start()
	assert.Equal(t, "warm", start())
	w.more = []kates.WarmStartSetting{kates.WarmStartKey(bytes.Repeat([]byte{4}, 32))}
	assert.Contains(t, start(), "cannot be read")
	all, err := os.ReadDir(w.dir)
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, e := range all {
		file, err := os.ReadFile(filepath.Join(w.dir, e.Name()))
		require.NoError(t, err)
		assert.NotContains(t, string(file), value)
	}
}
