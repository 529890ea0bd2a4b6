package kates_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"

	"github.com/kates-go/kates/kates"
)

// badBodies are answers that are no list of what was asked for.
var badBodies = []badList{
	{name: "nothing", lie: says(""), error: "unexpected EOF"},
	{name: "a page of a proxy", lie: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><body>Sign in, please</body></html>")
	}, error: "a page in place of a list, perhaps of a proxy"},
	{name: "plain text", lie: says("no healthy upstream"), error: `a list begins with 'n'`},
	{name: "an array", lie: says("[]"), error: `a list begins with '\['`},
	{name: "an empty object", lie: says("{}"), error: "a list that does not say what it is"},
	{name: "a status", lie: says(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no luck","code":404}`),
		error: `a Status in place of a list, though the request succeeded: NotFound "no luck"`},
	{name: "a status that refuses", lie: says(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"items":[]}`),
		error: "a Status in place of a list"},
	{name: "a status of success", lie: says(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`), error: "a Status in place of a list"},
	{name: "a status in protobuf", lie: says("k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x06\x1a\x04luck"), error: `a Status in place of a list.*"luck"`},
	{name: "a list without items", lie: says(`{"kind":"$LIST","apiVersion":"$GV","metadata":{"resourceVersion":"900"}}`), error: "a list without items"},
	{name: "items that are an object", lie: says(`{"kind":"$LIST","apiVersion":"$GV","metadata":{"resourceVersion":"900"},"items":{}}`), error: "cannot be read"},
	{name: "a list of another kind", lie: says(`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":[]}`),
		error: `a list of kind SecretList \(v1\) in place of a \w+List`},
	{name: "null of another kind", lie: says(`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":null}`),
		error: `a list of kind SecretList \(v1\) in place of a \w+List`},
	{name: "a list of another version", lie: says(`{"kind":"$LIST","apiVersion":"v2","metadata":{"resourceVersion":"900"},"items":[]}`),
		error: `\(v2\) in place of a \w+List`},
	{name: "a list that does not say its kind", lie: says(`{"metadata":{"resourceVersion":"900"},"items":[]}`), error: "a list that does not say what it is"},
	{name: "an object", lie: says(`{"kind":"$KIND","apiVersion":"$GV","metadata":{"resourceVersion":"900"}}`), error: `in place of a \w+List`},
	{name: "items twice", lie: says(`{"kind":"$LIST","apiVersion":"$GV","metadata":{"resourceVersion":"900"},"items":[` + itemOf("a") + `],"items":[]}`), error: `a list with "items" twice`},
	{name: "the kind twice", lie: says(`{"kind":"SecretList","kind":"$LIST","apiVersion":"$GV","metadata":{"resourceVersion":"900"},"items":[]}`), error: `a list with "kind" twice`},
	{name: "more behind the list", lie: says(listOf(itemOf("a")) + listOf()), error: "behind the end"},
	{name: "protobuf with a wrong length", lie: says("k8s\x00\x0a\x13\x0a\x02v1\x12\x0dConfigMapList\x12\x08\x0a\x00\x12\x7fabcd"), error: "a field of 127 bytes"},
	{name: "protobuf of another kind", lie: says("k8s\x00\x0a\x10\x0a\x02v1\x12\x0aSecretList\x12\x05\x0a\x03\x12\x019"), error: "in place of a"},
	{name: "protobuf that nobody asked for", form: "untyped",
		lie: says("k8s\x00\x0a\x13\x0a\x02v1\x12\x0dConfigMapList\x12\x0b\x0a\x05\x12\x03900\x12\x02\x0a\x00"), error: "nobody asked for that"},
}

