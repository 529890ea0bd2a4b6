package traffic

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// many makes many healthy objects, and what is right there.
func (w *world) many() (routes []healthy) {
	w.create(webGateway(), w.authority.secret("tls", "*.tls.test"))
	for n := range 60 {
		service, host := fmt.Sprint("many-", n), fmt.Sprint(n, ".many.test")
		w.service(service, 1+n%3)
		switch {
		case n%3 == 0:
			w.create(route(service, host, to{"/", service}))
		case n%3 == 1:
			w.create(ingress(service, host, to{"/", service}))
		default:
			host = fmt.Sprint(n, ".tls.test")
			w.create(withTLS(ingress(service, host, to{"/", service}), "tls"))
			routes = append(routes, healthy{"https://" + host + "/a?b", service})
			routes = append(routes, healthy{"http://" + host + "/a?b", ""})
			continue
		}
		routes = append(routes, healthy{"http://" + host + "/a?b", service})
	}
	return routes
}

// A connection is reset, and not refused, if it comes while nginx checks its first configuration:
// then it listens for a moment, and accepts none.
func TestAStartServesEverythingOrRefusesConnections(t *testing.T) {
	w := newWorld(t)
	routes := w.many()
	w.service("a", 1)
	w.makeBad()
	g := w.gateway()
	web := w.web(g.address, anew)
	var refused, right atomic.Int64
	pass := func() error {
		for _, h := range routes {
			switch err := h.wrong(web); {
			case err == nil:
				right.Add(1)
			case right.Load() > 0 || !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ECONNRESET):
				return fmt.Errorf("after %d right answers: %w", right.Load(), err)
			default:
				refused.Add(1)
			}
		}
		return nil
	}
	polled := make(chan error, 1)
	first := make(chan struct{})
	go func() {
		err := pass()
		close(first)
		for err == nil && right.Load() < int64(5*len(routes)) && w.Context().Err() == nil {
			err = pass()
		}
		polled <- err
	}()
	<-first // nothing serves there yet
	require.Zero(t, right.Load())
	g.serve()
	require.NoError(t, <-polled)
	w.seesBad()
	require.NoError(t, pass())
	t.Logf("%d connections refused, then %d answers, all right", refused.Load(), right.Load())
}
