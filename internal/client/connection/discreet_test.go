package connection

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// TestNoClientQuotesAnAnswerThatItCannotDecode is about the clients' own codecs. Lists and watches
// are read without them, but for the answers that are errors.
func TestNoClientQuotesAnAnswerThatItCannotDecode(t *testing.T) {
	const planted = "planted"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":{"k":"`+planted+`"}}`)
	}))
	defer server.Close()
	for name, client := range map[string]func(*rest.Config, *http.Client) (rest.Interface, error){
		"untyped": untypedClient, "metadata": metadataClient,
	} {
		c, err := client(&rest.Config{Host: server.URL}, server.Client())
		require.NoError(t, err, name)
		_, err = c.Get().AbsPath("/api/v1/secrets").Do(t.Context()).Get()
		require.ErrorIs(t, err, errKindless, name)
		assert.NotContains(t, err.Error(), planted, name)
	}
}
