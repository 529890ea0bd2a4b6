package translate

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Hosts are names, wildcards like *.example.com, or empty for all. A wildcard stands for one label
// or more.

// validHostname reports whether a host is a name or a wildcard. An IP address is neither.
func validHostname(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	return len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) == 0
}

// covers reports whether all names of a host are names of a wider one, which is not the same.
func covers(wide, host string) bool {
	if wide == "" {
		return host != ""
	}
	return wide != host && strings.HasPrefix(wide, "*.") && strings.HasSuffix(strings.TrimPrefix(host, "*"), wide[1:])
}

// wider returns the narrowest wildcard that covers a host, or the host for all.
func wider(host string) string {
	if _, rest, more := strings.Cut(strings.TrimPrefix(host, "*."), "."); more {
		return "*." + rest
	}
	return ""
}

// intersection returns the host whose names both hosts have, if there is one.
func intersection(a, b string) (host string, ok bool) {
	switch {
	case a == b, covers(a, b):
		return b, true
	case covers(b, a):
		return a, true
	}
	return "", false
}
