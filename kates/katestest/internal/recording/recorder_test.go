package recording

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/wire/frames"
)

// memory is a file in memory.
type memory struct {
	mu   sync.Mutex
	data bytes.Buffer
	err  error // of writes
}

func (m *memory) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return 0, m.err
	}
	return m.data.Write(p)
}

func (m *memory) Close() error { return nil }

func (m *memory) read(t *testing.T) *Recording {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := Read(bytes.NewReader(m.data.Bytes()), mostBytes)
	require.NoError(t, err)
	return r
}

func (m *memory) has(t *testing.T, text string) bool {
	t.Helper()
	for _, e := range m.read(t).Exchanges {
		for _, p := range e.Parts {
			if bytes.Contains(p.Data, []byte(text)) {
				return true
			}
		}
	}
	return false
}

// answers is a server: a body for each path, in pieces that come a second after each other.
type answers map[string]answer

type answer struct {
	kind   string
	pieces [][]byte
	err    error
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	one, there := a[r.URL.Path]
	if !there {
		return nil, errors.New("refused")
	}
	read, write := io.Pipe()
	go func() {
		for n, piece := range one.pieces {
			if n > 0 {
				time.Sleep(time.Second)
			}
			if _, err := write.Write(piece); err != nil {
				return
			}
		}
		_ = write.CloseWithError(one.err)
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {one.kind}}, Body: read}, nil
}

// get reads an answer to its end.
func get(t *testing.T, rt http.RoundTripper, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+url, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	body, _ := io.ReadAll(resp.Body)
	require.NoError(t, resp.Body.Close())
	return string(body)
}

const token = "abcdefghijklmnopqrstuvwxyz"

func encoded(t *testing.T, l list, e frames.Encoding, objects ...message) []byte {
	t.Helper()
	l.encoding = e
	for _, o := range objects {
		l.items = append(l.items, itemOf(t, o, e))
	}
	body, err := l.encode()
	require.NoError(t, err)
	return body
}

func itemOf(t *testing.T, o message, e frames.Encoding) item {
	t.Helper()
	gvk := o.GetObjectKind().GroupVersionKind()
	raw, err := o.Marshal()
	require.NoError(t, err)
	i := item{raw: raw, encoding: frames.Protobuf, apiVersion: gvk.GroupVersion().String(), kind: gvk.Kind}
	if e == frames.JSON {
		i, err = i.json()
		require.NoError(t, err)
	}
	i.id = frames.IdentityOf(i.raw, e)
	return i
}

func frame(t *testing.T, kind watch.EventType, o message, e frames.Encoding) []byte {
	t.Helper()
	body, err := (&event{kind, itemOf(t, o, e)}).encode()
	require.NoError(t, err)
	return body
}

func podList(version string) list {
	return list{apiVersion: "v1", kind: "PodList", meta: metav1.ListMeta{ResourceVersion: version}}
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u-" + "x", ResourceVersion: version},
		Spec:       corev1.PodSpec{NodeName: "node-" + version},
	}
}

func aSecret(version, password string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", ResourceVersion: version, Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: `{"stringData":{"password":"` + password + `"}}`,
		}},
		Data: map[string][]byte{"password": []byte(password), "same": []byte("never changes")},
	}
}

func TestWhatIsReadIsRecordedWithItsTimes(t *testing.T) {
	for _, e := range []frames.Encoding{frames.JSON, frames.Protobuf} {
		t.Run(string(e), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := frame(t, watch.Added, pod("a", "3"), e), frame(t, watch.Modified, pod("a", "4"), e)
				page := encoded(t, podList("2"), e, pod("a", "1"), pod("b", "2"))
				server := answers{
					"/api/v1/pods":     {kind: mediaJSON, pieces: [][]byte{page[:20], page[20:]}},
					"/api/v1/nodes":    {kind: mediaJSON, pieces: [][]byte{append(bytes.Clone(first), second[:5]...), second[5:]}},
					"/version":         {kind: mediaJSON, pieces: [][]byte{[]byte("{}")}},
					"/api/v1/pods/a":   {pieces: [][]byte{[]byte("{}")}, err: io.ErrUnexpectedEOF},
					"/api/v1/pods/log": {},
				}
				file := &memory{}
				w := NewWriter(file)
				rt := NewRecorder(w, "", true, nil).Wrap(server)
				assert.Equal(t, string(page), get(t, rt, "/api/v1/pods?limit=5"))
				assert.Equal(t, string(first)+string(second), get(t, rt, "/api/v1/nodes?watch=true"))
				get(t, rt, "/version")
				get(t, rt, "/api/v1/pods/a")
				assert.Equal(t, "refused", get(t, rt, "/api/v1/namespaces/x/services"))
				get(t, rt, "/api/v1/namespaces/x/pods/y/log")
				require.NoError(t, w.Close())
				require.Error(t, w.Close())

				r := file.read(t)
				assert.True(t, r.Whole)
				require.Len(t, r.Exchanges, 5, "a log is not recorded")
				assert.Equal(t, "5", r.Exchanges[0].Query.Get("limit"))
				assert.Equal(t, []Part{{time.Second, page}}, r.Exchanges[0].Parts)
				assert.Equal(t, []Part{{time.Second, first}, {2 * time.Second, second}}, r.Exchanges[1].Parts)
				assert.Equal(t, causeServer, r.Exchanges[1].Cause)
				assert.Equal(t, causeCut, r.Exchanges[3].Cause)
				assert.Zero(t, r.Exchanges[4].Status)
				assert.True(t, r.Exchanges[4].Ended)
			})
		})
	}
}

