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
		"WithInterval is -1ns: it cannot be negative; 0 signals every change":    kates.WithInterval(-1),
		"the quiet time of WithDebounce is -1s: it cannot":                       kates.WithDebounce(-time.Second, 0),
		"the longest delay of WithDebounce is -1s: it cannot":                    kates.WithDebounce(0, -time.Second),
		"WithOverdue is -1s: it cannot":                                          kates.WithOverdue(-time.Second),
		"WithGrace is -1s: it cannot be negative; 0 ends it at once":             kates.WithGrace(-time.Second),
		"WithIdleTimeout is -1s: it cannot":                                      kates.WithIdleTimeout(-time.Second),
		"WithKindPoll is -1s: it cannot":                                         kates.WithKindPoll(-time.Second),
		"WithPendingWrites is -1: it cannot":                                     kates.WithPendingWrites(-1),
		"WithPagedLists is -1: it cannot be negative; 0 is 500":                  kates.WithPagedLists(-1),
		"the burst of WithRateLimit is -1: it cannot":                            kates.WithRateLimit(1, -1),
		`invalid namespace "X y": a lowercase RFC 1123 label must consist of lo`: kates.WithNamespace("X y"),
	} {
		for name, client := range clients {
			_, err := client(option, kates.WithInterval(0), kates.WithGrace(0))
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
