package recording

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/wire/frames"
)

const (
	inJSON     = mediaJSON
	inProtobuf = mediaProtobuf + "," + mediaJSON
)

// script makes recordings by hand. Times are in seconds.
type script struct {
	t  *testing.T
	r  Recording
	in frames.Encoding
}

func (s *script) exchange(at int, path, query string) *Exchange {
	q, err := url.ParseQuery(query)
	require.NoError(s.t, err)
	accept := inJSON
	if s.in == frames.Protobuf {
		accept = inProtobuf
	}
	e := &Exchange{
		Path: path, Query: q, Accept: accept, Asked: seconds(at), Answered: seconds(at),
		Status: http.StatusOK, ContentType: media(s.in, false), Ended: true,
	}
	s.r.Exchanges = append(s.r.Exchanges, e)
	return e
}

func (s *script) list(at int, query, version string, pods ...message) *Exchange {
	e := s.exchange(at, "/api/v1/pods", query)
	e.Parts = []Part{{seconds(at), encoded(s.t, podList(version), s.in, pods...)}}
	return e
}

func (s *script) event(e *Exchange, at int, kind watch.EventType, o message) {
	e.Parts = append(e.Parts, Part{seconds(at), frame(s.t, kind, o, s.in)})
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// rollout is a list at second 1, and events at 2, 3 and 5.
func rollout(t *testing.T, in frames.Encoding) *script {
	s := &script{t: t, in: in}
	s.list(1, "", "10", pod("a", "7"), pod("b", "9"))
	w := s.exchange(1, "/api/v1/pods", "watch=true&resourceVersion=10")
	s.event(w, 2, watch.Modified, pod("a", "12"))
	s.event(w, 3, watch.Added, pod("c", "14"))
	s.event(w, 4, watch.Bookmark, pod("", "15"))
	s.event(w, 5, watch.Deleted, pod("b", "16"))
	return s
}

// ask sends a request to a player.
func ask(t *testing.T, p *Player, accept, query string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://replay"+query, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	resp, err := p.RoundTrip(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// names is a list's version, and the names and versions of its items.
func names(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", body)
	l, err := readList(body)
	require.NoError(t, err)
	text := l.meta.ResourceVersion
	for _, i := range l.items {
		text += " " + i.id.Name + i.id.Version
		require.Equal(t, "Pod", i.kind)
	}
	return text
}

// follow reads the events of a watch in the background.
func follow(t *testing.T, resp *http.Response) func() string {
	t.Helper()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var mu sync.Mutex
	var got []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, text)
	}
	go func() {
		events := frames.Watch(resp.Body, 0)
		for {
			e, err := events.Next()
			if errors.Is(err, io.EOF) {
				note("EOF")
			}
			if err != nil {
				return
			}
			id := frames.IdentityOf(e.Object, e.Encoding)
			note(string(e.Type[:1]) + id.Name + id.Version)
		}
	}()
	return func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		defer func() { got = nil }()
		return strings.Join(got, " ")
	}
}

func TestListsAndWatchesShowWhatWasThereAtThePosition(t *testing.T) {
	for _, in := range []frames.Encoding{frames.JSON, frames.Protobuf} {
		for _, accept := range []string{inJSON, inProtobuf, "*/*"} {
			synctest.Test(t, func(t *testing.T) {
				p := NewPlayer(&rollout(t, in).r, 0)
				assert.Equal(t, "10 a7 b9", names(t, ask(t, p, accept, "/api/v1/pods?limit=1")))
				plain := follow(t, ask(t, p, accept, "/api/v1/pods?watch=1&resourceVersion=10"))
				late := follow(t, ask(t, p, accept, "/api/v1/pods?watch=1&resourceVersion=13&allowWatchBookmarks=true"))
				any := follow(t, ask(t, p, accept, "/api/v1/pods?watch=1&resourceVersion=0"))
				assert.Equal(t, []time.Duration{seconds(2), seconds(3), seconds(4), seconds(5)}, p.Moments())
				assert.Empty(t, plain()+late())
				assert.Equal(t, "Aa7 Ab9", any())
				require.True(t, p.Step())
				assert.Equal(t, "Ma12", plain())
				assert.Equal(t, "Ma12", any())
				assert.Equal(t, "12 a12 b9", names(t, ask(t, p, accept, "/api/v1/pods")))
				p.To(seconds(4))
				assert.Equal(t, "Ac14", plain())
				assert.Equal(t, "Ac14 B15", late())
				streamed := follow(t, ask(t, p, accept, "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"))
				assert.Equal(t, "Aa12 Ab9 Ac14 B15", streamed())
				require.True(t, p.Step())
				require.False(t, p.Step())
				assert.Equal(t, "Db16", streamed())
				assert.Equal(t, "16 a12 c14", names(t, ask(t, p, accept, "/api/v1/pods")))
				assert.Equal(t, "14 a12 b9 c14", names(t, ask(t, p, accept, "/api/v1/pods?resourceVersion=14&resourceVersionMatch=Exact")))
			})
		}
	}
}