// badObjects are lists of which an object is wrong.
var badObjects = []badList{
	{name: "null as an object", lie: says(listOf("null")), error: "without a name"},
	{name: "a number as an object", lie: says(listOf("7")), error: "without a name"},
	{name: "an object of another kind", lie: says(listOf(itemOf("a"), strings.Replace(itemOf("b"), "$KIND", "Secret", 1))), error: "an object of kind Secret"},
	{name: "an object of another version", lie: says(listOf(strings.Replace(itemOf("b"), "$GV", "v2", 1))), error: `an object of kind \w+ \(v2\)`},
	{name: "a kind that is a number", form: "untyped", lie: says(listOf(strings.Replace(itemOf("b"), `"$KIND"`, "7", 1))), error: "an object that does not say what it is"},
	{name: "an object of another namespace", lie: says(listOf(itemOf("a"), strings.Replace(itemOf("b"), `"ns"`, `"other"`, 1))), error: `in the namespace "other", where "ns" was asked for`},
	{name: "an object without a namespace", lie: says(listOf(strings.Replace(itemOf("b"), `"namespace":"ns",`, "", 1))), error: `in the namespace "", which cannot be`},
	{name: "an object without a name", lie: says(listOf(itemOf(""))), error: "without a name"},
	{name: "an object without metadata", lie: says(listOf(`{"kind":"$KIND","apiVersion":"$GV"}`)), error: "without a name"},
	{name: "a name that is a path", lie: says(listOf(itemOf("../secrets/a"))), error: "which cannot be"},
	{name: "a name of two dots", lie: says(listOf(itemOf(".."))), error: "which cannot be"},
	{name: "a name that is an escape", lie: says(listOf(itemOf("a%2fb"))), error: "which cannot be"},
	{name: "the same object twice", lie: says(listOf(itemOf("a"), itemOf("b"), itemOf("a"))), error: `"ns/a" twice in one list`},
	{name: "a key twice", lie: says(listOf(itemOf("a", `,"data":{"x":"1","x":"2"}`))), error: "duplicate field", form: "typed"},
	{name: "a key twice, untyped", lie: says(listOf(itemOf("a", `,"data":{"x":"1","x":"2"}`))), error: "duplicate field", form: "untyped"},
	{name: "a name twice", lie: says(listOf(strings.Replace(itemOf("a"), `"name":"a"`, `"name":"a","name":"b"`, 1))), error: "duplicate field"},
	{name: "metadata twice", lie: says(listOf(itemOf("a", `,"met\u0061data":{"namespace":"ns","name":"z"}`))), error: "duplicate field"},
	{name: "a string that is no UTF-8", lie: says(listOf(itemOf("a", ",\"data\":{\"x\":\"\xff\"}"))), error: "no valid UTF-8"},
	{name: "a name that is no UTF-8", lie: says(listOf(itemOf("a\xff"))), error: "no valid UTF-8"},
	{name: "brackets that do not match", lie: says(listOf(itemOf("a", `,"data":{"x":[}]}`))), error: `it is damaged: .*invalid character`},
	{name: "deep nesting", lie: says(listOf(itemOf("a", `,"x":`+strings.Repeat("[", 11_000)+strings.Repeat("]", 11_000)))), error: "exceeded max depth"},
	{name: "nesting that never ends", lie: endless(`{"kind":"$LIST","apiVersion":"$GV","items":[{"x":`, "["), error: "larger than the client reads"},
	{name: "an object that never ends", lie: endless(`{"kind":"$LIST","apiVersion":"$GV","items":[{"metadata":{"name":"`, "a"), error: "larger than the client reads"},
	{name: "a number that never ends", lie: endless(`{"kind":"$LIST","apiVersion":"$GV","items":[{"x":1`, "1"), error: "larger than the client reads"},
	{name: "a key that never ends", lie: endless(`{"`, "k"), error: "larger than the client reads"},
	{name: "space that never ends", lie: endless(`{"kind":"$LIST","apiVersion":"$GV","items":[`, " "), error: "larger than the client reads"},
	{name: "an object in protobuf that never ends",
		lie: endless("k8s\x00\x12\xff\xff\xff\xff\x07\x12\xff\xff\xff\xff\x06", "a"), error: "larger than the client reads"},
}

// badVersions are lists of versions that cannot be.
var badVersions = []badList{
	{name: "no version", lie: says(strings.Replace(listOf(), "$RV", "", 1)), error: `does not say of which version its list is \(resourceVersion ""\)`},
	{name: "no metadata", lie: says(`{"kind":"$LIST","apiVersion":"$GV","items":[]}`), error: "does not say of which version its list is"},
	{name: "version 0", lie: says(strings.Replace(listOf(), "$RV", "0", 1)), error: `does not say of which version its list is \(resourceVersion "0"\)`},
	{name: "a version that does not compare", later: true, lie: says(strings.Replace(listOf(), "$RV", "abc", 1)), error: `version "abc", which does not compare with 100 before`},
	{name: "an old version, again and again", later: true, lie: notWhenProbed(says(strings.Replace(listOf(), "$RV", "50", 1))),
		error: "older than what it has shown before"},
	{name: "an old version, and a probe without one", later: true, lie: func(w http.ResponseWriter, r *http.Request) {
		rv := "50"
		if probed(r) {
			rv = ""
		}
		says(strings.Replace(listOf(), "$RV", rv, 1))(w, r)
	}, error: "does not say of which version|older than what it has shown before"},
}

