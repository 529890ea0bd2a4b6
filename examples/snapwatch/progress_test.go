package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/examples/snapwatch/model"
	"github.com/kates-go/kates/kates/katestest"
)

func TestALongFirstListTellsItsProgress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var many strings.Builder
		for i := range 200 {
			fmt.Fprintf(&many, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: m-%03d, namespace: prod}}\n", i)
		}
		c := newCluster(t, katestest.WithManifests(many.String()))
		slow := c.faults.On(listsOf("configmaps")).Stall(20_000)
		r := c.start("svc,configmaps")
		settle()
		assert.Empty(t, r.out.take())
		assert.Regexp(t, `^configmaps: listing, \d+ objects so far\n$`, r.err.take())
		slow.Stop()
		settle()
		assert.Contains(t, r.out.take(), "#1 services 1, configmaps 200\n")
		assert.Zero(t, r.stop(nil))
		assert.Empty(t, r.err.take())
	})
}

func TestEventsThatNoSnapshotShowsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start("deploy", "--interval=1m")
		settle()
		c.status(deployed("web", "False"))
		time.Sleep(10 * time.Second)
		r.out.take()
		for range 5 {
			c.status(deployed("web", "True"))
			c.status(deployed("web", "False"))
		}
		time.Sleep(2 * time.Minute)
		assert.Regexp(t, `#2 deployments 1 \(~1\); 10 events coalesced away\n$`, r.out.take())
		assert.Zero(t, r.stop(nil))
	})
}

func TestTroubleIsToldOnceAndItsEnd(t *testing.T) {
	var b strings.Builder
	begun := time.Now()
	at := begun.Add(tick)
	p := newProgress(&b, begun)
	say := func(state, err string, listed, number int) string {
		b.Reset()
		p.note(model.Picture{At: at, Number: number, Kinds: []model.Kind{{
			Name: "pods", Sample: model.Sample{State: state, Error: err, Listed: listed},
		}}})
		return b.String()
	}
	assert.Empty(t, say("waiting", "", 0, 0))
	at = begun
	assert.Empty(t, say("listing", "", 1, 0), "it does not take long yet")
	at = begun.Add(tick)
	assert.Equal(t, "pods: listing, 1 object so far\n", say("listing", "", 1, 0))
	assert.Empty(t, say("listing", "", 1, 0))
	assert.Equal(t, "pods: listing, 5 objects so far\n", say("listing", "", 5, 0))
	assert.Equal(t, "pods: retrying: no answer\\x1b[2J; from it\n", say("retrying", "no answer\x1b[2J\nfrom it", 0, 0))
	assert.Empty(t, say("retrying", "another text", 0, 0))
	assert.Equal(t, "pods: forbidden\n", say("forbidden", "", 0, 0))
	assert.Equal(t, "pods: synced again\n", say("synced", "", 0, 1))
	assert.Empty(t, say("synced", "", 9, 1))
	assert.Empty(t, say("listing", "", 9, 1), "a later list is no progress")
}