func TestAReplayKeepsTheTimesAtItsSpeed(t *testing.T) {
	for _, speed := range []float64{1, 3, 0.25} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPlayer(&rollout(t, frames.JSON).r, speed)
			time.Sleep(time.Hour) // the clock starts with the first request
			started := time.Now()
			resp := ask(t, p, inJSON, "/api/v1/pods?watch=1&resourceVersion=10")
			at := map[string]time.Duration{}
			go func() {
				events := frames.Watch(resp.Body, 0)
				for e, err := events.Next(); err == nil; e, err = events.Next() {
					at[frames.IdentityOf(e.Object, e.Encoding).Version] = time.Since(started)
				}
			}()
			require.NoError(t, p.Wait(t.Context()))
			synctest.Wait()
			for version, want := range map[string]int{"12": 1, "14": 2, "16": 4} { // since the list
				assert.InDelta(t, float64(seconds(want))/speed, float64(at[version]), float64(10*time.Microsecond), "%v %s", speed, version)
			}
		})
	}
}

func TestTheFastestReplayWaitsForNothingButItsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlayer(&rollout(t, frames.JSON).r, Fastest)
		started := time.Now()
		slow := ask(t, p, inJSON, "/api/v1/pods?watch=1&resourceVersion=10")
		quick := follow(t, ask(t, p, inJSON, "/api/v1/pods?watch=1&resourceVersion=10"))
		assert.Empty(t, quick(), "nobody reads the other watch")
		both := follow(t, slow)
		require.NoError(t, p.Wait(t.Context()))
		assert.Equal(t, "Ma12 Ac14 Db16", quick())
		assert.Equal(t, "Ma12 Ac14 Db16", both())
		assert.Equal(t, started, time.Now())
	})
	synctest.Test(t, func(t *testing.T) {
		p := NewPlayer(&rollout(t, frames.JSON).r, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, p.Wait(ctx), "at 1s of 5s")
	})
}

func TestWhatCannotBePlayedIsAnErrorThatSaysSo(t *testing.T) {
	s := rollout(t, frames.Protobuf)
	s.exchange(2, "/api/v1/secrets", "").Withheld = "secrets in it could not be found"
	forbidden := s.exchange(2, "/api/v1/nodes", "")
	forbidden.Status, forbidden.Parts = http.StatusForbidden, []Part{{seconds(2), []byte(`{"message":"never"}`)}}
	p := NewPlayer(&s.r, 0)
	for query, want := range map[string]struct {
		code int
		says string
	}{
		"/api/v1/services":                 {404, "the recording has no list or watch of /api/v1/services"},
		"/api/v1/pods?labelSelector=a%3Db": {404, "it has /api/v1/pods"},
		"/api/v1/secrets":                  {404, "withheld"},
		"/api/v1/nodes":                    {403, "never"},
		"/api/v1/pods/a":                   {404, "no answer to a GET"},
		"/version":                         {404, "no answer to a GET"},
		"/api/v1/pods?resourceVersion=11":  {504, "Too large resource version: 11, current: 10"},
		"/api/v1/pods?resourceVersion=x":   {400, "no version"},
		"/api/v1/pods?resourceVersion=9&resourceVersionMatch=Exact": {410, "from 10 to 10"},
		"/api/v1/pods?continue=x":                                   {410, "no pages"},
		"/api/v1/pods?watch=1&resourceVersion=9":                    {410, "between 9 and 10"},
		"/api/v1/pods?watch=1&resourceVersion=17":                   {410, "ends at version 16"},
		"/api/v1/pods?watch=1&resourceVersion=x":                    {400, "no version"},
		"/api/v1/namespaces/default/pods/a/log":                     {405, "writes"},
	} {
		resp := ask(t, p, inJSON, query)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, want.code, resp.StatusCode, query)
		assert.Contains(t, string(body), want.says, query)
		var status metav1.Status
		require.NoError(t, json.Unmarshal(body, &status))
	}
	resp := ask(t, p, "application/cbor", "/api/v1/pods")
	assert.Equal(t, http.StatusNotAcceptable, resp.StatusCode)
}

func TestWhatWasMissedEndsWatchesAndIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rollout(t, frames.JSON)
		s.list(8, "", "30", pod("a", "12"), pod("d", "25"))
		w := s.exchange(8, "/api/v1/pods", "watch=true&resourceVersion=30")
		s.event(w, 9, watch.Deleted, pod("d", "31"))
		p := NewPlayer(&s.r, 0)
		events := follow(t, ask(t, p, inJSON, "/api/v1/pods?watch=1&resourceVersion=10"))
		p.To(seconds(7))
		assert.Equal(t, "Ma12 Ac14 Db16", events())
		require.True(t, p.Step())
		assert.Equal(t, "E EOF", events())
		assert.Equal(t, http.StatusGone, ask(t, p, inJSON, "/api/v1/pods?watch=1&resourceVersion=16").StatusCode)
		assert.Equal(t, "30 a12 d25", names(t, ask(t, p, inJSON, "/api/v1/pods")))
		again := follow(t, ask(t, p, inJSON, "/api/v1/pods?watch=1&resourceVersion=30"))
		require.True(t, p.Step())
		assert.Equal(t, "Dd31", again())
	})
}

func TestAListThatShowsNothingNewMissesNothing(t *testing.T) {
	s := rollout(t, frames.JSON)
	s.list(2, "", "14", pod("a", "12"), pod("b", "9"), pod("c", "14")) // before the event came
	s.list(3, "resourceVersion=0", "8", pod("a", "7"))                 // from an old cache
	s.list(6, "", "40", pod("a", "12"), pod("c", "14"))
	p := NewPlayer(&s.r, 0)
	require.Len(t, p.tape.histories[keyOf("/api/v1/pods", nil, "")].segments, 1)
	p.To(seconds(2))
	assert.Equal(t, "14 a12 b9 c14", names(t, ask(t, p, inJSON, "/api/v1/pods")), "the list has proven the event")
	p.To(seconds(6))
	assert.Equal(t, "40 a12 c14", names(t, ask(t, p, inJSON, "/api/v1/pods")))
}

func TestPagesAndStreamsMakeOneHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, in: frames.JSON}
		first := s.list(1, "limit=1", "10")
		l := podList("10")
		l.meta.Continue = "next"
		first.Parts[0].Data = encoded(t, l, frames.JSON, pod("a", "7"))
		s.list(2, "limit=1&continue=next", "10", pod("b", "9"))
		s.list(2, "limit=1&continue=other", "11", pod("x", "9"))
		cut := s.list(3, "", "12", pod("a", "7"))
		cut.Parts[0].Data, cut.Cause = cut.Parts[0].Data[:50], causeCut
		w := s.exchange(4, "/api/v1/pods", "watch=1&sendInitialEvents=true")
		s.event(w, 4, watch.Added, pod("b", "9"))
		s.event(w, 4, watch.Added, pod("a", "7"))
		s.event(w, 4, watch.Bookmark, pod("", "13"))
		s.event(w, 5, watch.Deleted, pod("a", "14"))
		p := NewPlayer(&s.r, 0)
		assert.Equal(t, "10 a7 b9", names(t, ask(t, p, inJSON, "/api/v1/pods")))
		events := follow(t, ask(t, p, inJSON, "/api/v1/pods?watch=1&resourceVersion=10&timeoutSeconds=60"))
		p.To(seconds(9))
		assert.Equal(t, "Da14", events())
		time.Sleep(time.Minute)
		assert.Equal(t, "EOF", events(), "the client's own time-out")
	})
}

func TestAListIsAsNewAsAnotherWatchOfItsResource(t *testing.T) {
	s := rollout(t, frames.JSON)
	other := s.exchange(1, "/api/v1/namespaces/default/pods", "")
	other.Parts = []Part{{seconds(1), encoded(t, podList("10"), frames.JSON)}}
	w := s.exchange(1, "/api/v1/namespaces/default/pods", "watch=1&resourceVersion=10")
	s.event(w, 3, watch.Added, pod("a", "12"))
	p := NewPlayer(&s.r, 0)
	p.To(seconds(2))
	assert.Equal(t, "10", names(t, ask(t, p, inJSON, "/api/v1/namespaces/default/pods")))
	assert.Equal(t, "12 a12", names(t, ask(t, p, inJSON, "/api/v1/namespaces/default/pods?resourceVersion=12")))
}

func TestOtherAnswersAreTheLatestOnes(t *testing.T) {
	s := rollout(t, frames.JSON)
	for at, kind := range map[int]string{1: "one", 3: "two"} {
		e := s.exchange(at, "/apis", "timeout=32s")
		e.Accept, e.ContentType = inJSON+";g=x;v=v2;as=Discovery,"+inJSON, inJSON+";g=x;v=v2;as=Discovery"
		e.Parts = []Part{{seconds(at), []byte(kind)}}
	}
	p := NewPlayer(&s.r, 0)
	get := func(accept string) string {
		body, err := io.ReadAll(ask(t, p, accept, "/apis").Body)
		require.NoError(t, err)
		return string(body)
	}
	assert.Equal(t, "one", get(inJSON+";g=x;v=v2;as=Discovery"))
	assert.Contains(t, get(inJSON), "no answer", "it is of another form")
	p.To(seconds(3))
	assert.Equal(t, "two", get("*/*"))
}
