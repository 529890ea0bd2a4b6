package connection

import (
	"context"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Link is a client's way to its cluster: the connection in use, which [Link.Exchange] replaces.
// Each request takes the connection that is in use when it is made, and stays with it to its end.
// The clients that a link returns are good for all its connections.
type Link struct {
	now atomic.Pointer[Connection]

	mu     lockorder.Mutex[lockorder.Link]
	former map[*Connection]bool // that requests may still use
}

// NewLink returns a link with its first connection.
func NewLink(c *Connection) *Link {
	l := &Link{former: make(map[*Connection]bool)}
	l.now.Store(c)
	return l
}

// Now returns the connection in use.
func (l *Link) Now() *Connection { return l.now.Load() }

// Transport is that of the connection in use.
func (l *Link) Transport() http.RoundTripper { return l.Now().http.Transport }

// Exchange makes another connection the one in use. The former one is closed when no request uses
// it any more. Exchange does not wait for that.
func (l *Link) Exchange(next *Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.now.Swap(next)
	l.former[old] = true
	old.open.Retire(old.closeIdle, func() { l.forget(old) })
}

func (l *Link) forget(c *Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.former, c)
}

// CloseIdle closes the connections in use that are idle. A nil link has none.
func (l *Link) CloseIdle() {
	if l != nil {
		l.Now().closeIdle()
	}
}

// Close closes all connections that no request uses, and waits. A nil link has none.
func (l *Link) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	all := []*Connection{l.Now()}
	for c := range l.former {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		c.Close()
		c.open.Wait()
	}
}

// Plain returns a REST client for untyped objects.
func (l *Link) Plain() rest.Interface { return &linked{l, untyped} }

// Metadata returns a REST client for metadata alone.
func (l *Link) Metadata() rest.Interface { return &linked{l, metadata} }

// Dynamic returns a dynamic client.
func (l *Link) Dynamic() dynamic.Interface { return dynamic.New(&linked{l, untyped}) }

// Leases returns a dynamic client without a rate limit.
func (l *Link) Leases() dynamic.Interface { return dynamic.New(&linked{l, leases}) }

// Discovery returns a discovery client for one cache, whose answers have so many bytes at most.
func (l *Link) Discovery(most int64) discovery.DiscoveryInterface {
	return &boundedDiscovery{DiscoveryClient: discovery.NewDiscoveryClient(&linked{l, kinds}), most: most}
}

// linked is the REST client of a link. Each request is one of the connection in use.
type linked struct {
	link *Link
	is   purpose
}

func (l *linked) now() rest.Interface { return l.link.Now().clients[l.is] }

func (l *linked) GetRateLimiter() flowcontrol.RateLimiter { return l.now().GetRateLimiter() }
func (l *linked) Verb(verb string) *rest.Request          { return l.now().Verb(verb) }
func (l *linked) Post() *rest.Request                     { return l.now().Post() }
func (l *linked) Put() *rest.Request                      { return l.now().Put() }
func (l *linked) Patch(as types.PatchType) *rest.Request  { return l.now().Patch(as) }
func (l *linked) Get() *rest.Request                      { return l.now().Get() }
func (l *linked) Delete() *rest.Request                   { return l.now().Delete() }
func (l *linked) APIVersion() schema.GroupVersion         { return l.now().APIVersion() }

// For returns the client for a request with a context: that of the connection which the context
// names, see [Over], or else the client itself.
func For(ctx context.Context, client rest.Interface) rest.Interface {
	l, ok := client.(*linked)
	if !ok {
		return client
	}
	if c, ok := ctx.Value(overKey{}).(*Connection); ok {
		return c.clients[l.is]
	}
	return l.now()
}
