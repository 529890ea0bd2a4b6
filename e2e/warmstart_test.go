package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// warmForms is what these tests watch: each form, a custom kind, and a kind that is empty.
type warmForms struct {
	ConfigMaps []*kates.ConfigMap
	Untyped    []*kates.Unstructured          `kates:"configmaps"`
	Metadata   []*kates.PartialObjectMetadata `kates:"configmaps"`
	Fields     []warmFields                   `kates:"configmaps"`
	Hosts      []*kates.Unstructured          `kates:"hosts.getambassador.io"`
	Leases     []*kates.Unstructured          `kates:"leases.coordination.k8s.io"`
}

type warmFields struct {
	Metadata struct{ Name, ResourceVersion string }
	Data     map[string]string
}

// warmed is a program that is started again and again, with one folder.
type warmed struct {
	t      *testing.T
	config *rest.Config
	ns     string
	dir    string
	others dynamic.Interface
	faults *katestest.Faults
	client *kates.Client
	more   []kates.WarmStartSetting
}

func newWarmed(t *testing.T, config *rest.Config, ns string) *warmed {
	t.Helper()
	others, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	w := &warmed{t: t, ns: ns, dir: t.TempDir(), others: others, faults: katestest.NewFaults(t, 1)}
	w.config = rest.CopyConfig(config)
	w.config.Wrap(w.faults.Wrap)
	return w
}

