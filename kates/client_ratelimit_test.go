package kates_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kates-go/kates/kates"
)

// versions answers every request with a version, at once.
type versions struct{}

func (versions) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"major":"1","minor":"37"}`)),
	}, nil
}

// TestARateLimitIsOneForAllRequestsOfAClient: that of the configuration, unless the option says
// another one. By default there is none.
func TestARateLimitIsOneForAllRequestsOfAClient(t *testing.T) {
	for name, c := range map[string]struct {
		config  rest.Config
		options []kates.Option
		want    time.Duration // for 21 requests
	}{
		"by default there is none":           {rest.Config{}, nil, 0},
		"that of the configuration":          {rest.Config{QPS: 2, Burst: 1}, nil, 10 * time.Second},
		"client-go's burst":                  {rest.Config{QPS: 1}, nil, 11 * time.Second},
		"the configuration's own limiter":    {rest.Config{RateLimiter: flowcontrol.NewTokenBucketRateLimiter(1, 1)}, nil, 20 * time.Second},
		"the option replaces it":             {rest.Config{QPS: 2, Burst: 1}, []kates.Option{kates.WithRateLimit(4, 1)}, 5 * time.Second},
		"the option has a burst":             {rest.Config{}, []kates.Option{kates.WithRateLimit(1, 20)}, time.Second},
		"below zero the option lifts it":     {rest.Config{QPS: 2, Burst: 1}, []kates.Option{kates.WithRateLimit(-1, 0)}, 0},
		"below zero there is none, as there": {rest.Config{QPS: -1}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.config.Host, c.config.Transport = "https://example.com", versions{}
				if c.config.RateLimiter != nil { // made anew, it takes the bubble's clock
					c.config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(1, 1)
				}
				client, err := kates.NewClientFromRESTConfig(&c.config, c.options...)
				require.NoError(t, err)
				defer client.Close()
				start := time.Now()
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						for range 7 {
							_, err := client.With().ServerVersion()
							assert.NoError(t, err)
						}
					})
				}
				all.Wait()
				assert.InDelta(t, c.want.Seconds(), time.Since(start).Seconds(), 0.001)
			})
		})
	}
}
