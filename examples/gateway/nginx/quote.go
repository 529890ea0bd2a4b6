package nginx

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Every text that comes from an object goes through one of these functions, whatever it is. After
// them it is one token of nginx' configuration, on one line.

// fixed quotes a text for a place in which nginx expands no variables.
func fixed(s string) string { return `"` + quotes.Replace(clean(s)) + `"` }

var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// expanded quotes a text for a place in which nginx expands variables. nginx has no escape for a
// dollar, so it stands in a variable.
func expanded(s string) string { return strings.ReplaceAll(fixed(s), "$", "${dollar}") }

// clean replaces control characters by spaces: a line's end in a header would begin another one.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// exactly returns a regular expression for this text alone.
func exactly(s string) string {
	return bytewise(s, func(b byte) string { return fmt.Sprintf(`\x%02x`, b) })
}

// encoded returns a regular expression for this text in a URL, where each byte may be
// percent-encoded, and slashes may be several.
func encoded(s string) string {
	var out strings.Builder
	for _, b := range []byte(s) {
		switch one := exactly(string([]byte{b})); b {
		case '/':
			out.WriteString(`(?:/|%2[fF])+`)
		case ' ':
			out.WriteString(`(?:\+|%20)`)
		default:
			fmt.Fprintf(&out, `(?:%s|%%(?i:%02x))`, one, b)
		}
	}
	return out.String()
}

// bytewise keeps letters and digits, and escapes all other bytes.
func bytewise(s string, escape func(byte) string) string {
	var out strings.Builder
	for _, b := range []byte(s) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' {
			out.WriteByte(b)
		} else {
			out.WriteString(escape(b))
		}
	}
	return out.String()
}

// CheckRegex says why a text cannot be a regular expression of a location or a condition. It takes
// what Go's package regexp takes, in ASCII: nginx has PCRE, whose named groups would set
// variables.
func CheckRegex(s string) error {
	_, err := regex(s)
	return err
}

// regex returns a regular expression of a user in PCRE, with a group around it.
func regex(s string) (string, error) {
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return "", err
	}
	unname(tree)
	out := tree.String()
	if strings.ContainsFunc(out, func(r rune) bool { return r < ' ' || r > '~' }) || strings.Contains(out, `\x{`) {
		return "", errors.New("a regular expression has ASCII characters only")
	}
	return "(?:" + out + ")", nil
}

func unname(tree *syntax.Regexp) {
	tree.Name = ""
	for _, sub := range tree.Sub {
		unname(sub)
	}
}

var (
	hostName   = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	headerName = regexp.MustCompile("^[-!#%&'*+.^_`|~0-9A-Za-z]+$")
	plainName  = regexp.MustCompile(`^[-0-9A-Za-z]+$`) // nginx has a variable for such a header
)

// address reports whether an endpoint is an address with a port.
func address(endpoint string) bool {
	at, err := netip.ParseAddrPort(endpoint)
	return err == nil && at.Addr().Zone() == ""
}

// nameOf makes a word of an upstream's ID that Lua and nginx can have anywhere.
func nameOf(id string) string {
	var out strings.Builder
	for _, b := range []byte(id) {
		if strings.IndexByte("-._/:", b) >= 0 {
			out.WriteByte(b)
		} else {
			out.WriteString(bytewise(string([]byte{b}), func(b byte) string { return fmt.Sprintf("%%%02X", b) }))
		}
	}
	return out.String()
}
