package kates_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestAnOptionThatMakesNoSenseIsAnErrorThatSaysWhatDoes(t *testing.T) {
	fake := katestest.New(t)
	clients := map[string]func(...kates.Option) (*kates.Client, error){
		"dynamic": func(o ...kates.Option) (*kates.Client, error) {
			return kates.NewClientFromDynamic(fake.Dynamic, fake.Mapper, o...)
		},
		"REST": func(o ...kates.Option) (*kates.Client, error) {
			return kates.NewClientFromRESTConfig(&rest.Config{Host: "http://nowhere.invalid"}, o...)
		},
	}
	for want, option := range map[string]kates.Option{
		"WithInterval is -1ns: it cannot be negative; 0 signals every change":                  kates.WithInterval(-1),
		"the quiet time of WithDebounce is -1s: it cannot":                                     kates.WithDebounce(-time.Second, 0),
		"the longest delay of WithDebounce is -1s: it cannot":                                  kates.WithDebounce(0, -time.Second),
		"WithOverdue is -1s: it cannot":                                                        kates.WithOverdue(-time.Second),
		"Tuning.Linger is -1s: it cannot be negative; 0 ends a stream at once":                 kates.Tuning{Linger: -time.Second},
		"Tuning.IdleTimeout is -1s: it cannot":                                                 kates.Tuning{IdleTimeout: -time.Second},
		"Tuning.KindPoll is -1s: it cannot":                                                    kates.Tuning{KindPoll: -time.Second},
		"Tuning.PendingWrites is -1: it cannot":                                                kates.Tuning{PendingWrites: -1},
		"Tuning.PageSize is -1: it cannot be negative; 0 is the default, pages of about 4 MiB": kates.Tuning{PageSize: -1},
		"Tuning.MaxObjectBytes is -1: it cannot be negative; 0 is the default, 64 MiB":         kates.Tuning{MaxObjectBytes: -1},
		`Tuning.Lists is "pages": there are AutomaticLists, Paged`:                             kates.Tuning{Lists: "pages"},
		"an option is nil":                           nil,
		"WithScheme(nil): ":                          kates.WithScheme(nil),
		"WithRESTMapper(nil): ":                      kates.WithRESTMapper(nil),
		"WithLogger(nil): ":                          kates.WithLogger(nil),
		"WithRateLimit(0, …) would allow no request": kates.WithRateLimit(0, 5),
		"the longest delay of WithDebounce is 1s, and its quiet time 2s":         kates.WithDebounce(2*time.Second, time.Second),
		"WithDebounce(0, 1s) has no quiet time":                                  kates.WithDebounce(0, time.Second),
		"a name has at most 128 bytes, all of printable":                         kates.WithFieldManager(strings.Repeat("a", 129)),
		`the field manager "a\nb": `:                                             kates.WithFieldManager("a\nb"),
		"the burst of WithRateLimit is -1: it cannot":                            kates.WithRateLimit(1, -1),
		"WithMaxObjects is -1: it cannot be negative; 0 is no bound":             kates.WithMaxObjects(-1),
		`invalid namespace "X y": a lowercase RFC 1123 label must consist of lo`: kates.WithNamespace("X y"),
	} {
		for name, client := range clients {
			_, err := client(option, kates.WithInterval(0), kates.Tuning{Linger: 0})
			assert.ErrorContains(t, err, want, name)
		}
		of, watches := option.(kates.WatchOption)
		if !watches {
			continue
		}
		c := fake.Client.With(of)
		for call, err := range map[string]error{
			"Watch":     second(kates.Watch[maps](t.Context(), c)),
			"NewLister": second(kates.NewLister[*kates.Pod](t.Context(), c, kates.Query{})),
			"Run":       kates.Run(t.Context(), fake.Client, func(context.Context, *maps) error { return nil }, of),
			"RunEach": kates.RunEach(t.Context(), fake.Client, func(context.Context, string, *maps) error { return nil },
				kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace}, of),
		} {
			assert.ErrorContains(t, err, want, call)
		}
	}
	for _, q := range []kates.Query{{Namespace: "X y"}, {Namespaces: []string{"a", "X y"}}, {Namespace: "Prod"}} {
		q.Name, q.Kind = "Pods", "pods"
		const says = "a lowercase RFC 1123 label must consist of"
		assert.ErrorContains(t, second(fake.Client.Watch(t.Context(), q)), says)
		assert.ErrorContains(t, second(kates.NewLister[*kates.Pod](t.Context(), fake.Client, q)), says)
		assert.ErrorContains(t, fake.Client.List(t.Context(), q, &[]*kates.Pod{}), says)
	}
}

