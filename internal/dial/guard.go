package dial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
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
}

// DialContext connects to an address if the rules allow it. It is made for the Dial of a
// rest.Config.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil && !strings.HasPrefix(network, "tcp") {
		err = fmt.Errorf("a connection over %s is not for API servers", network)
	}
	if err == nil {
		err = g.Rules.CheckHost(host)
	}
	if err == nil && !sameHost(host, g.Host) {
		err = g.Rules.CheckBehindProxy(g.Host)
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	listed := g.Rules.lists(host)
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second} // as client-go's
	dialer.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
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
