package dial

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"time"
)

// Guard makes the connections to one cluster.
type Guard struct {
	Rules *Rules
	// Host of the cluster's server. A connection to another one is to a proxy.
	Host string
	// Proxy that the program itself connects through, as the transport dials it (see [Address]), if
	// there is one. It is trusted, and what is behind it is checked like any other.
	Proxy string
}

// Address returns the address that a transport dials for a proxy.
func Address(proxy *url.URL) string {
	port := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	return net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), port))
}

// DialContext connects to an address if the rules allow it. It is made for the Dial of a
// rest.Config.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil && !strings.HasPrefix(network, "tcp") {
		err = fmt.Errorf("a connection over %s is not for API servers", network)
	}
	behind := !sameHost(host, g.Host)
	trusted := behind && address == g.Proxy // a server of the same host is not told from the proxy
	if err == nil && !trusted {
		err = g.Rules.CheckHost(host)
	}
	if err == nil && behind {
		err = g.Rules.CheckBehindProxy(g.Host)
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	listed := g.Rules.lists(host)
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second} // as client-go's
	dialer.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil || trusted {
			return err
		}
		return g.Rules.checkAddress(to.Addr(), listed)
	}
	return dialer.DialContext(ctx, network, address)
}

// sameHost reports whether two texts are the same host.
func sameHost(a, b string) bool {
	x, isX := Literal(a)
	y, isY := Literal(b)
	return isX && isY && x == y || canonical(a) == canonical(b)
}

// Guarded reports whether a function is the DialContext of a guard. Such a one does not lead to
// another server than net's would.
func Guarded(dial func(context.Context, string, string) (net.Conn, error)) bool {
	return reflect.ValueOf(dial).Pointer() == reflect.ValueOf((&Guard{}).DialContext).Pointer()
}
