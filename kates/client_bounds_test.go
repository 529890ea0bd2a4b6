package kates_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// endlessly answers every request with something that never ends.
type endlessly struct {
	status int
	start  string
}

func (e *endlessly) serve(t *testing.T) *rest.Config {
	t.Helper()
	return served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.status)
		endless(e.start, "x")(w, r)
	}))
}

// served is a server in memory, which works in a bubble of synctest.
func served(t *testing.T, by http.Handler) *rest.Config {
	t.Helper()
	network := katestest.NewNetwork(t)
	listener, err := network.Listen("server.test:80")
	require.NoError(t, err)
	server := &http.Server{Handler: by}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		network.Reset()
		_ = server.Close()
		<-ended
	})
	return &rest.Config{Host: "http://server.test:80", Dial: network.DialContext}
}

func TestAnAnswerThatNeverEndsEndsTheRequest(t *testing.T) {
	for name, e := range map[string]*endlessly{
		"an answer": {status: http.StatusOK, start: `{"metadata":{"name":"`}, "an error": {status: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mapper, err := katestest.NewMapper()
				require.NoError(t, err)
				config, bound := e.serve(t), kates.Tuning{MaxObjectBytes: smallObjects}
				known, err := kates.NewClientFromRESTConfig(config, bound, kates.WithRESTMapper(mapper), kates.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				defer known.Close()
				unknown, err := kates.NewClientFromRESTConfig(config, bound, kates.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				defer unknown.Close()
				untouched := kates.ConfigMap{}
				for what, do := range map[string]func(context.Context) error{
					"get":       func(ctx context.Context) error { return known.Get(ctx, configMap("x"), &untouched) },
					"create":    func(ctx context.Context) error { return known.Create(ctx, configMap("x"), &untouched) },
					"delete":    func(ctx context.Context) error { return known.Delete(ctx, configMap("x"), nil) },
					"discovery": func(ctx context.Context) error { _, err := kates.Watch[badlyTyped](ctx, unknown); return err },
					"version":   func(context.Context) error { _, err := known.ServerVersion(); return err },
				} {
					assert.ErrorContains(t, do(t.Context()), "longer than the client reads", what)
				}
				assert.Empty(t, untouched)
			})
		})
	}
}
