package plain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhatATerminalObeysIsEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"all is well: Größe, 大, שלום, 👩‍💻":   "all is well: Größe, 大, שלום, 👩‍💻",
		"\x1b]0;PWNED\x07\x1b[2J":            `\x1b]0;PWNED\a\x1b[2J`,
		"a\nFAKE  up\r\n\tb":                 `a; FAKE  up\r;  b`,
		"\u202egnirts\u202c \u2066x\u2069":   `\u202egnirts\u202c \u2066x\u2069`,
		"\u200e\u200f\u061c\ufeff\u00ad":     `\u200e\u200f\u061c\ufeff\u00ad`,
		"\u2028\u2029\u0085\u009b2J\x7f\x00": `\u2028\u2029\u0085\u009b2J\x7f\x00`,
		"\U000e0041\U000e007f\ufffd":         "\\U000e0041\\U000e007f\ufffd",
		"\x9b2J\xff":                         `\x9b2J\xff`,
		"\u200c\u200d\u0600":                 "\u200c\u200d\u0600",
	} {
		assert.Equal(t, want, Line(text))
	}
	assert.Equal(t, "a\n\tb\\r", Text("a\n\tb\r"))
}

func TestPrintedTextsAreEachOneLine(t *testing.T) {
	var to strings.Builder
	Fprintf(&to, "%s\t%s|%s|%d\n", "a\tb\n", types.UID("\x1b"), types.NamespacedName{Name: "\u202e"}, 7)
	assert.Equal(t, "a b; \t\\x1b|/\\u202e|7\n", to.String())
}

func TestTheWordsOfAServerAreOneLineOfAnError(t *testing.T) {
	status := &apierrors.StatusError{ErrStatus: metav1.Status{Message: "no\nit is fine\x1b[31m", Reason: metav1.StatusReasonForbidden}}
	joined := errors.Join(fmt.Errorf("get \u202ex: %w", status), errors.New("another"))
	err := Error(fmt.Errorf("both:\n%w", joined))
	assert.EqualError(t, err, "both:\nget \\u202ex: no; it is fine\\x1b[31m\nanother")
	assert.True(t, apierrors.IsForbidden(err))
	assert.ErrorIs(t, err, joined)
	fine := errors.Join(errors.New("a"), errors.New("b"))
	assert.Same(t, fine, Error(fine))
	assert.NoError(t, Error(nil))
}

func FuzzNothingThatATerminalObeysIsLeft(f *testing.F) {
	for _, text := range []string{"", "a\nb", "\x1b[31m", "\u202e", "\x9b", "\u2028", "é\u0301", "👩‍💻", "\xf0\x28"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, lines := Line(text), Text(text)
		for what, got := range map[string]string{"line": line, "text": strings.NewReplacer("\n", "", "\t", "").Replace(lines), "error": strings.NewReplacer("\n", "", "\t", "").Replace(Error(errors.New(text)).Error())} {
			if !utf8.ValidString(got) {
				t.Fatalf("%s %q: %q is no UTF-8", what, text, got)
			}
			for _, r := range got {
				bidi := r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
				if unicode.IsControl(r) || bidi || r == 0x2028 || r == 0x2029 || r == 0xfeff {
					t.Fatalf("%s %q: %q has %U", what, text, got, r)
				}
			}
		}
		if Line(line) != line || Text(lines) != lines {
			t.Fatalf("%q: %q is changed once more", text, line)
		}
		if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) && utf8.ValidString(text) && line != text {
			t.Fatalf("%q is changed: %q", text, line)
		}
	})
}
