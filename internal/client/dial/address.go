package dial

import (
	"net/netip"
	"strconv"
	"strings"
)

// special are the networks that nobody means who names another machine's API server.
var special = []struct {
	network netip.Prefix
	is      string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"},
	{netip.MustParsePrefix("2001::/32"), "an address of a Teredo tunnel"}, // IPv4 is in it twice
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "a broadcast address"},
	// Clouds tell their machines credentials at these.
	{netip.MustParsePrefix("169.254.169.254/32"), metadata},
	{netip.MustParsePrefix("fd00:ec2::/32"), metadata},          // Amazon
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata},       // Google
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), metadata}, // Oracle
	{netip.MustParsePrefix("100.100.100.200/32"), metadata},     // Alibaba
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},       // Azure
	{netip.MustParsePrefix("192.0.0.192/32"), metadata},         // Oracle
}

const metadata = "an address of cloud metadata"

// embeds are the networks whose addresses have an IPv4 address in them, from a byte on, to which
// a router may translate them.
var embeds = []struct {
	network netip.Prefix
	at      [4]int
}{
	{netip.MustParsePrefix("::/96"), [4]int{12, 13, 14, 15}},           // IPv4-compatible
	{netip.MustParsePrefix("64:ff9b::/96"), [4]int{12, 13, 14, 15}},    // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{12, 13, 14, 15}},  // NAT64, RFC 8215, a /96 in it
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{6, 7, 9, 10}},     // the same as a /48
	{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}},           // 6to4
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [4]int{12, 13, 14, 15}}, // SIIT, RFC 2765
}

// meanings returns an address, and the IPv4 addresses that it may be translated to.
func meanings(a netip.Addr) []netip.Addr {
	all := []netip.Addr{a}
	if a.Is4() || a.IsUnspecified() || a.IsLoopback() { // :: and ::1 have no IPv4 address in them
		return all
	}
	b := a.As16()
	if isatap := [4]byte(b[8:12]); isatap == [4]byte{0, 0, 0x5e, 0xfe} || isatap == [4]byte{2, 0, 0x5e, 0xfe} {
		all = append(all, netip.AddrFrom4([4]byte(b[12:]))) // RFC 5214, in any network
	}
	for _, e := range embeds {
		if e.network.Contains(a) {
			all = append(all, netip.AddrFrom4([4]byte{b[e.at[0]], b[e.at[1]], b[e.at[2]], b[e.at[3]]}))
		}
	}
	return all
}

// Literal returns the address that a host is written as. Some resolvers, and so some proxies, take
// more forms of IPv4 than Go does: 127.1, 2130706433, 0x7f.0.0.1, 0177.0.0.1.
func Literal(host string) (netip.Addr, bool) {
	host = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return a, true
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var all uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts)) // the last part has the rest
		}
		n, ok := number(part)
		if !ok || n>>bits != 0 {
			return netip.Addr{}, false
		}
		all = all<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

// number reads a number as the C library does in addresses.
func number(text string) (uint64, bool) {
	base := 10
	if digits, hex := strings.CutPrefix(strings.ToLower(text), "0x"); hex {
		text, base = digits, 16
	} else if len(text) > 1 && text[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseUint(text, base, 32)
	return n, err == nil
}