func TestNilIsAnErrorAndNoPanic(t *testing.T) {
	fake := katestest.New(t, katestest.WithObjects(configMap("x")))
	c := fake.Client.With(nil)
	assert.ErrorContains(t, second(kates.Watch[maps](t.Context(), c)), "an option of With is nil")
	assert.ErrorContains(t, kates.Run(t.Context(), fake.Client, func(context.Context, *maps) error { return nil }, nil), "an option is nil")

	finish := func(context.Context, *kates.ConfigMap) error { return nil }
	x, long := configMap("x"), kates.FieldManager(strings.Repeat("é", 65))
	for want, option := range map[string]kates.WriteOption{"a write option is nil": nil, "at most 128 bytes": long} {
		for call, err := range map[string]error{
			"Create": fake.Client.Create(t.Context(), configMap("y"), nil, option),
			"Update": fake.Client.Update(t.Context(), x, nil, option),
			"Delete": fake.Client.Delete(t.Context(), x, nil, option),
			"Patch":  fake.Client.Patch(t.Context(), x, kates.MergePatchType, []byte(`{}`), nil, option),
			"Modify": second(kates.Modify(t.Context(), fake.Client, x, func(*kates.ConfigMap) error { return nil }, option)),
			"ModifyStatus": second(kates.ModifyStatus(t.Context(), fake.Client, &kates.Pod{ObjectMeta: x.ObjectMeta},
				func(*kates.Pod) error { return nil }, option)),
			"DeleteAll":  fake.Client.DeleteAll(t.Context(), kates.Query{Kind: "configmaps"}, option),
			"ApplyOwned": second(fake.Client.ApplyOwned(t.Context(), kates.OwnedSet{Owner: x, SetName: "set"}, option)),
			"UnderFinalizer": kates.UnderFinalizer(t.Context(), fake.Client, x, "example.com/f",
				finish, finish, option),
		} {
			assert.ErrorContains(t, err, want, call)
		}
	}
	require.NoError(t, fake.Client.Get(t.Context(), x, nil), "nothing was sent")

	for name, q := range map[string]kates.Query{
		"Key":       {Key: kates.KeyOf[*kates.ConfigMap](nil)},
		"Signal":    {Signal: kates.SignalOf[*kates.ConfigMap](nil)},
		"Transform": {Transform: kates.TransformOf[*kates.ConfigMap](nil)},
	} {
		q.Name = "ConfigMaps"
		assert.ErrorContains(t, second(kates.Watch[maps](t.Context(), fake.Client, q)), "its "+name+" makes no sense: it was made of a function that is nil")
	}
	for _, q := range []kates.Query{{Signal: kates.AnySignal(kates.LabelsChanged, kates.SignalOf[metav1.Object](nil))}, {Transform: kates.Transforms(kates.DropManagedFields, kates.TransformOf[metav1.Object](nil))}, {Where: kates.WhereOf[metav1.Object](nil)}} {
		q.Name = "ConfigMaps"
		assert.ErrorContains(t, second(kates.Watch[maps](t.Context(), fake.Client, q)), "made of a function that is nil")
	}
	type tagged struct {
		ConfigMaps []*kates.ConfigMap
		Deltas     []*kates.Delta `kates:"configmaps"`
	}
	assert.ErrorContains(t, second(kates.Watch[tagged](t.Context(), fake.Client)), "field Deltas has a kates tag, but a field for deltas is no query")
}

// warning answers each request with a warning, and a ConfigMap.
type warning struct{ text string }

func (w *warning) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{"Content-Type": {"application/json"}, "Warning": {`299 - "` + w.text + `"`, `214 - "of a proxy"`}}
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":"1"}}`
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestWarningsOfTheServerGoToTheProgramsLoggerOnce(t *testing.T) {
	out, server := &logged{}, &warning{"v1 ConfigMap is deprecated"}
	options := []kates.Option{
		kates.WithLogger(slog.New(slog.NewTextHandler(out, nil))), kates.WithRESTMapper(katestest.New(t).Mapper),
	}
	get := func(config *rest.Config) {
		t.Helper()
		c, err := kates.NewClientFromRESTConfig(config, options...)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.Get(t.Context(), configMap("x"), nil))
		require.NoError(t, c.Patch(t.Context(), configMap("x"), kates.MergePatchType, []byte(`{}`), nil))
	}
	get(&rest.Config{Host: "http://server.invalid", Transport: server})
	assert.Equal(t, 1, out.count(`level=INFO msg="the server warns" warning="v1 ConfigMap is deprecated"`), &out.text)
	server.text = "another"
	get(&rest.Config{Host: "http://server.invalid", Transport: server})
	assert.Equal(t, 1, out.count("warning=another"), &out.text)
	server.text = "for the program"
	get(&rest.Config{Host: "http://server.invalid", Transport: server, WarningHandler: rest.NoWarnings{}})
	assert.Zero(t, out.count("for the program"), "the configuration has a handler of its own")
	assert.Zero(t, out.count("proxy"))
}
