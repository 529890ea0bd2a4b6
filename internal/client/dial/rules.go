package dial

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Rules say which hosts and addresses are allowed. The zero value allows all but the special ones:
// see [special].
type Rules struct {
	names    []string // in lower case; "*.x" stands for all names below x
	networks []netip.Prefix
}

// Parse reads a list of host names, addresses, and networks in the form of CIDR. If there are any,
// nothing else is allowed. A special address is allowed only by an entry for nothing but addresses
// that are special in the same way: 127.0.0.0/8, and not 0.0.0.0/0.
func Parse(list []string) (*Rules, error) {
	r := new(Rules)
	for _, entry := range list {
		switch network, err := parseNetwork(entry); {
		case err == nil:
			r.networks = append(r.networks, network)
		case isName(strings.TrimPrefix(entry, "*.")):
			r.names = append(r.names, canonical(entry))
		default:
			return nil, fmt.Errorf("%q is no host name, address or network", entry)
		}
	}
	return r, nil
}

// parseNetwork reads an address or a network. IPv4 addresses in the form of IPv6 are IPv4.
func parseNetwork(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		a, notAddress := netip.ParseAddr(text)
		if notAddress != nil || a.Zone() != "" {
			return network, err
		}
		network = netip.PrefixFrom(a, a.BitLen())
	}
	if network.Addr().Is4In6() && network.Bits() >= 96 {
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	return network.Masked(), nil
}

// isName reports whether a text is a host name in ASCII that no resolver takes for an address.
func isName(text string) bool {
	if _, address := Literal(text); address || text == "" {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
}

// canonical is a host name as it is compared.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// CheckHost returns why a host is refused, as far as that is known before its name is resolved.
func (r *Rules) CheckHost(host string) error {
	if a, ok := Literal(host); ok {
		return r.checkAddress(a, false)
	}
	if len(r.names) > 0 && len(r.networks) == 0 && !r.lists(host) {
		return refused(host, "not listed")
	}
	return nil
}

// specialNames are those that machines have for special addresses by themselves.
var specialNames = []string{
	"localhost", "localhost.localdomain", "localhost4", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback",
	"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
}

// CheckBehindProxy returns why a host is refused whose name a proxy resolves.
func (r *Rules) CheckBehindProxy(host string) error {
	name := canonical(host)
	_, address := Literal(host)
	switch {
	case address:
		return r.CheckHost(host)
	case r.lists(host):
		return nil
	case len(r.names)+len(r.networks) > 0:
		return refused(host, "behind a proxy, and its name is not listed")
	case slices.Contains(specialNames, name) || strings.HasSuffix(name, ".localhost") || !isName(host):
		return refused(host, "a name for a special address, behind a proxy")
	}
	return nil
}

// lists reports whether the rules have the name of a host.
func (r *Rules) lists(host string) bool {
	name := canonical(host)
	return slices.ContainsFunc(r.names, func(listed string) bool {
		above, below := strings.CutPrefix(listed, "*")
		return name == listed || below && strings.HasSuffix(name, above)
	})
}

// checkAddress returns why an address is refused. Listed: the name that it is the address of is
// among the rules.
func (r *Rules) checkAddress(a netip.Addr, listed bool) error {
	a = a.WithZone("").Unmap()
	for _, meant := range meanings(a) {
		for _, s := range special {
			if s.network.Contains(meant) && !r.opens(s.network, meant) {
				return refused(a.String(), s.is)
			}
		}
	}
	if listed || len(r.names)+len(r.networks) == 0 || slices.ContainsFunc(r.networks, func(n netip.Prefix) bool { return n.Contains(a) }) {
		return nil
	}
	return refused(a.String(), "not listed")
}

// opens reports whether the rules have an entry for an address that is for special addresses of
// this kind alone.
func (r *Rules) opens(network netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(r.networks, func(n netip.Prefix) bool {
		return n.Contains(a) && n.Bits() >= network.Bits()
	})
}

// Option is the name of the option of the sources that has the rules.
const Option = "Hosts"

func refused(what, is string) error {
	return fmt.Errorf("%q is refused: it is %s (the option %s of the source of clusters says what is allowed)", what, is, Option)
}
