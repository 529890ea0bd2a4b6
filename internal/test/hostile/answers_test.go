package hostile

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/kates"
)

// fails returns a watch that brings an error event.
func fails(change func(*metav1.Status)) func(*answer) {
	return func(a *answer) {
		a.start()
		s := failure(http.StatusInternalServerError, "InternalError")
		change(s)
		a.event("ERROR", s)
	}
}

// code returns a watch that brings the error of a code.
func code(code int, reason metav1.StatusReason) func(*answer) {
	return fails(func(s *metav1.Status) {
		s.Code, s.Reason, s.Message = int32(code), reason, "says "+string(reason)
	})
}

const years = 1 << 30 // seconds: more than thirty of them

// failures are error events.
var failures = []lie{
	{name: "an error without an object", says: "without an object", forms: inJSON, tell: func(a *answer) { a.start(); a.text(`{"type":"ERROR"}`) }},
	{name: "an error with a config map", says: "is a ConfigMap, and no Status", tell: func(a *answer) {
		a.start()
		a.raw("ERROR", encode(configMap("x", "900"), a.protobuf))
	}},
	{name: "an error with an empty object", says: "no Status of a failure", forms: inJSON, tell: brings("ERROR", "{}")},
	{name: "an error with null", says: "no Status of a failure", forms: inJSON, tell: brings("ERROR", "null")},
	{name: "an error with a text", says: "its object is no Status", forms: inJSON, tell: brings("ERROR", `"no"`)},
	{name: "an error with a success", says: "no Status of a failure", tell: fails(func(s *metav1.Status) { s.Status = metav1.StatusSuccess })},
	{name: "an error without a message", says: `an error without a message, of code 500 and reason "InternalError"`, tell: fails(func(s *metav1.Status) { s.Message = "" })},
	{name: "an error with a message that is too long", says: "aaaa…", tell: fails(func(s *metav1.Status) { s.Message = strings.Repeat("a", bound/2) })},
	{name: "an error 500", says: "says InternalError", tell: code(500, metav1.StatusReasonInternalError)},
	{name: "an error 504", says: "says Timeout", tell: code(504, metav1.StatusReasonTimeout)},
	{name: "an error 410", says: "says Expired", tell: code(410, metav1.StatusReasonExpired)},
	{name: "an error 403", says: "says Forbidden", tell: code(403, metav1.StatusReasonForbidden), watches: 400},
	{name: "an error 429", says: "says TooManyRequests", tell: code(429, metav1.StatusReasonTooManyRequests)},
	{name: "an error 500 after a while", flickers: true, tell: func(a *answer) {
		a.start()
		a.wait()
		code(500, metav1.StatusReasonInternalError)(a)
	}},
	{name: "an error that asks for a pause of years", says: "asks for a pause of 1073741824 seconds: it is asked again after 5m0s", watches: 4, tell: fails(func(s *metav1.Status) {
		s.Code, s.Reason, s.Details = 429, metav1.StatusReasonTooManyRequests, &metav1.StatusDetails{RetryAfterSeconds: years}
	})},
	{name: "a refusal that asks for a pause of years", says: "asks for a pause of 1073741824 seconds: it is asked again after 5m0s", watches: 4, tell: func(a *answer) {
		a.w.Header().Set("Retry-After", "1073741824")
		refuses(429, "text/plain", "later")(a)
	}},
	{name: "a pause that no number holds", says: "says TooManyRequests", tell: func(a *answer) {
		a.w.Header().Set("Retry-After", strings.Repeat("9", 30))
		a.status(429, "TooManyRequests")
	}},
	{name: "a pause of ages", says: "too many requests", tell: func(a *answer) {
		a.w.Header().Set("Retry-After", "9223372036854775807")
		refuses(429, "text/plain", "later")(a)
	}},
}

func refuses(status int, as, body string) func(*answer) {
	return func(a *answer) {
		a.w.Header().Set("Content-Type", as)
		a.w.WriteHeader(status)
		a.text(body)
	}
}

const page = "<html><body>Sign in, please</body></html>"

