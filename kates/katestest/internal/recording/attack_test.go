package recording

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/wire/frames"
)

// answering is a server that answers everything alike.
type answering struct {
	status int
	body   []byte
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {mediaJSON}}, Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// recorded reads one answer through a recorder of a server with a base.
func recorded(t *testing.T, base, url string, a answering) (*memory, *Exchange) {
	t.Helper()
	file := &memory{}
	w := NewWriter(file)
	get(t, NewRecorder(w, base, true, nil).Wrap(a), url)
	require.NoError(t, w.Close())
	r := file.read(t)
	require.Len(t, r.Exchanges, 1)
	assert.False(t, file.has(t, "hunter2") || file.has(t, "aHVudGVyMg"), "%d %q %s", a.status, base, url)
	return file, r.Exchanges[0]
}

// secretsIn are a Secret as each sort of answer, by what is asked for.
func secretsIn(t *testing.T, e frames.Encoding) map[string][]byte {
	t.Helper()
	object := itemOf(t, aSecret("1", "hunter2"), e)
	single, err := object.enveloped()
	require.NoError(t, err)
	secrets := list{apiVersion: "v1", kind: "SecretList", meta: metav1.ListMeta{ResourceVersion: "2"}}
	return map[string][]byte{
		"/api/v1/secrets":                       encoded(t, secrets, e, aSecret("1", "hunter2")),
		"/api/v1/namespaces/default/secrets":    encoded(t, secrets, e, aSecret("1", "hunter2")),
		"/api/v1/secrets?watch=1":               frame(t, watch.Added, aSecret("1", "hunter2"), e),
		"/api/v1/secrets?watch":                 frame(t, watch.Modified, aSecret("1", "hunter2"), e),
		"/api/v1/namespaces/default/secrets/db": single,
	}
}

func TestNoSecretIsRecordedWhateverTheServersPathAndTheStatus(t *testing.T) {
	for _, e := range []frames.Encoding{frames.JSON, frames.Protobuf} {
		for url, body := range secretsIn(t, e) {
			for _, status := range []int{200, 201, 202, 203, 206, 299, 302, 404, 500} {
				bases := []string{"/api"}
				if status == 200 {
					bases = []string{"", "/cluster", "/api", "/apis", "/apis/x", "/k8s/clusters/c-xyz", "/openapi", "/openapi/v3", "/version"}
				}
				for _, base := range bases {
					file, one := recorded(t, base, base+url, answering{status, body})
					redacted := status < 300 && status != http.StatusPartialContent
					assert.Equal(t, redacted, one.Withheld == "", "%d %q %s %s: %s", status, base, url, e, one.Withheld)
					assert.Equal(t, redacted, file.has(t, "redacted-") || file.has(t, "cmVkYWN0ZWQt"))
					path, _, _ := strings.Cut(url, "?")
					assert.Equal(t, path, one.Path, "a replay has no base")
				}
				if status != 200 {
					continue
				}
				// the recorder was told of another server's path
				for _, bases := range [][2]string{{"", "/api"}, {"", "/apis/x"}, {"", "/openapi"}, {"/api", ""}, {"/api", "/apis"}, {"/k8s", "/k8s/api"}, {"", "/openapi/v3"}, {"", "/healthz"}} {
					_, _ = recorded(t, bases[0], bases[1]+url, answering{status, body})
				}
			}
		}
	}
}

func TestAnObjectWhereNoneShouldBeIsWithheldAndAllElseIsRecorded(t *testing.T) {
	for body, kept := range map[string]bool{
		`{"kind":"SecretList","items":[{"data":{"p":"hunter2"}}]}`: false,
		`{"kind":"Secret","data":{"p":"hunter2"}}`:                 false,
		`{"items":[{"data":{"p":"hunter2"}}]}`:                     false,
		`{"data":{"p":"hunter2"}}`:                                 false,
		`{"kind":"Secret","data":{"p":"hunter2"`:                   false,
		`[{"data":{"p":"hunter2"}}]`:                               false,
		` {"kind":"Pod"}`:                                          false,
		magic + "hunter2":                                          false,
		`{"kind":"APIResourceList","resources":[]}`:                true,
		`{"kind":"APIGroupDiscoveryList","items":[]}`:              true,
		`{"openapi":"3.0.0","paths":{},"components":{}}`:           true,
		`{"gitVersion":"v1.36.3"}`:                                 true,
		`{"kind":"Status","reason":"NotFound"}`:                    true,
		"404 page not found":                                       true,
		"":                                                         true,
		"{}":                                                       true,
		`{"type":"ADDED","object":{"data":{"p":"hunter2"}}}`:       false,
	} {
		for _, at := range []struct {
			url    string
			status int
		}{{"/version", 200}, {"/apis", 203}, {"/openapi/v3/api/v1", 200}, {"/api/v1/secrets", 403}, {"/api/v1/secrets?watch=1", 410}} {
			_, one := recorded(t, "", at.url, answering{at.status, []byte(body)})
			assert.Equal(t, kept, one.Withheld == "", "%s %d: %s: %s", at.url, at.status, body, one.Withheld)
		}
	}
	odd := fmt.Sprintf(`{"type":%q,"object":{"kind":"Status","data":{"p":"hunter2"}}}`+"\n", watch.Added)
	_, _ = recorded(t, "", "/api/v1/secrets?watch=1", answering{200, []byte(odd)})
}

func TestARecordingOfAServerWithABaseIsPlayed(t *testing.T) {
	for _, status := range []int{200, 203} {
		file, _ := recorded(t, "/api", "/api/api/v1/secrets", answering{status, secretsIn(t, frames.JSON)["/api/v1/secrets"]})
		player := NewPlayer(file.read(t), Fastest)
		assert.Contains(t, get(t, player, "/api/v1/secrets"), "redacted-")
	}
}
