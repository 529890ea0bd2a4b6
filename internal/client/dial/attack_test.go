package dial

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rules(t *testing.T, list ...string) *Rules {
	t.Helper()
	r, err := Parse(list)
	require.NoError(t, err)
	return r
}

// forbidden are texts of addresses that nobody may be led to by default.
var forbidden = []string{
	"127.0.0.1", "127.255.255.254", "[::1]", "::1", "0.0.0.0", "0.1.2.3", "::", "169.254.0.1", "169.254.169.254", "fe80::1", "fe80::1%eth0",
	"224.0.0.1", "ff02::1", "255.255.255.255", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "100.100.100.200",
	"168.63.129.16", "192.0.0.192", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::169.254.169.254",
	"64:ff9b:1::7f00:1", "64:ff9b:1:7f00:0:100::", "2002:7f00:1::", "::127.0.0.1", "::ffff:0:127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0X7F.1",
	"0177.0.0.1", "017700000001", "00177.1", "0", "0x0", "2852039166", "0xa9fea9fe", "0251.254.169.254", "127.0.0.1.", "169.254.43518",
	"2001::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "fec0::1", "feff::1",
	"fd00::5efe:127.0.0.1", "2001:db8::5efe:a9fe:a9fe", "2001:db8::200:5efe:127.0.0.1", "fe80::5efe:10.0.0.1",
}

func TestSpecialAddressesAreRefusedInWhateverWayTheyAreWritten(t *testing.T) {
	for _, text := range forbidden {
		err := new(Rules).CheckHost(text)
		assert.ErrorContains(t, err, "the option Hosts of the source", text)
		assert.Error(t, new(Rules).CheckBehindProxy(text), text)
		a, ok := Literal(text)
		require.True(t, ok, text)
		assert.Error(t, new(Rules).checkAddress(a, true), "%s: that a name is listed does not open it", text)
		assert.Error(t, rules(t, "0.0.0.0/0", "::/0").checkAddress(a, false), "%s: a network of all addresses does not open it", text)
	}
	for _, text := range []string{"10.0.0.1", "192.168.1.1", "8.8.8.8", "2001:db8::1", "fd00::1", "64:ff9b::808:808", "134744072", "2001:1::1", "2001:db8::5efe:10.0.0.1", "a.test", "1.2.3.4.5", "256.1", "09.1", "4294967296"} {
		assert.NoError(t, new(Rules).CheckHost(text), text)
		assert.NoError(t, new(Rules).CheckBehindProxy(text), text)
	}
}

func TestBehindAProxyNamesOfSpecialAddressesAreRefused(t *testing.T) {
	for _, name := range []string{"localhost", "LOCALHOST.", "x.localhost", "metadata.google.internal",
		"ip6-localhost", "IP6-loopback", "localhost.localdomain", "localhost6", "metadata", "metadata.goog", "instance-data", "instance-data.ec2.internal.", "\uff11\uff12\uff17.0.0.1", "\u2460.test", ""} {
		assert.Error(t, new(Rules).CheckBehindProxy(name), name)
	}
	listed := rules(t, "api.test", "10.0.0.0/8")
	assert.NoError(t, listed.CheckBehindProxy("API.test."))
	assert.NoError(t, listed.CheckBehindProxy("10.1.2.3"))
	assert.Error(t, listed.CheckBehindProxy("other.test"), "nobody here knows its address")
}

func TestASpecialAddressOfIPv6IsAllowedByItself(t *testing.T) {
	for _, text := range []string{"::1", "::", "fe80::1", "fec0::1", "2001::1", "fd00:ec2::254", "ff02::1"} {
		assert.NoError(t, rules(t, text).CheckHost(text), text)
	}
	assert.Error(t, rules(t, "::1").CheckHost("::2"))
	assert.Error(t, rules(t, "::2").CheckHost("::2"), "IPv4-compatible")
	assert.Error(t, rules(t, "fd00::/8").CheckHost("fd00::5efe:127.0.0.1"))
}

func TestOnlyWhatIsListedIsAllowed(t *testing.T) {
	r := rules(t, "api.test", "*.prod.test", "10.0.0.0/8", "127.0.0.2", "::ffff:169.254.1.0/120")
	for text, ok := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "127.0.0.2": true, "127.0.0.1": false, "169.254.1.7": true, "169.254.169.254": false,
		"11.0.0.1": false, "2001:db8::1": false, "64:ff9b::a01:203": false, "167838211": true,
	} {
		assert.Equal(t, ok, r.CheckHost(text) == nil, text)
	}
	names := rules(t, "api.test", "*.prod.test")
	for name, ok := range map[string]bool{
		"api.test": true, "API.TEST.": true, "a.prod.test": true, "prod.test": false, "xprod.test": false, "api.test.evil.test": false, "10.0.0.1": false,
	} {
		assert.Equal(t, ok, names.CheckHost(name) == nil, name)
	}
	assert.NoError(t, names.checkAddress(netip.MustParseAddr("10.0.0.1"), true))
	assert.Error(t, names.checkAddress(netip.MustParseAddr("127.0.0.1"), true), "the name is allowed, and not where it leads now")
	for _, wrong := range []string{"", "*", "*.", "a:443", "https://a", "10.0.0.0/33", "127.1", "fe80::1%eth0", "a b", "0x7f.1", "a/8", "b\u00fccher.test"} {
		_, err := Parse([]string{wrong})
		assert.Error(t, err, wrong)
	}
}

func listen(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().String()
}

