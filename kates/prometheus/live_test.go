package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/prometheus"
)

type maps struct{ ConfigMaps []*kates.ConfigMap }

type everything struct {
	ConfigMaps []*kates.ConfigMap
	Secrets    []*kates.Secret
	Hosts      []host `kates:"hosts.x.io"`
}

// host does not decode if its port is a text.
type host struct {
	kates.TypeMeta   `json:",inline"`
	kates.ObjectMeta `json:"metadata"`
	Spec             struct {
		Port int `json:"port"`
	} `json:"spec"`
}

// world is an API server in memory, a client of it, and its metrics.
type world struct {
	*testing.T
	metrics *prometheus.Metrics
	faults  *katestest.Faults
	client  *kates.Client
	config  *rest.Config
}

func newWorld(t *testing.T, options ...katestest.Option) *world {
	t.Helper()
	server := katestest.NewServer(t, append(options, katestest.WithKinds(katestest.Kind{
		APIVersion: "x.io/v1", Kind: "Host", Plural: "hosts",
	}))...)
	w := &world{T: t, metrics: prometheus.New(), faults: katestest.NewFaults(t, 1), config: rest.CopyConfig(server.Config)}
	w.config.Wrap(w.faults.Wrap)
	var err error
	w.client, err = kates.NewClientFromRESTConfig(w.config, kates.WithObserver(w.metrics), kates.WithInterval(0),
		kates.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(w.client.Close)
	return w
}

func (w *world) gather() []*dto.MetricFamily {
	w.Helper()
	r := prom.NewPedanticRegistry()
	require.NoError(w, r.Register(w.metrics))
	all, err := r.Gather()
	require.NoError(w, err)
	return all
}

// value adds up the series of a metric that have these labels: "name=value". Of a histogram it is
// the number of observations.
func (w *world) value(name string, labels ...string) (sum float64) {
	w.Helper()
	for _, family := range w.gather() {
		for _, one := range family.GetMetric() {
			var has []string
			for _, l := range one.GetLabel() {
				has = append(has, l.GetName()+"="+l.GetValue())
			}
			if family.GetName() == name && !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
				sum += one.GetGauge().GetValue() + one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func (w *world) series() (n int) {
	for _, family := range w.gather() {
		n += len(family.GetMetric())
	}
	return n
}

func configMap(namespace, name string) *kates.ConfigMap {
	return &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestWhatAClientDoesIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, katestest.WithObjects(configMap("default", "a"), configMap("default", "b")))
		begin := w.faults.On(katestest.Match{Verb: "list", Resource: "configmaps"}).Hold()
		streamed := w.faults.On(katestest.Match{Verb: "watch", Resource: "configmaps"}).Hold()
		watch, err := kates.Watch[maps](t.Context(), w.client.With(kates.WithName("maps")))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		assert.Equal(t, 1.0, w.value("kates_watches_incomplete", "watch=maps"))
		assert.InDelta(t, 10, w.value("kates_watch_incomplete_age_seconds", "watch=maps"), 0.1)
		begin.Stop()
		streamed.Stop()
		<-watch.Changed()
		var snap maps
		_, err = watch.Update(t.Context(), &snap)
		require.NoError(t, err)
		require.Len(t, snap.ConfigMaps, 2)

		assert.Zero(t, w.value("kates_watches_incomplete", "watch=maps"))
		assert.Equal(t, 1.0, w.value("kates_watch_first_snapshot_duration_seconds", "watch=maps"))
		assert.Equal(t, 1.0, w.value("kates_watch_update_duration_seconds", "watch=maps"))
		assert.Equal(t, 2.0, w.value("kates_watch_changed_objects_total", "watch=maps"))
		assert.Equal(t, 2.0, w.value("kates_query_objects", "watch=maps", "query=ConfigMaps"))
		assert.Equal(t, 1.0, w.value("kates_queries", "query=ConfigMaps", "state=synced"))
		assert.Equal(t, 2.0, w.value("kates_stream_objects", "resource=configmaps.v1"))
		assert.Positive(t, w.value("kates_stream_bytes", "resource=configmaps.v1"))
		assert.Equal(t, 1.0, w.value("kates_stream_lists_total", "resource=configmaps.v1", "reason=first"))
		assert.Positive(t, w.value("kates_requests_total", "resource=configmaps.v1", "code=200"))

		// an own write that no watch shows
		synctest.Wait() // the watch is open
		stall := w.faults.Now(katestest.Match{Verb: "watch", Resource: "configmaps"}).Stall(0)
		require.NoError(t, w.client.Create(t.Context(), configMap("default", "c"), nil))
		time.Sleep(20 * time.Millisecond)
		assert.Equal(t, 1.0, w.value("kates_own_writes_pending", "resource=configmaps.v1"))
		assert.InDelta(t, 0.02, w.value("kates_own_writes_pending_age_seconds", "resource=configmaps.v1"), 0.001)
		assert.Equal(t, 1.0, w.value("kates_requests_total", "verb=create", "resource=configmaps.v1", "code=201"))
		assert.Equal(t, 1.0, w.value("kates_query_untaken_objects", "query=ConfigMaps"))
		stall.Stop()

		// a conflict, and an answer that does not come
		require.Error(t, w.client.Create(t.Context(), configMap("default", "c"), nil))
		assert.Equal(t, 1.0, w.value("kates_requests_total", "verb=create", "code=409"))
		lost := w.faults.On(katestest.Match{Verb: "create", Resource: "configmaps"}).Fail(errors.New("lost"))
		require.Error(t, w.client.Create(t.Context(), configMap("default", "d"), nil))
		assert.Equal(t, 1.0, w.value("kates_requests_total", "verb=create", "resource=configmaps.v1", "code=<error>"))
		lost.Stop()

		w.client.Close()
		assert.Empty(t, w.gather(), "a closed client leaves nothing")
	})
}

func TestAListerOfWhichNobodyTakesSnapshotsIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, katestest.WithObjects(configMap("default", "a")))
		lister, err := kates.NewLister[*kates.ConfigMap](t.Context(), w.client, kates.Query{Namespace: "default"})
		require.NoError(t, err)
		defer lister.Close()
		require.NoError(t, w.client.Create(t.Context(), configMap("default", "b"), nil))
		time.Sleep(time.Hour)
		assert.Equal(t, 1.0, w.value("kates_watches", "kind=lister"))
		assert.Equal(t, 2.0, w.value("kates_query_objects"))
		assert.Zero(t, w.value("kates_watches_incomplete"))
		assert.Zero(t, w.value("kates_query_untaken_objects"))
		assert.Zero(t, w.value("kates_query_untaken_age_seconds"))
	})
}