func TestSecretsAreRedactedWhateverTheyComeIn(t *testing.T) {
	secrets := list{apiVersion: "v1", kind: "SecretList", meta: metav1.ListMeta{ResourceVersion: "2"}}
	short := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: aSecret("1", "hunter2").ObjectMeta,
	}
	shortList := list{apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadataList"}
	for _, e := range []frames.Encoding{frames.JSON, frames.Protobuf} {
		object := itemOf(t, aSecret("1", "hunter2"), e)
		single, err := object.enveloped()
		require.NoError(t, err)
		for what, c := range map[string]struct {
			url  string
			body []byte
		}{
			"a list":          {"/api/v1/secrets", encoded(t, secrets, e, aSecret("1", "hunter2"))},
			"an event":        {"/api/v1/secrets?watch=1", frame(t, watch.Added, aSecret("1", "hunter2"), e)},
			"an object":       {"/api/v1/namespaces/default/secrets/db", single},
			"a short list":    {"/api/v1/secrets", encoded(t, shortList, e, short)},
			"a short event":   {"/api/v1/secrets?watch=1", frame(t, watch.Added, short, e)},
			"a damaged list":  {"/api/v1/secrets", []byte(`{"items":[{"data":{"password":"hunter2"`)},
			"a garbled event": {"/api/v1/secrets?watch=1", []byte(`{"type":"ADDED","object":{"data":{"password":"hunter2"},},}` + "\n")},
			"no object":       {"/api/v1/namespaces/default/secrets/db", []byte("hunter2")},
		} {
			t.Run(string(e)+" "+what, func(t *testing.T) {
				file := &memory{}
				w := NewWriter(file)
				path, _, _ := strings.Cut(c.url, "?")
				rt := NewRecorder(w, "", true, nil).Wrap(answers{path: {kind: mediaJSON, pieces: [][]byte{c.body}}})
				assert.Equal(t, string(c.body), get(t, rt, c.url), "the program gets what came")
				require.NoError(t, w.Close())
				r := file.read(t)
				require.Len(t, r.Exchanges, 1)
				assert.False(t, file.has(t, "hunter2") || file.has(t, "aHVudGVyMg"))
				if r.Exchanges[0].Withheld == "" {
					assert.True(t, file.has(t, "redacted-") || file.has(t, "cmVkYWN0ZWQt"))
					assert.True(t, file.has(t, "db"))
				} else {
					assert.Empty(t, r.Exchanges[0].Parts)
				}
			})
		}
	}
}

func TestRedactedValuesAreEqualWhereTheyWereEqual(t *testing.T) {
	masked := func(r *redactor, o *corev1.Secret, e frames.Encoding) map[string][]byte {
		i, err := r.object(itemOf(t, o, e), "secrets")
		require.NoError(t, err)
		u, err := i.untyped()
		require.NoError(t, err)
		s := &corev1.Secret{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s))
		return s.Data
	}
	r := newRedactor(true, nil)
	first, second := masked(r, aSecret("1", "hunter2"), frames.Protobuf), masked(r, aSecret("2", "hunter3"), frames.JSON)
	assert.Equal(t, first["same"], second["same"])
	assert.NotEqual(t, first["password"], second["password"])
	other := masked(newRedactor(true, nil), aSecret("1", "hunter2"), frames.JSON)
	assert.NotEqual(t, first["same"], other["same"], "nobody can try values")
}

