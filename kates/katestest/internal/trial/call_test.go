package trial

import (
	"bytes"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

func TestAnObjectIsReadInEachEncoding(t *testing.T) {
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"x": "1"}}
	cm.Name = "a"
	var encoded bytes.Buffer
	require.NoError(t, protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(cm, &encoded))
	object := objectOf("application/vnd.kubernetes.protobuf", encoded.Bytes())
	assert.Equal(t, "a", nameOf(object))
	assert.Equal(t, map[string]any{"x": "1"}, object["data"])
	assert.Equal(t, "ConfigMap", object["kind"])
	assert.Equal(t, "a", nameOf(objectOf("application/json; charset=utf-8", []byte(`{"kind":"ConfigMap","metadata":{"name":"a"}}`))))
	for contentType, text := range map[string]string{
		"application/json": `{"kind":"Status"}`, "application/vnd.kubernetes.protobuf": "k8s", "text/plain": "{}", "": "{}",
	} {
		assert.Nil(t, objectOf(contentType, []byte(text)), contentType)
	}
	sent, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x", bytes.NewReader(encoded.Bytes()))
	require.NoError(t, err)
	sent.Header.Set("Content-Type", "application/vnd.kubernetes.protobuf")
	assert.Equal(t, "a", sentName(sent))
}

func TestOnlyWhatIsStoredIsAWrite(t *testing.T) {
	for _, c := range []Call{
		{Verb: "get", Resource: "pods"},
		{Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
		{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"},
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
		{Verb: "patch", Resource: "pods", Query: url.Values{"dryRun": {"All"}}},
	} {
		assert.False(t, c.writes(), c.String())
	}
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
		c := Call{Verb: verb, Resource: "pods", Subresource: "status"}
		assert.True(t, c.writes(), c.String())
	}
}

func TestAnEndlessAnswerIsNoCall(t *testing.T) {
	r := newRecorder(t.Context(), Options{Ignored: func(Call) bool { return false }}, false, Crash{})
	for subresource, counts := range map[string]bool{"log": false, "portforward": false, "proxy": false, "status": true} {
		r.classify = func(*http.Request) Call {
			return Call{Verb: "get", Resource: "pods", Name: "a", Subresource: subresource}
		}
		call, fate := r.begin(nil)
		assert.Equal(t, []any{counts, answered}, []any{call != nil, fate}, subresource)
	}
	r.cut()
}