// peculiar is in all that no metric may show.
const peculiar = "peculiar"

// peculiarObjects have it wherever they have room for it.
func peculiarObjects() []kates.Object {
	meta := metav1.ObjectMeta{
		Namespace: peculiar, Name: peculiar, Labels: map[string]string{peculiar: peculiar},
		Annotations: map[string]string{peculiar: peculiar},
	}
	bad := &kates.Unstructured{Object: map[string]any{
		"apiVersion": "x.io/v1", "kind": "Host", "metadata": map[string]any{"namespace": peculiar, "name": peculiar},
		"spec": map[string]any{"port": peculiar},
	}}
	return []kates.Object{
		&kates.ConfigMap{ObjectMeta: meta, Data: map[string]string{peculiar: peculiar}},
		&kates.Secret{ObjectMeta: meta, Data: map[string][]byte{peculiar: []byte(peculiar)}}, bad,
	}
}

func TestNoObjectLabelErrorOrSecretGetsIntoAMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, katestest.WithObjects(peculiarObjects()...))
		ctx, cancel := context.WithCancel(t.Context())
		calls := make(chan struct{}, 10)
		ended := make(chan error, 1)
		go func() {
			ended <- kates.RunEach(ctx, w.client, func(_ context.Context, key string, snap *everything) error {
				select {
				case calls <- struct{}{}:
				default:
				}
				return fmt.Errorf("%s: the call fails, with %s", key, snap.Secrets[0].Data[peculiar])
			},
				kates.Query{Name: "ConfigMaps", LabelSelector: peculiar + "=" + peculiar, Key: kates.ByNamespace},
				kates.Query{Name: "Secrets", Namespace: peculiar, FieldSelector: "metadata.name=" + peculiar, Key: kates.ByNamespace},
				kates.Query{Name: "Hosts", Namespaces: []string{peculiar}, Key: kates.ByNamespace},
			)
		}()
		<-calls
		<-calls // the failed call is tried again
		watch, err := kates.Watch[everything](t.Context(), w.client, kates.Query{Name: "Hosts", Namespace: peculiar})
		require.NoError(t, err)
		<-watch.Changed()
		_, err = watch.Update(t.Context(), &everything{})
		require.NoError(t, err)
		require.Equal(t, 2.0, w.value("kates_query_invalid_objects", "query=Hosts"), "each watch leaves it out")

		// requests that are refused, fail, and are for what does not exist
		for _, rule := range []*katestest.Rule{
			w.faults.On(katestest.Match{Verb: "update", Resource: "secrets"}).Status(http.StatusForbidden, peculiar, 0),
			w.faults.On(katestest.Match{Verb: "patch", Resource: "secrets"}).Fail(errors.New(peculiar)),
		} {
			defer rule.Stop()
		}
		secret := &kates.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: peculiar, Name: peculiar}}
		require.Error(t, w.client.Update(t.Context(), secret, nil))
		require.Error(t, w.client.Patch(t.Context(), secret, kates.MergePatchType, []byte(`{"data":{"peculiar":"eA=="}}`), nil))
		require.Error(t, w.client.Create(t.Context(), secret, nil))
		for _, resource := range []schema.GroupVersionResource{
			{Version: "v1", Resource: peculiar}, {Group: peculiar, Version: peculiar, Resource: peculiar},
		} {
			_, err := w.client.DynamicInterface().Resource(resource).Namespace(peculiar).Get(t.Context(), peculiar, metav1.GetOptions{}, peculiar)
			require.Error(t, err)
		}
		_, err = w.client.DynamicInterface().Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).
			Namespace(peculiar).Get(t.Context(), peculiar, metav1.GetOptions{}, peculiar)
		require.Error(t, err)
		require.Positive(t, w.value("kates_requests_total", "resource=other", "code=404"))
		require.Positive(t, w.value("kates_requests_total", "verb=update", "resource=secrets.v1", "code=403"))

		for _, family := range w.gather() {
			assert.NotContains(t, strings.ToLower(family.String()), peculiar)
			assert.NotContains(t, family.String(), "eA==")
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// seriesOf is how many series a program makes in a cluster of so many namespaces.
func seriesOf(t *testing.T, namespaces int) (n int) {
	synctest.Test(t, func(t *testing.T) {
		var objects []kates.Object
		var names []string
		for i := range namespaces {
			name := fmt.Sprintf("ns-%d", i)
			names = append(names, name)
			objects = append(objects, configMap(name, "settings"))
		}
		w := newWorld(t, katestest.WithObjects(objects...), katestest.WithoutMutationDetector())
		ctx, cancel := context.WithCancel(t.Context())
		calls, ended := make(chan string, 10*namespaces), make(chan error, 1)
		go func() {
			ended <- kates.RunEach(ctx, w.client, func(_ context.Context, key string, _ *maps) error {
				calls <- key
				return nil
			}, kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace})
		}()
		watch, err := kates.Watch[maps](t.Context(), w.client.With(kates.WithName("some")),
			kates.Query{Name: "ConfigMaps", Namespaces: names[:min(namespaces, 50)]})
		require.NoError(t, err)
		<-watch.Changed()
		_, err = watch.Update(t.Context(), &maps{})
		require.NoError(t, err)
		for range namespaces {
			<-calls
		}
		require.Equal(t, float64(namespaces), w.value("kates_partitions"))
		for _, name := range names[:min(namespaces, 100)] {
			require.NoError(t, w.client.Get(t.Context(), configMap(name, "settings"), nil))
			require.NoError(t, w.client.Delete(t.Context(), configMap(name, "settings"), nil))
		}
		synctest.Wait()
		n = w.series()
		cancel()
		require.NoError(t, <-ended)
	})
	return n
}

func TestTheNumberOfSeriesDoesNotDependOnTheCluster(t *testing.T) {
	assert.Equal(t, seriesOf(t, 2), seriesOf(t, 1000))
}
