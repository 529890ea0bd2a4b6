package secrecy

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// mark is what no other text has. It is short, so that an excerpt has it, and comes several times.
const mark = "q7Zx0vKp"

const marks = mark + mark + mark + mark

// Mark returns the value of a Secret that can be recognised, also in excerpts.
func Mark(value string) string { return value + marks }

// Unmark returns the value that was given to Mark.
func Unmark(value string) string { return strings.TrimSuffix(value, marks) }

const (
	// shortest is the length of the shortest value that is no common text.
	shortest = 16
	// part is the length of the shortest part of a value that is looked for by itself: a line of a
	// certificate, a part of a token.
	part = 32
	// window is how many bytes of a pattern are looked up at each place.
	window = 8
)

// finder looks for secrets.
type finder struct {
	patterns map[[window]byte][]pattern
}

// pattern is a form in which a secret may be said.
type pattern struct {
	what, form string
	text       []byte
}

// add takes in a secret. It reports whether the secret can be recognised.
func (f *finder) add(what string, value []byte) bool {
	if bytes.Contains(value, []byte(mark)) {
		f.forms(what, []byte(mark))
	}
	if len(value) < shortest {
		return len(value) == 0 || bytes.Contains(value, []byte(mark))
	}
	f.forms(what, value)
	for _, word := range bytes.FieldsFunc(value, func(r rune) bool {
		return !strings.ContainsRune("+/=_-", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		if len(word) >= part {
			f.forms(what, word)
		}
	}
	return true
}

// forms are the value itself, as JSON and as Go print it, and in base64 at any place of a longer
// text.
func (f *finder) forms(what string, value []byte) {
	f.pattern(what, "as it is", value)
	f.pattern(what, "quoted", fmt.Appendf(nil, "%q", value)[1:])
	f.pattern(what, "as numbers", bytes.Trim(fmt.Appendf(nil, "%d", value[1:len(value)-1]), "[]"))
	f.pattern(what, "in hex", fmt.Appendf(nil, "%x", value))
	for shift := range 3 {
		text := make([]byte, shift, shift+len(value))
		text = append(text, value...)
		whole := len(text) / 3 * 4 // what follows does not change these
		encoded := base64.StdEncoding.EncodeToString(text)[:whole]
		encoded = encoded[[]int{0, 2, 3}[shift]:]
		f.pattern(what, "in base64", []byte(encoded))
		f.pattern(what, "in base64", []byte(strings.NewReplacer("+", "-", "/", "_").Replace(encoded)))
	}
}

func (f *finder) pattern(what, form string, text []byte) {
	if len(text) < window {
		return
	}
	if f.patterns == nil {
		f.patterns = make(map[[window]byte][]pattern)
	}
	start := [window]byte(text)
	if !slices.ContainsFunc(f.patterns[start], func(p pattern) bool { return bytes.Equal(p.text, text) }) {
		f.patterns[start] = append(f.patterns[start], pattern{what, form, text})
	}
}

// mostFindings bounds what is reported of one text.
const mostFindings = 20

// find returns a line for each secret in a text, without the secret.
func (f *finder) find(in string, text []byte) (found []string) {
	for at := 0; at+window <= len(text) && len(found) < mostFindings; at++ {
		for _, p := range f.patterns[[window]byte(text[at:at+window])] {
			if !bytes.HasPrefix(text[at:], p.text) {
				continue
			}
			before := text[max(0, at-200):at]
			if line := bytes.LastIndexByte(before, '\n'); line >= 0 {
				before = before[line+1:]
			}
			found = append(found, fmt.Sprintf("%s, %s, is in the %s: %s…", p.what, p.form, in, before))
			at += len(p.text) - 1
			break
		}
	}
	return found
}
