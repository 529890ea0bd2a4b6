package loops

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
)

// upstreams are those whose endpoints are sent to nginx: of the configuration that serves, and of
// one that nginx is about to load.
type upstreams struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (u *upstreams) init() { u.ids = map[string]bool{} }

// add adds those of a configuration that may be loaded.
func (u *upstreams) add(c *nginx.Config) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id := range c.Upstreams {
		u.ids[id] = true
	}
}

// keepOnly forgets all but those of a configuration that serves.
func (u *upstreams) keepOnly(c *nginx.Config) {
	u.mu.Lock()
	maps.DeleteFunc(u.ids, func(id string, _ bool) bool { _, used := c.Upstreams[id]; return !used })
	u.mu.Unlock()
}

func (u *upstreams) all() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.ids))
}

// runEndpoints runs on each replica whose nginx takes endpoints without a reload. runConfigure
// cannot do it: that waits for nginx while it checks a configuration and loads it, for seconds if
// it is large.
func (g *Gateway) runEndpoints(ctx context.Context) error {
	var follow translate.Endpoints
	push := func(ctx context.Context, snap *translate.Snapshot) error {
		_, err := g.Nginx.Push(ctx, follow.Of(snap, g.translateOptions(snap), g.upstreams.all()))
		return err
	}
	return kates.Run(ctx, g.Client, push, append(g.queries(), kates.WithName("endpoints"),
		kates.WithInterval(endpointsInterval), kates.WithBackoff(firstPause, longestPause),
		kates.WithTriggers(g.wakes.push))...)
}
