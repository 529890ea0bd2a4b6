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

// key quotes a text for a key of a map. Without the backslash nginx reads some keys as words of
// its own: default, hostnames, include, volatile, and what begins with a tilde.
func key(s string) string { return fixed(`\` + s) }

// encoded returns a regular expression for this text in a URL, where each byte may be
// percent-encoded, and slashes may be several. Slashes side by side are one: two repetitions side
// by side would try all ways to share out what they match.
func encoded(s string) string {
	var out strings.Builder
	for i, b := range []byte(s) {
		switch one := exactly(string([]byte{b})); b {
		case '/':
			if i == 0 || s[i-1] != '/' {
				out.WriteString(`(?:/|%2[fF])+`)
			}
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
// what Go's package regexp takes, in ASCII, up to a size: nginx has PCRE, whose named groups would
// set variables.
func CheckRegex(s string) error {
	_, err := regex(s)
	return err
}

// A match costs at most mostSteps times mostInstructions: PCRE counts the places at which it goes
// back, and compares the text between two of them without counting.
const (
	mostSteps        = 5000
	mostInstructions = 256
)

// bounded is what a regular expression of a user begins with. PCRE gives up after so many steps.
// It does not count within a repetition that it knows never to go back into, so there is none.
var bounded = fmt.Sprintf("(*NO_AUTO_POSSESS)(*LIMIT_MATCH=%d)", mostSteps)

// regex returns a regular expression of a user in PCRE, with a group around it.
func regex(s string) (string, error) {
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return "", err
	}
	if program, err := syntax.Compile(tree.Simplify()); err != nil || len(program.Inst) > mostInstructions {
		return "", fmt.Errorf("a regular expression has at most %d instructions, and a repetition counts as often as it has to match", mostInstructions)
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
	hostName   = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	headerName = regexp.MustCompile("^[-!#%&'*+.^_`|~0-9A-Za-z]{1,256}$")
	plainName  = regexp.MustCompile(`^[-0-9A-Za-z]+$`) // nginx has a variable for such a header
)

// isHost reports whether a text is a name or a wildcard, of a length that DNS has.
func isHost(s string) bool { return len(s) <= 253 && hostName.MatchString(s) }

// address reports whether an endpoint is an address with a port.
func address(endpoint string) bool {
	at, err := netip.ParseAddrPort(endpoint)
	return err == nil && at.Addr().Zone() == "" && at.Port() > 0
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
