package secrecy

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const certificate = "-----BEGIN CERTIFICATE-----\nMIIBeDCCAR2gAwIBAgIBADAKBggqhkjOPQQDAjAjMSEwHwYDVQQD\n-----END CERTIFICATE-----\n"

func TestASecretIsFoundInWhateverFormItIsSaid(t *testing.T) {
	secrets := map[string]string{
		"marked": Mark("db"), "a password": "correct horse battery", "lines": "one line\n\"two\" lines\t!",
		"a certificate": certificate,
	}
	forms := map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"quoted":   func(s string) string { return fmt.Sprintf("%q", s) },
		"as bytes": func(s string) string { return fmt.Sprint([]byte(s)) },
		"in a map": func(s string) string { return fmt.Sprint(map[string][]byte{"k": []byte(s)}) },
		"in hex":   func(s string) string { return hex.EncodeToString([]byte(s)) },
		"as JSON": func(s string) string {
			raw, _ := json.Marshal(map[string]any{"data": map[string][]byte{"k": []byte(s)}})
			return string(raw)
		},
		"in a header":       func(s string) string { return base64.StdEncoding.EncodeToString([]byte("me:" + s)) },
		"in a later header": func(s string) string { return base64.URLEncoding.EncodeToString([]byte("user:" + s + ":")) },
	}
	for what, secret := range secrets {
		f := &finder{}
		require.True(t, f.add(what, []byte(secret)))
		for form, say := range forms {
			found := f.find("log", []byte("some words: "+say(secret)+" and more"))
			assert.NotEmpty(t, found, "%s, %s", what, form)
			for _, line := range found {
				assert.NotContains(t, line, secret, "the finding does not say it again")
				assert.Contains(t, line, "some words")
			}
		}
		assert.Empty(t, f.find("log", []byte("some words, and more of them: aGVsbG8gd29ybGQ= [1 2 3 4 5 6 7 8 9]")))
	}
}

func TestAPartOfASecretIsFound(t *testing.T) {
	f := &finder{}
	require.True(t, f.add("marked", []byte(Mark("db"))))
	require.True(t, f.add("a file", []byte("users:\n- token: "+strings.Repeat("abcdefgh", 6)+"\n  name: somebody\n")))
	assert.NotEmpty(t, f.find("error", []byte("in an excerpt: …"+Mark("x")[6:20]+"…")))
	assert.NotEmpty(t, f.find("error", []byte("yaml: line 2: "+strings.Repeat("abcdefgh", 6))))
	assert.Empty(t, f.find("error", []byte("the name: somebody")))
}

func TestAValueThatIsTooShortToBeFoundIsSaid(t *testing.T) {
	f := &finder{}
	assert.False(t, f.add("short", []byte("yes")))
	assert.True(t, f.add("empty", nil))
	assert.True(t, f.add("marked", []byte(Mark(""))))
}
