package recording

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/wire/frames"
)

// played is the body of a watch.
type played struct {
	player    *Player
	ctx       context.Context // the request's, which ends the watch too
	h         *history
	segment   *segment
	number    int // of the segment
	encoding  frames.Encoding
	bookmarks bool
	until     time.Time // when the server ends the watch; zero: never

	// Guarded by player.mu:
	next    int    // the first entry that was not sent
	buffer  []byte // to be read
	waiting bool   // somebody waits in Read
	ended   bool
	closed  bool
}

// full is how much is put into the buffer at once.
const full = 32 << 10

// watch answers a watch, or a streamed list.
func (p *Player) watch(r *http.Request, h *history, e frames.Encoding) (*http.Response, error) {
	query := r.URL.Query()
	at := p.At()
	s, number := h.in(at)
	b := &played{
		player: p, ctx: r.Context(), h: h, segment: s, number: number, encoding: e,
		bookmarks: isTrue(query, "allowWatchBookmarks"),
	}
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		b.until = time.Now().Add(time.Duration(seconds) * time.Second)
	}
	if status, err := b.begin(r, at); status != nil || err != nil {
		if err != nil {
			status = failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, "%s: %v", h.key, err)
		}
		return send(r, status)
	}
	p.mu.Lock()
	p.open[b] = struct{}{}
	p.wake()
	p.mu.Unlock()
	return respond(r, http.StatusOK, media(e, true), b, -1), nil
}

// begin finds the entry that the watch begins with, or the state that comes before it.
func (b *played) begin(r *http.Request, at time.Duration) (*metav1.Status, error) {
	from := r.URL.Query().Get("resourceVersion")
	streamed := isTrue(r.URL.Query(), "sendInitialEvents")
	if streamed || from == "" || from == "0" {
		n, version, status := b.player.start(r, b.h, b.segment, at)
		if status != nil {
			return status, nil
		}
		b.next = n
		return nil, b.initial(n, version, streamed)
	}
	newest := b.player.tape.newest(resourceOf(b.h.key.path), at, true)
	switch {
	case !isVersion(from):
		return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, "%q is no version", from), nil
	case compareVersions(from, b.segment.version) < 0:
		return expired("what happened to %s between %s and %s is not in the recording", b.h.key, from, b.segment.version), nil
	case compareVersions(from, newest) > 0:
		return expired("the recording ends at version %s, before %s", newest, from), nil
	}
	b.next = b.segment.after(from)
	return nil, nil
}

// initial puts the state into the buffer: each object is added, and a streamed list ends with a
// bookmark that says so.
func (b *played) initial(n int, version string, streamed bool) error {
	for _, i := range b.segment.stateAt(n).sorted() {
		if err := b.put(&event{watch.Added, i}); err != nil {
			return err
		}
	}
	if !streamed {
		return nil
	}
	mark, err := b.mark(version)
	if err != nil {
		return err
	}
	return b.put(&event{watch.Bookmark, mark})
}

// mark is the object of the bookmark that ends a streamed list.
func (b *played) mark(version string) (item, error) {
	i := item{encoding: b.encoding, apiVersion: b.h.apiVersion, kind: b.h.kind}
	// In protobuf the metadata is field 1 of every object.
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	return i.filled(&o)
}

// filled is the item with the content of an object.
func (i item) filled(o message) (item, error) {
	var err error
	if i.encoding == frames.JSON {
		o.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(i.apiVersion, i.kind))
		i.raw, err = json.Marshal(o)
	} else {
		i.raw, err = o.Marshal()
	}
	return i, err
}

// put puts an event into the buffer. Called with mu held, or before anybody else knows the body.
func (b *played) put(e *event) error {
	i, err := e.in(b.encoding)
	if err != nil {
		return err
	}
	frame, err := (&event{e.kind, i}).encode()
	b.buffer = append(b.buffer, frame...)
	return err
}

// ready reports whether there is something to read at a position. Called with mu held.
func (b *played) ready(at time.Duration) bool {
	if len(b.buffer) > 0 || b.ended || b.closed {
		return true
	}
	due, ever := b.due()
	return ever && due <= at
}

// due is when the next event comes, or the end. Called with mu held.
func (b *played) due() (at time.Duration, ever bool) {
	for n := b.next; n < len(b.segment.entries); n++ {
		if e := b.segment.entries[n]; e.isEvent(b.bookmarks) {
			at, ever = e.at, true
			break
		}
	}
	if b.number+1 < len(b.h.segments) {
		if over := b.h.segments[b.number+1].at; !ever || over < at {
			return over, true
		}
	}
	return at, ever
}

// fill puts into the buffer what has happened. Called with mu held.
func (b *played) fill(at time.Duration) {
	for b.next < len(b.segment.entries) && len(b.buffer) < full {
		e := b.segment.entries[b.next]
		if e.at > at {
			break
		}
		b.next++
		if !e.isEvent(b.bookmarks) {
			continue
		}
		if err := b.put(e.event); err != nil {
			b.fail(failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, "%s: %v", b.h.key, err))
			return
		}
	}
	if len(b.buffer) == 0 && b.number+1 < len(b.h.segments) && b.h.segments[b.number+1].at <= at {
		b.fail(expired("the recording has missed something of %s after version %s", b.h.key, b.segment.versionAt(b.next)))
	}
}

// fail ends the watch with an error event. Called with mu held.
func (b *played) fail(s *metav1.Status) {
	b.ended = true
	i, err := item{encoding: b.encoding, apiVersion: "v1", kind: statusKind}.filled(s)
	if err == nil {
		_ = b.put(&event{watch.Error, i}) // what follows is the end, in any case
	}
}

func (b *played) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		until, n, err := b.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		if err := until.wait(b.ctx); err != nil {
			return 0, err
		}
	}
}

// take reads what there is, or says what to wait for.
func (b *played) take(p []byte) (until pause, n int, err error) {
	b.player.mu.Lock()
	defer b.player.mu.Unlock()
	b.waiting = false
	if len(b.buffer) == 0 && !b.ended && !b.closed {
		b.fill(b.player.position())
	}
	switch {
	case b.closed:
		return until, 0, http.ErrBodyReadAfterClose
	case len(b.buffer) > 0:
		n = copy(p, b.buffer)
		b.buffer = b.buffer[n:]
		return until, n, nil
	case b.ended, !b.until.IsZero() && !time.Now().Before(b.until):
		b.leave()
		return until, 0, io.EOF
	}
	b.waiting = true
	until = b.pause() // before the position moves: then its channel is closed
	b.player.rest()
	return until, 0, nil
}

// pause is how long it takes until something happens by itself. Called with mu held.
func (b *played) pause() pause {
	until := pause{changed: b.player.changed}
	if at, ever := b.due(); ever {
		until.left, until.timed = b.player.due(at)
	}
	if left := time.Until(b.until); !b.until.IsZero() && (!until.timed || left < until.left) {
		until.left, until.timed = left, true
	}
	return until
}

// leave takes the body out of those that are open. Called with mu held.
func (b *played) leave() {
	b.ended = true
	if _, open := b.player.open[b]; open {
		delete(b.player.open, b)
		b.player.wake()
		b.player.rest()
	}
}

// Close ends the watch.
func (b *played) Close() error {
	b.player.mu.Lock()
	defer b.player.mu.Unlock()
	b.closed = true
	b.leave()
	return nil
}
