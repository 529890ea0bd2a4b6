package traffic

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var measured = flag.Int("measured", 20, "how many Ingresses are measured, each for a second and more; the documentation has 50")

// TestTheTimeFromAChangeToTheFirstRequestThatItServes runs beside no other test, and prints
// figures for the documentation, of twice as many endpoints as Ingresses.
func TestTheTimeFromAChangeToTheFirstRequestThatItServes(t *testing.T) {
	w := worldIn(t, shared.Cluster(t))
	a := w.app()
	g := w.gateway().serve()
	web := w.web(g.address, anew)
	l := w.load(a.routes, g)

	endpoint := w.service("endpoint", 1)
	w.create(ingress("endpoint", "endpoint.test", to{"/", "endpoint"}))
	w.eventually(func() bool { return healthy{"http://endpoint.test/", "endpoint"}.wrong(web) == nil }, "it serves")
	var endpoints, ingresses []time.Duration
	for range 2 * *measured {
		w.pause(100 * time.Millisecond)
		next := w.pod("endpoint")
		endpoint.add(next)
		endpoint.remove()
		endpoint.write()
		begin := time.Now()
		for next.served.Load() == 0 && time.Since(begin) < time.Minute {
			assert.NoError(t, healthy{"http://endpoint.test/", "endpoint"}.wrong(web))
		}
		endpoints = append(endpoints, time.Since(begin))
		require.NotZero(t, next.served.Load(), "requests of the new endpoint")
	}
	for n := range *measured { // each after a pause of more than the second between two reloads
		w.pause(100*time.Millisecond + time.Second)
		h := healthy{fmt.Sprintf("http://%d.new.test/", n), "b"}
		in := ingress(fmt.Sprint("new-", n), fmt.Sprintf("%d.new.test", n), to{"/", "b"})
		w.create(in)
		begin := time.Now()
		err := h.wrong(web)
		for err != nil && time.Since(begin) < time.Minute { // polls: the reload is what is measured
			err = h.wrong(web)
		}
		ingresses = append(ingresses, time.Since(begin))
		require.NoError(t, err)
	}
	l.halt()
	t.Logf("from the API server's answer to the first request: %s; %s", quantiles("endpoints", endpoints), quantiles("Ingresses", ingresses))
}

// pause lets a time pass that is no part of what is measured, and a little more by chance, so that
// changes come at any moment of the gateway's intervals.
func (w *world) pause(least time.Duration) {
	timer := time.NewTimer(least + rand.N(100*time.Millisecond))
	defer timer.Stop()
	<-timer.C
}

func quantiles(of string, all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("%d changes of %s, p50 %s, p99 %s, most %s", len(all), of, all[len(all)/2].Round(time.Millisecond),
		all[(len(all)*99+99)/100-1].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
}
