package secrecy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/client/apipath"
)

// Transport learns the secrets in the requests of a client, and changes nothing. It is made for
// rest.Config's Wrap.
func Transport(next http.RoundTripper) http.RoundTripper { return &transport{next} }

type transport struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if token, has := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); has && len(token) >= shortest {
		Learn("a token that was used", []byte(token))
	}
	asked := apipath.Find(r.URL.Path)
	writes := r.Method != http.MethodGet && r.Method != http.MethodDelete && r.GetBody != nil
	if writes && asked.Resource == "secrets" {
		if body, err := r.GetBody(); err == nil {
			content, _ := io.ReadAll(body)
			_ = body.Close()
			learnSecret("the Secret of "+r.Method+" "+r.URL.Path, content)
		}
	}
	response, err := t.next.RoundTrip(r)
	if err != nil || r.Method != http.MethodPost || asked.Subresource != "token" {
		return response, err
	}
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	issued := &authenticationv1.TokenRequest{}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, issued); err == nil {
		Learn("a token that was issued", []byte(issued.Status.Token))
	}
	return response, nil
}

// learnSecret learns the data of what is sent to write a Secret: the object, or a patch.
func learnSecret(what string, content []byte) {
	typed := &corev1.Secret{}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, typed); err == nil {
		for key, value := range typed.Data {
			Learn(fmt.Sprintf("%s, key %q", what, key), value)
		}
		for key, value := range typed.StringData {
			Learn(fmt.Sprintf("%s, key %q", what, key), []byte(value))
		}
		return
	}
	var patch any
	if json.Unmarshal(content, &patch) == nil {
		learnPatch(what, "", patch)
	}
}

// learnPatch learns the values of data and stringData in a merge patch, and all of a JSON patch of
// these.
func learnPatch(what, at string, patch any) {
	switch v := patch.(type) {
	case map[string]any:
		if p, is := v["path"].(string); is { // an operation of a JSON patch
			learnPatch(what, strings.TrimPrefix(p, "/"), v["value"])
			return
		}
		for name, value := range v {
			learnPatch(what, strings.TrimPrefix(at+"/"+name, "/"), value)
		}
	case []any:
		for _, value := range v {
			learnPatch(what, at, value)
		}
	case string:
		switch what += ", " + at; {
		case strings.HasPrefix(at, "stringData"):
			Learn(what, []byte(v))
		case strings.HasPrefix(at, "data"):
			if value, err := base64.StdEncoding.DecodeString(v); err == nil {
				Learn(what, value)
			}
		}
	}
}
