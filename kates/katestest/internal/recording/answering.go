package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/client/wire/frames"
)

// respond makes an answer. A watch has no length.
func respond(r *http.Request, code int, media string, body io.ReadCloser, length int) *http.Response {
	header := http.Header{"Content-Type": {media}}
	if length >= 0 {
		header.Set("Content-Length", strconv.Itoa(length))
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(length), Body: body, Request: r,
	}
}

func whole(r *http.Request, code int, media string, body []byte) *http.Response {
	return respond(r, code, media, io.NopCloser(bytes.NewReader(body)), len(body))
}

func failure(code int, reason metav1.StatusReason, format string, args ...any) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: statusKind}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: "replay: " + fmt.Sprintf(format, args...),
	}
}

// refuse answers with a Status.
func refuse(r *http.Request, code int, reason metav1.StatusReason, format string, args ...any) (*http.Response, error) {
	return send(r, failure(code, reason, format, args...))
}

func send(r *http.Request, s *metav1.Status) (*http.Response, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a Status: %w", err)
	}
	return whole(r, int(s.Code), mediaJSON, body), nil
}

// expired is the answer for a version that cannot be gone on from: clients list again.
func expired(format string, args ...any) *metav1.Status {
	return failure(http.StatusGone, metav1.StatusReasonExpired, format, args...)
}

// tooLarge is the server's own answer for a version that it has not reached.
func tooLarge(version, newest string) *metav1.Status {
	s := failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
		"Too large resource version: %s, current: %s", version, newest)
	s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}}
	return s
}

// single answers a get.
func (p *Player) single(r *http.Request) (*http.Response, error) {
	accept := r.Header.Get("Accept")
	e, there := p.tape.answer(r.URL.Path, r.URL.Query(), accept, p.At())
	switch {
	case !there:
		return refuse(r, http.StatusNotFound, metav1.StatusReasonNotFound,
			"the recording has no answer to a GET of %s (Accept: %s)", r.URL.RequestURI(), accept)
	case e.Withheld != "" || len(e.Parts) == 0:
		return refuse(r, http.StatusNotFound, metav1.StatusReasonNotFound,
			"the answer to %s is not in the recording: %s", r.URL.RequestURI(), e.Withheld)
	}
	return whole(r, e.Status, e.ContentType, e.Parts[0].Data), nil
}

// find returns the history that a client asks for, and the encoding for it. If there is none, it
// returns the answer that says so.
func (p *Player) find(r *http.Request) (*history, frames.Encoding, *metav1.Status) {
	var of key
	var found *history
	for _, c := range clausesOf(r.Header.Get("Accept")) {
		of = keyOf(r.URL.Path, r.URL.Query(), c.form)
		h := p.tape.histories[of]
		if h == nil {
			continue
		}
		found = h
		if len(h.segments) == 0 {
			return h, frames.JSON, h.plays()
		}
		if e, ok := h.encodings(c.media); ok {
			return h, e, h.plays()
		}
	}
	if found == nil {
		return nil, "", failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			"the recording has no list or watch of %s%s", of, p.alike(of))
	}
	if s := found.plays(); s != nil {
		return found, "", s
	}
	return nil, "", failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"the recording has %s in protobuf: %t, and cannot make of it: %s", of, found.protobuf, r.Header.Get("Accept"))
}

// plays is nil if there is something to play, or the answer that says what is there instead.
func (h *history) plays() *metav1.Status {
	if h.refused != "" {
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound, "%s is not played: %s", h.key, h.refused)
	}
	return nil
}

// alike names what the recording has of the same resource.
func (p *Player) alike(of key) string {
	var has []string
	for k := range p.tape.histories {
		if path.Base(k.path) == path.Base(of.path) {
			has = append(has, k.String())
		}
	}
	if len(has) == 0 {
		return ""
	}
	slices.Sort(has)
	return "; it has " + strings.Join(has[:min(len(has), 5)], ", ")
}

// objects answers a list or a watch.
func (p *Player) objects(r *http.Request, watch bool) (*http.Response, error) {
	h, e, s := p.find(r)
	switch {
	case s != nil:
		return send(r, s)
	case len(h.segments) == 0:
		var body []byte
		for _, p := range h.failure.Parts {
			body = append(body, p.Data...)
		}
		return whole(r, h.failure.Status, h.failure.ContentType, body), nil
	case watch:
		return p.watch(r, h, e)
	}
	at := p.At()
	seg, _ := h.in(at)
	n, version, s := p.start(r, h, seg, at)
	if s != nil {
		return send(r, s)
	}
	body, err := h.list(seg, n, version, e)
	if err != nil {
		return refuse(r, http.StatusInternalServerError, metav1.StatusReasonInternalError, "%s: %v", h.key, err)
	}
	return whole(r, http.StatusOK, media(e, false), body), nil
}

func media(e frames.Encoding, watch bool) string {
	switch {
	case e == frames.JSON:
		return mediaJSON
	case watch:
		return mediaProtobuf + ";stream=watch"
	}
	return mediaProtobuf
}

// start says which state a list shows: the number of entries, and the version. A list that is to
// be not older than what another watch of the resource has shown sees what it needs of the next
// entries.
func (p *Player) start(r *http.Request, h *history, s *segment, at time.Duration) (int, string, *metav1.Status) {
	query := r.URL.Query()
	n, now := s.reached(at)
	want := query.Get("resourceVersion")
	switch {
	case !s.listed:
		return 0, "", failure(http.StatusNotFound, metav1.StatusReasonNotFound, "the recording has watches of %s, and no list", h.key)
	case query.Get("continue") != "":
		return 0, "", expired("lists have no pages here, so this token is none of this replay")
	case want == "" || want == "0":
		return n, now, nil
	case !isVersion(want):
		return 0, "", failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, "%q is no version", want)
	case query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact):
		if compareVersions(want, s.version) < 0 || compareVersions(want, now) > 0 {
			return 0, "", expired("of %s there are the versions from %s to %s, and not %s", h.key, s.version, now, want)
		}
		return s.after(want), want, nil
	case compareVersions(want, now) <= 0:
		return n, now, nil
	}
	if newest := p.tape.newest(resourceOf(h.key.path), at, false); compareVersions(want, newest) > 0 {
		return 0, "", tooLarge(want, newest)
	}
	return s.after(want), want, nil
}