// The name is allowed, and its address is looked at after it is resolved: there is no time between
// the check and the connection in which it could become another.
func TestANameIsCheckedByTheAddressThatIsDialled(t *testing.T) {
	address := listen(t)
	_, port, _ := net.SplitHostPort(address)
	for _, r := range []*Rules{new(Rules), rules(t, "localhost"), rules(t, "0.0.0.0/0", "::/0")} {
		g := &Guard{Rules: r, Host: "localhost"}
		_, err := g.DialContext(t.Context(), "tcp", "localhost:"+port)
		assert.ErrorContains(t, err, "a loopback address")
		assert.ErrorContains(t, err, "the option Hosts")
	}
	for _, r := range []*Rules{rules(t, "127.0.0.0/8", "::1"), rules(t, "127.0.0.1", "::1", "localhost")} {
		g := &Guard{Rules: r, Host: "localhost"}
		c, err := g.DialContext(t.Context(), "tcp", "localhost:"+port)
		require.NoError(t, err)
		_ = c.Close()
	}
	_, err := (&Guard{Rules: new(Rules), Host: "x"}).DialContext(t.Context(), "unix", "/run/x.sock:1")
	assert.Error(t, err)
}

func TestWhatIsBehindAProxyIsChecked(t *testing.T) {
	proxy := listen(t)
	for host, ok := range map[string]bool{"api.test": true, "127.0.0.1": true, "127.0.0.9": false, "169.254.169.254": false, "2852039166": false, "localhost": false} {
		r := rules(t, "127.0.0.1", "api.test")
		c, err := (&Guard{Rules: r, Host: host}).DialContext(t.Context(), "tcp", proxy)
		assert.Equal(t, ok, err == nil, "%s: %v", host, err)
		if c != nil {
			_ = c.Close()
		}
	}
	_, err := (&Guard{Rules: new(Rules), Host: "api.test"}).DialContext(t.Context(), "tcp", proxy)
	assert.ErrorContains(t, err, "a loopback address", "the address of the proxy")
}

// The program's environment names the proxy, and no tenant does.
func TestTheProgramsOwnProxyIsTrustedAndNothingBehindIt(t *testing.T) {
	proxy := listen(t)
	_, port, _ := net.SplitHostPort(proxy)
	for _, c := range []struct {
		hosts    []string
		host, to string
		ok       bool
	}{
		{nil, "api.test", proxy, true},
		{nil, "10.0.0.1", proxy, true},
		{nil, "localhost", proxy, false},
		{nil, "169.254.169.254", proxy, false},
		{nil, "127.0.0.2", proxy, false},
		{nil, "127.0.0.1", proxy, false}, // the server itself
		{nil, "127.1", proxy, false},
		{nil, "api.test", "127.0.0.1:1", false}, // another service there
		{nil, "api.test", "localhost:" + port, false},
		{[]string{"api.test"}, "api.test", proxy, true},
		{[]string{"api.test"}, "other.test", proxy, false},
		{[]string{"10.0.0.0/8"}, "10.0.0.1", proxy, true},
		{[]string{"10.0.0.0/8"}, "11.0.0.1", proxy, false},
	} {
		g := &Guard{Rules: rules(t, c.hosts...), Host: c.host, Proxy: proxy}
		conn, err := g.DialContext(t.Context(), "tcp", c.to)
		assert.Equal(t, c.ok, err == nil, "%v: %v", c, err)
		if conn != nil {
			_ = conn.Close()
		}
	}
	named := "localhost:" + port // the transport dials the name
	_, err := (&Guard{Rules: new(Rules), Host: "LOCALHOST.", Proxy: named}).DialContext(t.Context(), "tcp", named)
	assert.ErrorContains(t, err, "a loopback address")
	for text, address := range map[string]string{
		"http://p.test": "p.test:80", "https://p.test": "p.test:443", "socks5://p.test": "p.test:1080", "http://[::1]:3128": "[::1]:3128", "http://u:p@p.test:1": "p.test:1",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		assert.Equal(t, address, Address(u))
	}
}

func TestAGuardIsKnownByItsFunction(t *testing.T) {
	assert.True(t, Guarded((&Guard{Rules: new(Rules), Host: "x"}).DialContext))
	assert.False(t, Guarded(new(net.Dialer).DialContext))
	assert.False(t, Guarded(func(context.Context, string, string) (net.Conn, error) { return nil, nil }))
}

// FuzzAnAddressIsReadAsResolversReadIt: what Go's own parser takes for an address is the same one
// here, and no text of an allowed address means a special one.
func FuzzAnAddressIsReadAsResolversReadIt(f *testing.F) {
	for _, text := range forbidden {
		f.Add(text)
	}
	f.Add("a.test")
	f.Add("1.2.3.4.5")
	f.Fuzz(func(t *testing.T, text string) {
		a, ok := Literal(text)
		if known, err := netip.ParseAddr(text); err == nil && (!ok || a != known) {
			t.Fatalf("%q is %v, and should be %v", text, a, known)
		}
		if ok && isName(text) {
			t.Fatalf("%q is both a name and an address", text)
		}
		if !ok {
			return
		}
		plain := a.WithZone("").Unmap()
		special := plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified()
		if err := new(Rules).CheckHost(text); special && err == nil {
			t.Fatalf("%q is %v, and is allowed", text, a)
		} else if err == nil && strings.HasPrefix(plain.String(), "::ffff:") {
			t.Fatalf("%q is %v, and was not read as IPv4", text, a)
		}
	})
}
