package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

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

// livedBusy is lived, while a config map changes. Without a watch cache no bookmark says that a
// quiet kind has nothing new: a warm start would wait for as long as it may.
func (w *warmed) livedBusy() {
	w.t.Helper()
	defer w.busy()()
	w.lived()
}

// busy changes a config map again and again, until the function that it returns is called.
func (w *warmed) busy() (end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Appendf(nil, `{"data":{"busy":"%d"}}`, i)
			_, _ = w.others.Resource(configMaps).Namespace(w.ns).Patch(w.t.Context(), "o-02", types.MergePatchType, patch, metav1.PatchOptions{})
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