// bodies are answers that are no watches.
var bodies = []lie{
	{name: "a page", says: "a page of HTML", tell: refuses(200, "text/html", page)},
	{name: "a page that says to be JSON", says: "a page of HTML", tell: refuses(200, "application/json", page)},
	{name: "a page after white space", says: "a page of HTML", tell: refuses(200, "text/html", "\n\n  "+page)},
	{name: "a page with 500", says: "watch v1/configmaps", tell: refuses(500, "text/html", page)},
	{name: "a page with 204", says: ended, tell: func(a *answer) { a.w.WriteHeader(http.StatusNoContent) }},
	{name: "a page that never ends, with 500", says: "watch v1/configmaps", tell: func(a *answer) {
		a.w.WriteHeader(http.StatusInternalServerError)
		a.endless("<br>")
	}},
	{name: "a Status that never ends, with 500", says: "watch v1/configmaps", tell: func(a *answer) {
		a.w.Header().Set("Content-Type", "application/json")
		a.w.WriteHeader(http.StatusInternalServerError)
		a.text(`{"kind":"Status","apiVersion":"v1","message":"`)
		a.endless("a")
	}},
	{name: "a Status with 200", says: `a Status in place of an event: "says Forbidden"`, forms: inJSON, tell: func(a *answer) { a.say(failure(403, "Forbidden")) }},
	{name: "a Status with 200 in protobuf", says: "an object in protobuf, and no watch", forms: protobufs, tell: func(a *answer) {
		_, _ = a.w.Write(encode(failure(403, "Forbidden"), true))
	}},
	{name: "a list", says: `a ConfigMapList in place of an event`, forms: inJSON, tell: func(a *answer) { a.list() }},
	{name: "a list in protobuf", says: "an object in protobuf, and no watch", forms: protobufs, tell: func(a *answer) { a.list() }},
	{name: "protobuf, where JSON was asked for", says: "in protobuf: nobody asked for that", forms: []string{untyped}, tell: func(a *answer) {
		a.start()
		a.protobuf = true
		a.event("ADDED", configMap("lie", "900"))
	}},
	{name: "an empty array", says: `an event begins with '['`, forms: inJSON, tell: refuses(200, "application/json", "[]")},
	{name: "a text", says: `an event begins with 'n'`, tell: refuses(200, "text/plain", "not here")},
	{name: "garbage", says: `an event begins with 'ÿ'`, tell: refuses(200, "application/json", "\xff\xff\xff\xff")},
	{name: "an event, and garbage", says: `an event begins with '#'`, forms: inJSON, tell: func(a *answer) {
		a.start()
		a.event("MODIFIED", configMap("x", "101"))
		a.text("#\n")
	}},
	{name: "a redirect to another server", says: "redirects to http://other.test: not followed", tell: func(a *answer) {
		http.Redirect(a.w, a.r, "http://other.test/api/v1/configmaps?watch=true", http.StatusFound)
	}},
	{name: "a redirect to itself", says: "redirects", watches: 500, tell: func(a *answer) {
		http.Redirect(a.w, a.r, a.r.URL.String(), http.StatusTemporaryRedirect)
	}},
	{name: "a redirect to nowhere", says: "watch v1/configmaps", tell: func(a *answer) { a.w.WriteHeader(http.StatusFound) }},
}

// zipped writes what it is given compressed.
func zipped(a *answer, text string) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	a.write(out.Bytes())
}

// sizes are answers that never end. More than the bound is not kept.
var sizes = []lie{
	{name: "an object that never ends", says: "larger than the client reads", forms: inJSON, tell: func(a *answer) {
		a.start()
		a.text(`{"type":"ADDED","object":{"data":{"a":"`)
		a.endless("a")
	}},
	{name: "an event of endless members", says: "larger than the client reads", forms: inJSON, tell: func(a *answer) {
		a.start()
		a.text(`{"type":"ADDED"`)
		a.endless(`,"a":"b"`)
	}},
	{name: "a key that never ends", says: "larger than the client reads", forms: inJSON, tell: func(a *answer) { a.start(); a.text(`{"`); a.endless("a") }},
	{name: "a number that never ends", says: "larger than the client reads", forms: inJSON, tell: func(a *answer) { a.start(); a.text(`{"type":`); a.endless("1") }},
	{name: "brackets that never end", says: "larger than the client reads", forms: inJSON, tell: func(a *answer) { a.start(); a.text(`{"object":`); a.endless("[") }},
	{name: "lines that are empty, for ever", says: "larger than the client reads", forms: inJSON, tell: func(a *answer) { a.start(); a.endless("\n") }},
	{name: "an object that is too large", forms: []string{untyped, typed, proto}, says: "larger than the client reads", tell: with(func(o *corev1.ConfigMap) { o.Data["a"] = strings.Repeat("a", bound) })},
	{name: "a frame that never ends", says: "larger than the client reads", forms: protobufs, tell: func(a *answer) { a.start(); a.frame(1<<27, nil); a.endless("a") }},
	{name: "a gzip bomb", says: "larger than the client reads", forms: inJSON, tuning: kates.Tuning{CompressedLists: true}, tell: func(a *answer) {
		a.w.Header().Set("Content-Encoding", "gzip")
		zipped(a, `{"type":"ADDED","object":{"data":{"a":"`+strings.Repeat("a", 16*bound))
	}},
	{name: "a gzip bomb of lines", says: "larger than the client reads", forms: inJSON, tuning: kates.Tuning{CompressedLists: true}, tell: func(a *answer) {
		a.w.Header().Set("Content-Encoding", "gzip")
		zipped(a, strings.Repeat("\n", 16*bound))
	}},
	{name: "gzip that was not asked for", says: "an event begins with '\\x1f'", tell: func(a *answer) {
		a.w.Header().Set("Content-Encoding", "gzip")
		zipped(a, "a")
	}},
	{name: "gzip that is none", says: "gzip: invalid header", tuning: kates.Tuning{CompressedLists: true}, tell: func(a *answer) {
		a.w.Header().Set("Content-Encoding", "gzip")
		a.text(page)
	}},
}

