package kates_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

type justPods struct{ Pods []*kates.Pod }

func TestThatTheServerCannotBeReachedIsTheFirstThatIsSaid(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	keyed := kates.Query{Name: "Pods", Key: kates.ByNamespace}
	for address, why := range map[string]string{closed.URL: "connection refused", untrusted.URL: "certificate signed by unknown authority"} {
		client, err := kates.NewClientFromRESTConfig(&rest.Config{Host: address})
		require.NoError(t, err)
		defer client.Close()
		for doing, do := range map[string]func(context.Context) error{
			`run kates_test.justPods: watch kates_test.justPods: query "Pods": `: func(ctx context.Context) error {
				return kates.Run(ctx, client, func(context.Context, *justPods) error { return nil })
			},
			`run kates_test.justPods: watch each kates_test.justPods: query "Pods": `: func(ctx context.Context) error {
				return kates.RunEach(ctx, client, func(context.Context, string, *justPods) error { return nil }, keyed)
			},
			`watch kates_test.justPods: query "Pods": `:      func(ctx context.Context) error { _, err := kates.Watch[justPods](ctx, client); return err },
			`watch each kates_test.justPods: query "Pods": `: func(ctx context.Context) error { _, err := kates.WatchEach[justPods](ctx, client, keyed); return err },
			`watch: query "Pods": `: func(ctx context.Context) error {
				_, err := client.Watch(ctx, kates.Query{Name: "Pods", Kind: "Pod.v1."})
				return err
			},
		} {
			err := do(t.Context())
			require.Error(t, err)
			assert.Regexp(t, "^cannot reach the API server at "+address+": .*"+why, err.Error())
			assert.Contains(t, err.Error(), " ("+doing+`look up kind "Pod.v1`)
			assert.ErrorIs(t, err, kates.ErrIncompleteDiscovery)
			var request *url.Error
			assert.ErrorAs(t, err, &request)
		}
		// On a slow machine the time is up during the first request.
		for limit := 100 * time.Millisecond; ; limit *= 2 {
			soon, cancel := context.WithTimeout(t.Context(), limit)
			err = client.WaitFor(soon, "pods")
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if strings.Contains(err.Error(), "(last: cannot reach the API server at "+address) {
				break
			}
			require.Less(t, limit, time.Minute, "%v", err)
		}
	}
}

func TestAServerThatRefusesCanBeReached(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer server.Close()
	client, err := kates.NewClientFromRESTConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	defer client.Close()
	_, err = kates.Watch[justPods](t.Context(), client)
	assert.ErrorContains(t, err, "watch kates_test.justPods: query \"Pods\": look up kind \"Pod.v1\": discovery is incomplete: reading it is forbidden")
}
