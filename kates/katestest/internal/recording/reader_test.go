package recording

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const start = `{"type":"recording","at":0,"version":1}` + "\n"

func packed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestWhatIsNoRecordingIsAnErrorThatSaysSo(t *testing.T) {
	for text, want := range map[string]error{
		"hello\n": ErrNoRecording,
		`{"type":"request","at":0,"id":1}` + "\n":                                                                    ErrNoRecording,
		`{"type":"recording","at":0,"version":2}` + "\n":                                                             ErrNewer,
		start + `{"type":"part","at":0,"id":1}` + "\n":                                                               ErrNoRecording,
		start + `{"type":"request","at":-1,"id":1}` + "\n":                                                           ErrNoRecording,
		start + `{"type":"request","at":0,"id":1,"query":"%"}` + "\n":                                                ErrNoRecording,
		start + `{"type":"request","at":0,"id":1}` + "\n" + `{"type":"request","at":0,"id":1}` + "\n":                ErrNoRecording,
		start + `{"type":"request","at":0,"id":1}` + "\n" + `{"type":"part","at":0,"id":1,"size":1}` + "\n" + "ab\n": ErrNoRecording,
	} {
		_, err := Read(bytes.NewReader(packed(t, text)), 1<<20)
		require.ErrorIs(t, err, want, text)
	}
	_, err := Read(bytes.NewReader([]byte("hello")), 1<<20)
	require.ErrorIs(t, err, ErrNoRecording)
	_, err = Read(bytes.NewReader(packed(t, start)), 10)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = Load(t.TempDir() + "/none")
	require.Error(t, err)
}

func TestRecordsOfAnUnknownTypeAreSkipped(t *testing.T) {
	r, err := Read(bytes.NewReader(packed(t, start+`{"type":"new","at":1,"size":3,"more":{}}`+"\nabc\n"+
		`{"type":"request","at":0,"id":1,"path":"/version"}`+"\n"+`{"type":"close","at":2}`+"\n")), 1<<20)
	require.NoError(t, err)
	assert.True(t, r.Whole)
	require.Len(t, r.Exchanges, 1)
	assert.Equal(t, "/version", r.Exchanges[0].Path)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(start+`{"type":"request","at":0,"id":1,"path":"/api/v1/pods","query":"watch=1"}`+"\n"), true)
	f.Add([]byte(start+`{"type":"request","at":0,"id":1}`+"\n"+`{"type":"part","at":0,"id":1,"size":99999999999}`+"\nx"), true)
	f.Add(packed(f, start), false)
	f.Add([]byte(start+`{"type":"request","at":0,"id":1,"path":"/api/v1/pods"}`+"\n"+
		`{"type":"answer","at":1,"id":1,"status":200}`+"\n"+`{"type":"part","at":0,"id":1,"size":82}`+"\n"+
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`+"\n"+
		`{"type":"request","at":2,"id":2,"path":"/api/v1/pods","query":"watch=1&resourceVersion=7"}`+"\n"+
		`{"type":"answer","at":3,"id":2,"status":200}`+"\n"+`{"type":"part","at":4,"id":2,"size":64}`+"\n"+
		`{"type":"ADDED","object":{"metadata":{"resourceVersion":"9"} } }`+"\n\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, pack bool) {
		if pack {
			data = packed(t, string(data))
		}
		r, err := Read(bytes.NewReader(data), 1<<20)
		if (r == nil) == (err == nil) {
			t.Fatalf("%v and %v", r, err)
		}
		if err != nil {
			return
		}
		p := NewPlayer(r, 0)
		for _, e := range r.Exchanges {
			request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: e.Path, RawQuery: e.Query.Encode()}}
			resp, err := p.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			p.Step()
		}
	})
}
