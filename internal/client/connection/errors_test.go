package connection

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endless is a server whose answers have a status and never end.
type endless int

func (e endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(e), Body: io.NopCloser(e)}, nil
}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestAnErrorThatNeverEndsIsCutOffWhateverAnObjectMayHave: the bound on objects may be far higher,
// or none.
func TestAnErrorThatNeverEndsIsCutOffWhateverAnObjectMayHave(t *testing.T) {
	const most = 1 << 20
	for status, want := range map[int]int{http.StatusInternalServerError: most, http.StatusOK: 2 * most} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/api/v1/pods", http.NoBody)
		require.NoError(t, err)
		response, err := (&briefErrors{endless(status)}).RoundTrip(r)
		require.NoError(t, err)
		body, err := io.ReadAll(io.LimitReader(response.Body, 2*most))
		require.NoError(t, err)
		assert.Equal(t, want, len(body), status) // not Len, which would print it
		require.NoError(t, response.Body.Close())
	}
}