// make makes config maps and hosts.
func (w *warmed) make(from, to int) {
	w.t.Helper()
	for i := from; i < to; i++ {
		cm := object(configMaps, w.ns, fmt.Sprintf("o-%02d", i), map[string]string{"n": fmt.Sprint(i % 2)})
		cm.Object["data"] = map[string]any{"k": strings.Repeat(fmt.Sprint(i), 100)}
		_, err := w.others.Resource(configMaps).Namespace(w.ns).Create(w.t.Context(), cm, metav1.CreateOptions{})
		require.NoError(w.t, err)
		_, err = w.others.Resource(hosts).Namespace(w.ns).Create(w.t.Context(), object(hosts, w.ns, fmt.Sprintf("o-%02d", i), nil), metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
}

// change changes, deletes and makes some.
func (w *warmed) change() {
	w.t.Helper()
	for _, name := range []string{"o-03", "o-04"} {
		_, err := w.others.Resource(configMaps).Namespace(w.ns).Patch(w.t.Context(), name, types.MergePatchType, []byte(`{"data":{"changed":"yes"}}`), metav1.PatchOptions{})
		require.NoError(w.t, err)
	}
	require.NoError(w.t, w.others.Resource(configMaps).Namespace(w.ns).Delete(w.t.Context(), "o-05", metav1.DeleteOptions{}))
	require.NoError(w.t, w.others.Resource(hosts).Namespace(w.ns).Delete(w.t.Context(), "o-06", metav1.DeleteOptions{}))
}

// client returns a client of the next process.
func (w *warmed) connect(options ...kates.Option) *kates.Client {
	w.t.Helper()
	options = append([]kates.Option{
		kates.WithLogger(slog.New(slog.DiscardHandler)), kates.WithInterval(0), kates.WithWarmStart(kates.WarmStartDir(w.dir), append(w.more, kates.WarmStartWait(patience/4))...),
	}, options...)
	client, err := kates.NewClientFromRESTConfig(w.config, options...)
	require.NoError(w.t, err)
	w.t.Cleanup(client.Close)
	w.client = client
	return client
}

// lists counts the requests that have listed more than one object.
func (w *warmed) lists() (n int) {
	for _, r := range w.faults.Requests(katestest.Match{Verb: "list"}) {
		if r.Query.Get("limit") != "1" {
			n++
		}
	}
	return n
}

// runWarm starts the program, and returns its first snapshot and how each query has begun.
func runWarm[S any](w *warmed, queries ...kates.Query) (*kates.Snapshots[S], *S, map[string]string) {
	w.t.Helper()
	snapshots, err := kates.Watch[S](w.t.Context(), w.client, queries...)
	require.NoError(w.t, err)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	snap := new(S)
	for complete := false; !complete; {
		select {
		case <-snapshots.Changed():
		case <-ctx.Done():
			require.NoError(w.t, snapshots.Ready(), "no first snapshot")
		}
		complete, err = snapshots.Update(ctx, snap)
		require.NoError(w.t, err)
	}
	began := make(map[string]string)
	for _, q := range snapshots.Status().Queries {
		began[q.Name] = q.Start
	}
	return snapshots, snap, began
}

func formsIn(ns string) []kates.Query {
	w := &warmed{ns: ns}
	return w.in("ConfigMaps", "Untyped", "Metadata", "Fields", "Hosts", "Leases")
}

func (w *warmed) in(names ...string) (all []kates.Query) {
	for _, name := range names {
		all = append(all, kates.Query{Name: name, Namespace: w.ns})
	}
	return all
}

// forms starts the program on all forms, and compares the snapshot with the server.
func (w *warmed) forms() map[string]string {
	w.t.Helper()
	w.connect()
	_, snap, began := runWarm[warmForms](w, formsIn(w.ns)...)
	w.compare(snap)
	return began
}

func (w *warmed) compare(snap *warmForms) {
	w.t.Helper()
	list, err := w.others.Resource(configMaps).Namespace(w.ns).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	var want []string
	for _, u := range list.Items {
		want = append(want, u.GetName()+"@"+u.GetResourceVersion())
	}
	slices.Sort(want)
	var typed, untyped, metadata, fields []string
	for i, cm := range snap.ConfigMaps {
		typed = append(typed, cm.Name+"@"+cm.ResourceVersion)
		data := warmData(snap.Untyped[i])
		assert.Equal(w.t, cm.Data, data)
		assert.Equal(w.t, cm.Data, snap.Fields[i].Data)
		assert.Equal(w.t, "ConfigMap", cm.Kind)
	}
	for _, u := range snap.Untyped {
		untyped = append(untyped, u.GetName()+"@"+u.GetResourceVersion())
	}
	for _, m := range snap.Metadata {
		metadata = append(metadata, m.Name+"@"+m.ResourceVersion)
	}
	for _, f := range snap.Fields {
		fields = append(fields, f.Metadata.Name+"@"+f.Metadata.ResourceVersion)
	}
	for _, got := range [][]string{typed, untyped, metadata, fields} {
		slices.Sort(got)
		assert.Equal(w.t, want, got)
	}
	hostList, err := w.others.Resource(hosts).Namespace(w.ns).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	assert.Len(w.t, snap.Hosts, len(hostList.Items))
	assert.Empty(w.t, snap.Leases)
}

func warmData(u *kates.Unstructured) map[string]string {
	data, ok := u.Object["data"].(map[string]any)
	if !ok {
		return nil
	}
	all := make(map[string]string)
	for k, v := range data {
		all[k] = fmt.Sprint(v)
	}
	return all
}

func allWarm(t *testing.T, began map[string]string) {
	t.Helper()
	for name, how := range began {
		assert.Equal(t, "warm", how, name)
	}
}

func TestG1G2AWarmStartShowsThePresentAndListsNothing(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, testCluster.Config, namespace(t))
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
	w := newWarmed(t, testCluster.Config, namespace(t))
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

func names(all []*kates.ConfigMap) (list []string) {
	for _, cm := range all {
		list = append(list, cm.Name)
	}
	return list
}

// doubtful starts the program on config maps, which list for a reason.
func (w *warmed) doubtful(why string) {
	w.t.Helper()
	w.connect()
	_, snap, began := runWarm[struct{ ConfigMaps []*kates.ConfigMap }](w, w.in("ConfigMaps")...)
	assert.Contains(w.t, began["ConfigMaps"], why)
	assert.True(w.t, strings.HasPrefix(began["ConfigMaps"], "list: "))
	list, err := w.others.Resource(configMaps).Namespace(w.ns).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	var want []string
	for _, u := range list.Items {
		want = append(want, u.GetName())
	}
	assert.Equal(w.t, want, names(snap.ConfigMaps))
	w.client.Close()
}

// lived runs the program once on config maps.
func (w *warmed) lived() {
	w.t.Helper()
	w.connect()
	runWarm[struct{ ConfigMaps []*kates.ConfigMap }](w, w.in("ConfigMaps")...)
	w.client.Close()
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
		w.lived()
		require.NoError(t, c.Restore(backup))
		w.doubtful("it was restored")
	})
	t.Run("etcd is restored, and has passed the version", func(t *testing.T) {
		backup, err := c.Backup()
		require.NoError(t, err)
		w.make(40, 42)
		w.lived()
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
	// Without a watch cache no bookmark says that a quiet kind has nothing new: events do.
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

// busy changes a config map again and again, until the function that it returns is called.
func (w *warmed) busy() (end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Appendf(nil, `{"data":{"busy":"%d"}}`, i)
			_, _ = w.others.Resource(configMaps).Namespace(w.ns).Patch(ctx, "o-02", types.MergePatchType, patch, metav1.PatchOptions{})
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-done }
}

// change2 changes a config map.
func (w *warmed) change2() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := w.others.Resource(configMaps).Namespace(w.ns).Patch(w.t.Context(), "o-01", types.MergePatchType, []byte(`{"data":{"again":"yes"}}`), metav1.PatchOptions{})
		return err == nil
	}, patience, 100*time.Millisecond)
}

func TestG5AWarmStartAfterTheDefinitionOfItsKindHasChangedLists(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, testCluster.Config, namespace(t))
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
	w := newWarmed(t, testCluster.Config, namespace(t))
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
	w := newWarmed(t, testCluster.Config, namespace(t))
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
	w := newWarmed(t, testCluster.Config, namespace(t))
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