// frames are watches in protobuf with wrong lengths, and JSON that is cut or nested too deep.
var frames = []lie{
	{name: "a frame that ends early", says: "in the middle of an event", forms: protobufs, tell: func(a *answer) {
		a.start()
		a.frame(1000, []byte("\x0a\x05ADDED"))
	}},
	{name: "half a length", says: "in the middle of an event", forms: protobufs, tell: func(a *answer) { a.start(); a.text("\x00\x00") }},
	{name: "an empty frame", says: "without an object", forms: protobufs, tell: func(a *answer) { a.start(); a.frame(0, nil) }},
	{name: "a frame that is too short for its event", says: "cannot be read", forms: protobufs, tell: func(a *answer) {
		a.start()
		event := eventOf(a)
		a.frame(len(event)/2, event)
	}},
	{name: "a frame that is one byte too long", says: "in the middle of an event", forms: protobufs, tell: func(a *answer) {
		a.start()
		event := eventOf(a)
		a.frame(len(event)+1, event)
	}},
	{name: "a field that is longer than its frame", says: "cannot be read", forms: protobufs, tell: func(a *answer) { a.start(); a.frame(4, []byte("\x0a\x7fab")) }},
	{name: "a frame of another message", says: "cannot be read", forms: protobufs, tell: func(a *answer) { a.start(); a.frame(4, []byte("\xff\xff\xff\xff")) }},
	{name: "an object that is no protobuf", says: "without a name", forms: []string{proto}, tell: func(a *answer) {
		a.start()
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: []byte("{}")}
		raw, _ := unknown.Marshal()
		a.raw("ADDED", append([]byte("k8s\x00"), raw...))
	}},
	{name: "an object that is cut", says: "in the middle of an event", forms: inJSON, tell: func(a *answer) {
		a.start()
		a.text(`{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"x"`)
	}},
	{name: "an object that is no JSON", says: "ADDED event: ", forms: inJSON, tell: brings("ADDED", `{"kind":"ConfigMap" "metadata"}`)},
	{name: "an event without commas", says: "cannot be read", forms: inJSON, tell: func(a *answer) { a.start(); a.text(`{"type":"ADDED" "object":{}}`) }},
	{name: "brackets that are far too deep", says: "ADDED event: ", forms: []string{untyped}, tell: brings("ADDED",
		`{"kind":"ConfigMap","apiVersion":"v1","data":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+"}")},
}

func eventOf(a *answer) []byte {
	e := metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: encode(configMap("x", "900"), a.protobuf)}}
	raw, err := e.Marshal()
	if err != nil {
		panic(err)
	}
	return raw
}

// pages are connections that break in the middle of an event.
var pages = []lie{
	{name: "a reset of the stream, over HTTP/2", secure: true, says: "watch v1/configmaps", tell: halfAnEvent},
	{name: "a connection that breaks", says: "in the middle of an event", tell: halfAnEvent},
	{name: "a connection that breaks between two events", says: ended, tell: func(a *answer) {
		a.start()
		a.event("MODIFIED", configMap("x", "101"))
		panic(http.ErrAbortHandler)
	}},
	{name: "an answer without a header", says: "EOF", watches: 2 * mostWatches, tell: func(*answer) { panic(http.ErrAbortHandler) }},
	{name: "bytes that are no TLS", says: "watch v1/configmaps", secure: true, tell: func(a *answer) {
		a.start()
		a.write([]byte(`{"type":`))
		a.garble()
		a.hold()
	}},
}

// halfAnEvent breaks the connection, or the stream of HTTP/2.
func halfAnEvent(a *answer) {
	a.start()
	if a.protobuf {
		a.frame(1000, []byte("\x0a"))
	} else {
		a.text(`{"type":"ADDED","object":{`)
	}
	panic(http.ErrAbortHandler)
}
