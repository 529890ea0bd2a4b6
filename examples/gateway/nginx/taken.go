package nginx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Taken says that nginx cannot listen somewhere: another process does, or the machine has no such
// address.
type Taken struct {
	Address string // as of a Server
	Port    int
	Message string
}

func takenAt(at netip.AddrPort, why string) Taken {
	t := Taken{Port: int(at.Port()), Message: fmt.Sprintf("nginx cannot listen at %s: %s", at, why)}
	if !at.Addr().IsUnspecified() {
		t.Address = at.Addr().String()
	}
	return t
}

var (
	listenLine = regexp.MustCompile(`(?m)^ *listen ([^ ;"]+)`)
	// cannotBind is what nginx says when it checks a configuration. Of a port that is in use it says
	// nothing then: it may be its own.
	cannotBind = regexp.MustCompile(`^(?:bind\(\) to|socket\(\)) (\S+) failed \((.*)\)$`)
)

// listened returns where a rendered configuration has nginx listen. At a port at which it listens
// at all addresses, it does not listen at each.
func listened(text []byte) []netip.AddrPort {
	var all []netip.AddrPort
	for _, m := range listenLine.FindAllSubmatch(text, -1) {
		at := string(m[1])
		if !strings.Contains(at, ":") {
			at = "0.0.0.0:" + at
		}
		if where, err := netip.ParseAddrPort(at); err == nil {
			all = append(all, where)
		}
	}
	isOfAll := func(at netip.AddrPort) netip.AddrPort {
		if at.Addr().Is4() {
			return netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
		}
		return netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port())
	}
	all = slices.DeleteFunc(all, func(at netip.AddrPort) bool {
		return !at.Addr().IsUnspecified() && slices.Contains(all, isOfAll(at))
	})
	slices.SortFunc(all, netip.AddrPort.Compare)
	return slices.Compact(all)
}

// taken returns where a configuration has nginx listen, and it cannot. An nginx that runs is not
// asked about the addresses that it has. To those of an nginx that has ended its last workers may
// still cling: they get some time if they were told to end.
func (n *Nginx) taken(ctx context.Context, r Rendering, running, dismissed bool) (all []Taken) {
	text, err := os.ReadFile(n.path("nginx.conf")) // none: nginx has never run
	if running && err != nil {
		return nil // what it has is not known
	}
	had := listened(text)
	ctx, cancel := context.WithTimeout(ctx, n.options.ReloadTimeout)
	defer cancel()
	for _, at := range listened(r.Text) {
		ours := slices.Contains(had, at)
		if running && ours {
			continue
		}
		err := tryToListen(at)
		for err != nil && ours && dismissed && ctx.Err() == nil {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
			err = tryToListen(at)
		}
		if err != nil {
			all = append(all, takenAt(at, err.Error()))
		}
	}
	return slices.CompactFunc(all, func(a, b Taken) bool { return a.Address == b.Address && a.Port == b.Port })
}

// tryToListen listens for a moment, as nginx does when it checks a configuration.
func tryToListen(at netip.AddrPort) error {
	network := "tcp4"
	if at.Addr().Is6() {
		network = "tcp6" // IPv6 alone, as of nginx
	}
	l, err := net.Listen(network, at.String())
	if err != nil {
		var number syscall.Errno
		if errors.As(err, &number) {
			return number
		}
		return err
	}
	return l.Close()
}

// refusedAddress returns the address in a message of nginx that it cannot listen there.
func refusedAddress(message string) (Taken, bool) {
	m := cannotBind.FindStringSubmatch(message)
	if m == nil {
		return Taken{}, false
	}
	at, err := netip.ParseAddrPort(m[1])
	return takenAt(at, cmp.Or(m[2], message)), err == nil
}
