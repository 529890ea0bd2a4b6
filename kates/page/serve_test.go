package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates/inspect"
)

func TestAPageIsReadOnly(t *testing.T) {
	p := New()
	defer p.Close()
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(method, "http://localhost/debug/kates/", nil))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("HEAD", "http://localhost/debug/kates/", nil))
	assert.Equal(t, http.StatusOK, w.Code)
}

func TestAPageIsForNamesThatNoOtherSiteHas(t *testing.T) {
	p := New(Hosts("Status.Example.com"))
	defer p.Close()
	for host, code := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "10.1.2.3": 200, "kates.localhost": 200,
		"kates": 200, "status.example.com": 200, "status.example.com.:443": 200, "STATUS.example.com": 200,
		"evil.example": 403, "evil.example:8080": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example": 403,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		r.Host = host
		p.ServeHTTP(w, r)
		assert.Equal(t, code, w.Code, host)
	}
	anybody := New(Hosts("*"))
	defer anybody.Close()
	w := httptest.NewRecorder()
	anybody.ServeHTTP(w, httptest.NewRequest("GET", "http://some.example/", nil))
	assert.Equal(t, http.StatusOK, w.Code)
}

func TestScriptsAndFramesOfOtherSitesAreRefusedAndLinksAreNot(t *testing.T) {
	_, base := serve(t)
	for _, test := range []struct {
		site, mode, dest string
		code             int
	}{
		{"cross-site", "no-cors", "script", 403}, {"same-site", "cors", "empty", 403}, {"cross-site", "navigate", "iframe", 403},
		{"cross-site", "navigate", "document", 200}, {"same-origin", "cors", "empty", 200}, {"none", "navigate", "document", 200},
	} {
		answer, _ := get(t, base, "Sec-Fetch-Site", test.site, "Sec-Fetch-Mode", test.mode, "Sec-Fetch-Dest", test.dest)
		assert.Equal(t, test.code, answer.StatusCode, "%v", test)
	}
}

func TestAPathWithoutASlashIsSentToOneWithIt(t *testing.T) {
	p := New()
	defer p.Close()
	mux := http.NewServeMux()
	mux.Handle("/debug/kates", http.StripPrefix("/debug/kates", p))
	s := httptest.NewServer(mux)
	defer s.Close()
	answer, _ := get(t, s.URL+"/debug/kates?x=1")
	assert.Equal(t, http.StatusFound, answer.StatusCode)
	assert.Equal(t, "./kates/", answer.Header.Get("Location"))
	_, base := serve(t)
	for _, path := range []string{"nothing", "page.html", "..", "style.css/x"} {
		answer, _ = get(t, base+path)
		assert.NotEqual(t, http.StatusOK, answer.StatusCode, path)
	}
}

func TestAPageOf100000ObjectsMakesWhatItShowsAndReadsNoObject(t *testing.T) {
	f := full()
	f.made.Watches[1].Queries[0].Invalid = 0 // one of these is read, for its reason
	f.keys = nil
	for i := range 100_000 {
		f.keys = append(f.keys, inspect.ObjectKey{Namespace: fmt.Sprintf("ns-%02d", i/1000), Name: fmt.Sprintf("object-%05d", i%1000)})
	}
	_, base := serve(t, client("one", f))
	links := func(body string) int { return strings.Count(body, `<li><a href="./object?`) }
	body := ok(t, base+"objects?query=Services&watch=2")
	assert.Equal(t, 100, links(body))
	assert.Less(t, len(body), 60_000)
	assert.Contains(t, body, `rel="next"`)
	assert.Zero(t, f.asks)

	assert.Equal(t, 1000, links(ok(t, base+"objects?query=Services&watch=2&limit=1000000")))
	body = ok(t, base+"objects?query=Services&watch=2&namespace=ns-50&name=99")
	assert.Equal(t, 19, links(body)) // 099, 199, …, 990 to 999
	assert.NotContains(t, body, `rel="next"`)
	assert.Equal(t, 100, links(ok(t, base+"objects?query=Services&watch=2&name=0099")))
	assert.Zero(t, f.asks)
}

func TestThePagesOfAQueryHaveEachObjectOnce(t *testing.T) {
	f := full()
	f.keys = nil
	for i := range 250 {
		f.keys = append(f.keys, inspect.ObjectKey{Namespace: fmt.Sprintf("ns-%d", i/100), Name: fmt.Sprintf("object-%03d", i)})
	}
	p, _ := serve(t, client("one", f))
	seen := map[inspect.ObjectKey]int{}
	after := map[string][]string{"query": {"Services"}, "watch": {"2"}}
	for pages := 1; ; pages++ {
		of := p.objectsPage(p.stateNow("").clients, after)
		for _, k := range of.Objects {
			seen[k.ObjectKey]++
		}
		if of.Next == nil {
			require.Equal(t, 3, pages)
			break
		}
		after["afterNamespace"], after["after"] = []string{of.Next.Namespace}, []string{of.Next.Name}
	}
	assert.Len(t, seen, 250)
}
