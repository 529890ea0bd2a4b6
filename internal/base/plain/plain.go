// Package plain makes texts of strangers harmless where they are printed: on a terminal, in a line
// of a log, on a page. A server, or who writes an object, could else move the cursor, begin a line
// that seems to be another's, or have a text read from right to left.
//
// Control and format characters (Unicode's classes Cc and Cf), separators of lines and paragraphs,
// and bytes that are no UTF-8 are written as Go writes them in strings: \x1b, \u202e. The format
// characters stay that letters of some scripts and emoji are joined by or begin with.
package plain

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// harmless are format characters that change nothing but the letters beside them: the joiners, and
// signs of Arabic, Syriac and Kaithi that stand before numbers.
var harmless = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0600, Hi: 0x0605, Stride: 1}, {Lo: 0x06dd, Hi: 0x06dd, Stride: 1}, {Lo: 0x070f, Hi: 0x070f, Stride: 1},
		{Lo: 0x0890, Hi: 0x0891, Stride: 1}, {Lo: 0x08e2, Hi: 0x08e2, Stride: 1}, {Lo: 0x200c, Hi: 0x200d, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x110bd, Hi: 0x110bd, Stride: 1}, {Lo: 0x110cd, Hi: 0x110cd, Stride: 1}},
}

// harmful reports whether a character is escaped.
func harmful(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !unicode.Is(harmless, r)
}

// Line is a text in one line: a line break is "; ", and a tab a space.
func Line(text string) string {
	return escape(text, func(to *strings.Builder, r rune) bool {
		switch r {
		case '\n':
			to.WriteString("; ")
		case '\t':
			to.WriteByte(' ')
		default:
			return false
		}
		return true
	})
}

// Text is a text that keeps its lines and tabs.
func Text(text string) string {
	return escape(text, func(to *strings.Builder, r rune) bool {
		if r != '\n' && r != '\t' {
			return false
		}
		to.WriteRune(r)
		return true
	})
}

// escape escapes what is harmful, but for what is written by a function.
func escape(text string, written func(*strings.Builder, rune) bool) string {
	if is(text) {
		return text
	}
	var to strings.Builder
	for i, width := 0, 0; i < len(text); i += width {
		var r rune
		switch r, width = utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && width == 1:
			fmt.Fprintf(&to, `\x%02x`, text[i])
		case !harmful(r):
			to.WriteString(text[i : i+width])
		case !written(&to, r):
			quoted := strconv.QuoteRuneToASCII(r)
			to.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return to.String()
}

// is reports whether nothing in a text is harmful.
func is(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, harmful)
}

// Fprintf prints as fmt does. Each text among the arguments is one line. An error of the writer is
// for a later call to tell.
func Fprintf(w io.Writer, format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(fmt.Stringer); ok {
			args[i] = Line(s.String())
		} else if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
			args[i] = Line(v.String())
		}
	}
	_, _ = fmt.Fprintf(w, format, args...)
}

// Error returns an error whose text is plain, and which unwraps to err. The words of a server are
// in one line. Between errors that are joined stay line breaks.
func Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if is(text) {
		return err
	}
	for _, words := range said(err, nil) {
		text = strings.ReplaceAll(text, words, Line(words))
	}
	if text = Text(text); text == err.Error() {
		return err
	}
	return &plainError{err, text}
}

// While returns an error that also says what was being done; nil stays nil.
func While(what string, err error) error {
	if err == nil {
		return nil
	}
	return Error(fmt.Errorf("%s: %w", what, err))
}

// said returns the texts of servers that an error has.
func said(err error, all []string) []string {
	if status, ok := err.(*apierrors.StatusError); ok {
		return append(all, status.Error())
	}
	switch wrapped := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapped.Unwrap(); inner != nil {
			return said(inner, all)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapped.Unwrap() {
			all = said(inner, all)
		}
	}
	return all
}

type plainError struct {
	err  error
	text string
}

func (p *plainError) Error() string { return p.text }
func (p *plainError) Unwrap() error { return p.err }

// mostText is how much of a server's text is in an error.
const mostText = 1024

// Clip shortens a text of a server: errors stay in memory, and go to logs.
func Clip(text string) string {
	if len(text) > mostText {
		return text[:mostText] + "…"
	}
	return text
}
