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
	ids []string // in their order; a change makes another list
}

// add adds those of a configuration that may be loaded.
func (u *upstreams) add(c *nginx.Config) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.AppendSeq(slices.Clone(u.ids), maps.Keys(c.Upstreams))
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > len(u.ids) {
		u.ids = all
	}
}

// keepOnly forgets all but those of a configuration that serves.
func (u *upstreams) keepOnly(c *nginx.Config) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(u.ids), func(id string) bool { _, used := c.Upstreams[id]; return !used })
	if len(kept) < len(u.ids) {
		u.ids = kept
	}
}

func (u *upstreams) all() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ids
}

// runEndpoints runs on each replica whose nginx takes endpoints without a reload. runConfigure
// cannot do it: that waits for nginx while it checks a configuration and loads it, for seconds if
// it is large.
func (g *Gateway) runEndpoints(ctx context.Context) error {
	var follow translate.Endpoints
	push := func(ctx context.Context, snap *translate.Snapshot) error {
		lists, err := follow.Of(snap, g.translateOptions(snap), g.upstreams.all())
		if err == nil {
			_, err = g.Nginx.Push(ctx, lists)
		}
		return err
	}
	return kates.Run(ctx, g.Client, push, append(g.queries(), kates.WithName("endpoints"),
		kates.WithInterval(endpointsInterval), kates.WithBackoff(firstPause, longestPause),
		kates.WithTriggers(g.wakes.push))...)
}