func TestSecretsAreRecordedIfThatIsAskedFor(t *testing.T) {
	file := &memory{}
	w := NewWriter(file)
	secrets := list{apiVersion: "v1", kind: "SecretList", meta: metav1.ListMeta{ResourceVersion: "2"}}
	body := encoded(t, secrets, frames.Protobuf, aSecret("1", "hunter2"))
	get(t, NewRecorder(w, "", false, nil).Wrap(answers{"/api/v1/secrets": {pieces: [][]byte{body}}}), "/api/v1/secrets")
	require.NoError(t, w.Close())
	assert.True(t, file.has(t, "hunter2"))
}

func TestAFunctionRedactsWhatItWants(t *testing.T) {
	hide := func(u *unstructured.Unstructured) {
		if u.GetName() == "b" {
			panic("no")
		}
		unstructured.RemoveNestedField(u.Object, "spec", "nodeName")
	}
	for _, e := range []frames.Encoding{frames.JSON, frames.Protobuf} {
		file := &memory{}
		w := NewWriter(file)
		rt := NewRecorder(w, "", true, hide).Wrap(answers{
			"/api/v1/pods":                      {kind: mediaJSON, pieces: [][]byte{encoded(t, podList("2"), e, pod("a", "1"))}},
			"/api/v1/namespaces/kube/pods":      {kind: mediaJSON, pieces: [][]byte{encoded(t, podList("2"), e, pod("b", "1"))}},
			"/api/v1/namespaces/default/pods":   {kind: mediaJSON + ";as=Table;g=meta.k8s.io;v=v1", pieces: [][]byte{[]byte(`{"rows":"node-1"}`)}},
			"/api/v1/namespaces/default/pods/x": {kind: mediaJSON, pieces: [][]byte{[]byte(`{"token":"` + token + `","kind":"X"}`)}},
		})
		for _, url := range []string{
			"/api/v1/pods", "/api/v1/namespaces/kube/pods", "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods/x",
		} {
			get(t, rt, url)
		}
		require.NoError(t, w.Close())
		assert.False(t, file.has(t, "node-1"))
		assert.False(t, file.has(t, token))
		r := file.read(t)
		l, err := readList(r.Exchanges[0].Parts[0].Data)
		require.NoError(t, err)
		assert.Equal(t, "a", l.items[0].id.Name)
		assert.Equal(t, e, l.encoding)
		assert.Contains(t, r.Exchanges[1].Withheld, "panicked")
		assert.Contains(t, r.Exchanges[2].Withheld, "table")
		assert.Contains(t, r.Exchanges[3].Withheld, "token")
	}
}

func TestAfterACrashTheFileIsReadableUpToThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := frame(t, watch.Added, pod("a", "3"), frames.JSON), frame(t, watch.Modified, pod("a", "4"), frames.JSON)
		file := &memory{}
		w := NewWriter(file)
		rt := NewRecorder(w, "", true, nil).Wrap(answers{"/api/v1/pods": {kind: mediaJSON, pieces: [][]byte{first, second}}})
		done := make(chan struct{})
		go func() { defer close(done); get(t, rt, "/api/v1/pods?watch=true") }()
		synctest.Wait() // the second has not come
		crashed := file.read(t)
		assert.False(t, crashed.Whole)
		require.Len(t, crashed.Exchanges, 1)
		assert.Equal(t, []Part{{0, first}}, crashed.Exchanges[0].Parts)
		assert.False(t, crashed.Exchanges[0].Ended)
		<-done
		require.NoError(t, w.Close())

		whole := file.data.Bytes()
		for n := range whole {
			r, err := Read(bytes.NewReader(whole[:n]), mostBytes)
			if err != nil {
				require.ErrorIs(t, err, ErrNoRecording, "the first %d bytes", n)
				require.Less(t, n, 150)
				continue
			}
			assert.LessOrEqual(t, len(r.Exchanges), 1)
		}
	})
}

func TestAFileThatCannotBeWrittenDisturbsNobody(t *testing.T) {
	file := &memory{err: errors.New("the disk is full")}
	w := NewWriter(file)
	page := encoded(t, podList("2"), frames.JSON, pod("a", "1"))
	rt := NewRecorder(w, "", true, nil).Wrap(answers{"/api/v1/pods": {pieces: [][]byte{page}}})
	for range 3 {
		assert.Equal(t, string(page), get(t, rt, "/api/v1/pods"))
	}
	require.ErrorContains(t, w.Close(), "the disk is full")
	assert.Equal(t, string(page), get(t, rt, "/api/v1/pods"), "after the end nothing is recorded")
}
