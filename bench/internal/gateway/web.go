package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kates-go/kates/bench/internal/workload"
	"github.com/kates-go/kates/examples/gateway/nginx"
)

// Seen is a change that is in effect: nginx has these endpoints, or serves this path.
type Seen struct {
	Ingress  bool   `json:"ingress,omitempty"`
	Key      string `json:"key"`
	Mark     int    `json:"mark"`
	UnixNano int64  `json:"unixNano"`
}

// engine is a *nginx.Nginx, or what a test has in its place.
type engine interface {
	Apply(context.Context, *nginx.Config) (nginx.Outcome, error)
	Try(context.Context, *nginx.Config) (refused []nginx.Refusal, takesRest bool, err error)
	Push(ctx context.Context, upstreams map[string][]string) (int, error)
	Pushes() bool
	Alive() bool
	Stats() nginx.Stats
}

// Web is nginx, as both variants have it. All servers are at one address, so that several can be
// on one machine. Apply is for one goroutine, Push for another one, the other methods are for any.
type Web struct {
	engine
	address string
	active  chan struct{} // closed when a configuration is active for the first time

	mu      sync.Mutex
	applied int
	pushes  int
	marks   map[string]int      // by Seen.Key
	seen    []Seen              // since the last call of Take
	last    *nginx.Config       // the one that is active, but for endpoints
	pushed  map[string][]string // the last endpoints
}

func newWeb(e engine, address string) *Web {
	return &Web{engine: e, address: address, active: make(chan struct{}), marks: map[string]int{}}
}

// Apply has nginx serve a configuration, and notes which changes are in effect after that.
func (w *Web) Apply(ctx context.Context, c *nginx.Config) (nginx.Outcome, error) {
	w.move(c)
	out, err := w.engine.Apply(ctx, c)
	if err == nil && len(out.Refused) == 0 {
		w.note(c, out.Active)
	}
	return out, err
}

// Try has nginx check a configuration.
func (w *Web) Try(ctx context.Context, c *nginx.Config) (refused []nginx.Refusal, takesRest bool, err error) {
	w.move(c)
	return w.engine.Try(ctx, c)
}

// move puts all servers at the address of this machine.
func (w *Web) move(c *nginx.Config) {
	for i := range c.Servers {
		c.Servers[i].Address = w.address
	}
}

// Push sends endpoints to nginx, and notes that it has them.
func (w *Web) Push(ctx context.Context, upstreams map[string][]string) (int, error) {
	n, err := w.engine.Push(ctx, upstreams)
	if err == nil {
		now := time.Now().UnixNano()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pushes++
		w.noteEndpoints(upstreams, now)
	}
	return n, err
}

func (w *Web) noteEndpoints(upstreams map[string][]string, now int64) {
	if w.last == nil {
		return // nginx has not been started yet
	}
	for id, endpoints := range upstreams {
		if !slices.Equal(endpoints, w.pushed[id]) { // else it is seen already, and this costs little
			w.see(false, id, workload.EndpointMark(endpoints), now)
		}
	}
	w.pushed = upstreams
}

// note looks at which paths nginx has now. Endpoints are noted by Push.
func (w *Web) note(c *nginx.Config, active bool) {
	now := time.Now().UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.applied++
	if !active {
		return
	}
	for _, s := range c.Servers {
		for _, l := range s.Locations {
			w.see(true, s.Host, workload.PathMark(l.Path), now)
		}
	}
	if w.last == nil {
		close(w.active)
	}
	w.last = c
}

func (w *Web) see(ingress bool, key string, mark int, now int64) {
	if mark > 0 && w.marks[key] != mark {
		w.marks[key] = mark
		w.seen = append(w.seen, Seen{ingress, key, mark, now})
	}
}

// Take returns what was seen since the last call.
func (w *Web) Take() []Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.seen
	w.seen = nil
	return all
}

// Counts returns how often Apply and Push have ended without an error.
func (w *Web) Counts() (applied, pushes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applied, w.pushes
}

// Fingerprint is a hash of what nginx serves: hosts, paths and endpoints. What names a server's
// objects by their UIDs and versions does not count.
func (w *Web) Fingerprint() (string, error) {
	w.mu.Lock()
	c, upstreams := w.last, w.pushed
	w.mu.Unlock()
	if c == nil {
		return "", fmt.Errorf("nothing is served yet")
	}
	type location struct {
		Path     string
		Match    nginx.PathMatch
		Backends [][]nginx.Backend
	}
	type server struct {
		Host      string
		Port      int
		Locations []location
	}
	var servers []server
	for _, s := range c.Servers {
		one := server{Host: s.Host, Port: s.Port}
		for _, l := range s.Locations {
			at := location{Path: l.Path, Match: l.Match}
			for _, r := range l.Rules {
				at.Backends = append(at.Backends, r.Backends)
			}
			one.Locations = append(one.Locations, at)
		}
		servers = append(servers, one)
	}
	text, err := json.Marshal(map[string]any{
		"settings": c.Settings, "servers": servers, "upstreams": upstreams, "certificates": slices.Sorted(maps.Keys(c.Certificates)),
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