// badPages are lists in pages that lead nowhere.
var badPages = []badList{
	{name: "a token that comes again", lie: says(page("same", `"items":[]`)), error: "the same continue token twice"},
	{name: "pages that go in a circle", lie: func(w http.ResponseWriter, r *http.Request) {
		next := map[string]string{"": "one", "one": "two", "two": "one"}[r.URL.Query().Get("continue")]
		says(page(next, `"items":null`))(w, r)
	}, error: "the same continue token twice"},
	{name: "a first page for ever", lie: func(w http.ResponseWriter, r *http.Request) {
		says(page(r.URL.Query().Get("continue")+"x", `"items":[`+itemOf("a")+`]`))(w, r)
	}, error: `"ns/a" twice in one list`},
	{name: "empty pages for ever", form: "untyped", slow: true, lie: func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &n)
		says(page(fmt.Sprint(n+1), `"items":[]`))(w, r)
	}, error: "has given 1000 pages without an item, and goes on"},
	{name: "tokens that expire for ever", lie: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too late","code":410}`)
			return
		}
		says(page("next", `"items":[]`))(w, r)
	}, error: "too late"},
}

// badTransfers are answers that do not arrive as they should.
var badTransfers = []badList{
	{name: "a list that is cut", lie: func(w http.ResponseWriter, r *http.Request) {
		says(strings.TrimSuffix(listOf(itemOf("a")), "]}"))(w, r)
	}, error: "unexpected EOF"},
	{name: "a connection that is cut", lie: cutOff, error: "EOF|reset"},
	{name: "a stream of HTTP/2 that is reset", secure: true, lie: cutOff, error: "stream error|INTERNAL_ERROR|EOF"},
	{name: "a connection of TLS that ends", secure: true, lie: func(w http.ResponseWriter, r *http.Request) {
		half(w, r)
		w.Header().Set("Connection", "close") // GOAWAY, in the middle of the answer
		panic(http.ErrAbortHandler)
	}, error: "stream error|EOF|GOAWAY"},
	{name: "fewer bytes than announced", lie: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10000")
		half(w, r)
	}, error: "unexpected EOF"},
	{name: "a redirect to another server", lie: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.test/list", http.StatusFound)
	}, error: "redirects to http://elsewhere.test: not followed"},
	{name: "a redirect in a circle", slow: true, lie: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.String(), http.StatusFound)
	}, error: "10 redirects"},
	{name: "a pause of years", slow: true, lie: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "315360000")
		w.WriteHeader(http.StatusServiceUnavailable)
	}, error: `the server asks for a pause of 315360000 seconds: it is asked again after 5m0s`},
	{name: "an error that never ends", lie: func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		endless("", "x")(w, r)
	}, error: "longer than the client reads"},
	{name: "a gzip bomb", with: []kates.Option{kates.Tuning{CompressedLists: true}}, lie: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed, rest := gzip.NewWriter(w), strings.Repeat("a", smallObjects)
		fmt.Fprint(packed, inForm(r, `{"kind":"$LIST","apiVersion":"$GV","items":[{"metadata":{"name":"`))
		for range 100 {
			if _, err := fmt.Fprint(packed, rest); err != nil {
				return
			}
		}
		_ = packed.Flush()
	}, error: "larger than the client reads"},
	{name: "gzip that is none", with: []kates.Option{kates.Tuning{CompressedLists: true}}, lie: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		says(listOf())(w, r)
	}, error: "gzip: invalid header"},
}

// endless answers with a text, and then with another for ever: so long that nobody should read it
// to its end, and who does sees one.
func endless(first, then string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, inForm(r, first))
		more := strings.Repeat(then, 8<<10)
		for range 4 << 10 {
			if _, err := fmt.Fprint(w, more); err != nil {
				return
			}
		}
	}
}

// page is a page with a token for the next one.
func page(next, items string) string {
	return `{"kind":"$LIST","apiVersion":"$GV","metadata":{"resourceVersion":"900","continue":"` + next + `"},` + items + `}`
}

// half writes the half of a list.
func half(w http.ResponseWriter, r *http.Request) {
	text := inForm(r, listOf(itemOf("a"), itemOf("b")))
	fmt.Fprint(w, text[:len(text)/2])
	_ = http.NewResponseController(w).Flush()
}

func cutOff(w http.ResponseWriter, r *http.Request) {
	half(w, r)
	panic(http.ErrAbortHandler)
}

// probed reports whether a request asks for the server's newest version.
func probed(r *http.Request) bool { return r.URL.Query().Get("limit") == "1" }

// notWhenProbed tells a lie, but not about the newest version.
func notWhenProbed(lie http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if probed(r) {
			says(listOf())(w, r)
			return
		}
		lie(w, r)
	}
}
