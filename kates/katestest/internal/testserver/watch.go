package testserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// watches reports whether the request is a watch.
func (q *request) watches() bool {
	w := q.query.Get("watch")
	return w == "true" || w == "1"
}

const (
	// bookmarkEvery is how often a watch that asks for bookmarks gets one.
	bookmarkEvery = time.Minute
	// lastBookmark is how long before its end a watch gets one, too.
	lastBookmark = 2 * time.Second
	// watchMost is how long a watch lasts that does not say so itself.
	watchMost = 45 * time.Minute
)

// watching is an open watch.
type watching struct {
	*request
	listing
	s         *Server
	out       io.Writer
	flush     func()
	at        int64 // everything up to this version is sent
	bookmarks bool
	initial   bool // no bookmark has said yet that the first objects are all sent
}

// watch sends what changes. An error that the parameters show is the answer; all later ones are
// events.
func (s *Server) watch(w http.ResponseWriter, q *request) error {
	l, err := s.listing(q)
	if err != nil {
		return err
	}
	asked := metav1.ListOptions{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&q.query, &asked, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	o := &watching{request: q, listing: l, s: s, out: w, flush: func() {}, at: l.rv, bookmarks: asked.AllowWatchBookmarks}
	if f, ok := w.(http.Flusher); ok {
		o.flush = f.Flush
	}
	return o.begin(w, func() error {
		if err := o.start(asked.SendInitialEvents); err != nil {
			return o.failure(err)
		}
		return o.follow(asked.TimeoutSeconds)
	})
}

// start sends the objects that there are, if the watch begins with them. If the client says so
// (initial), a bookmark comes behind them; if it says nothing, they come without a version.
func (o *watching) start(initial *bool) error {
	switch {
	case initial != nil && *initial:
		if err := o.s.await(o.Context(), o.rv); err != nil {
			return err
		}
		return o.present(o.bookmarks)
	case initial == nil && o.rv == 0:
		o.initial = true // the next bookmark says it, which may come late
		return o.present(false)
	case o.rv == 0:
		o.at = o.s.store.RV()
	}
	return nil
}

func gone(rv, oldest int64) error {
	return apierrors.NewResourceExpired("too old resource version: " + strconv.FormatInt(rv, 10) + " (" + strconv.FormatInt(oldest, 10) + ")")
}

// begin answers the request, and sends events until the watch ends.
func (o *watching) begin(w http.ResponseWriter, send func() error) error {
	media := o.form.contentType()
	if o.form.protobuf {
		media += ";stream=watch"
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(http.StatusOK)
	o.flush()
	_ = send() // an error is that of the connection: nobody is there to hear it
	return nil
}

// present sends the objects that there are, and perhaps the bookmark behind them.
func (o *watching) present(bookmark bool) error {
	all, rv, err := o.s.store.List(o.kind.Storage, o.namespace, 0)
	if err != nil {
		return err
	}
	for _, c := range all {
		if o.selects(o.kind, c.New.Content) {
			if err := o.event(watch.Added, shown(o.kind, c.New.Content, c.New.RV)); err != nil {
				return err
			}
		}
	}
	o.at = rv
	if !bookmark {
		return nil
	}
	o.initial = true
	return o.bookmark()
}

// follow sends what happens, until the watch's time is over.
func (o *watching) follow(seconds *int64) error {
	most := watchMost
	if seconds != nil && *seconds > 0 {
		most = time.Duration(*seconds) * time.Second
	}
	end := time.NewTimer(most)
	defer end.Stop()
	var last <-chan time.Time
	if most > lastBookmark {
		timer := time.NewTimer(most - lastBookmark)
		defer timer.Stop()
		last = timer.C
	}
	tick := time.NewTicker(bookmarkEvery)
	defer tick.Stop()
	for {
		serving := o.s.serving.Load()
		changes, until, more, err := o.s.store.Since(o.kind.Storage, o.namespace, o.at)
		if errors.Is(err, store.ErrCompacted) {
			return o.failure(gone(o.at, o.s.store.Compacted()))
		}
		for _, c := range changes {
			if err := o.change(c); err != nil {
				return err
			}
		}
		o.at = until
		if serving.set.Find(o.kind.GVR()) != o.kind {
			return nil // it is no longer served, or served otherwise
		}
		select {
		case <-more:
		case <-serving.over:
		case <-tick.C:
			err = o.progress()
		case <-last:
			err = o.progress()
		case <-end.C:
			return nil
		case <-o.Context().Done():
			return nil
		case <-o.s.ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// progress sends a bookmark to a client that wants it, unless it is ahead of the server.
func (o *watching) progress() error {
	if !o.bookmarks || o.at > o.s.store.RV() {
		return nil
	}
	return o.bookmark()
}

// change sends what a change is to the selection: an object that leaves it is deleted from it, one
// that comes into it is added.
func (o *watching) change(c store.Change) error {
	was, is := o.selects(o.kind, c.Old.Content), o.selects(o.kind, c.New.Content)
	switch {
	case was && is:
		return o.event(watch.Modified, shown(o.kind, c.New.Content, c.RV))
	case is:
		return o.event(watch.Added, shown(o.kind, c.New.Content, c.RV))
	case was:
		return o.event(watch.Deleted, shown(o.kind, c.Old.Content, c.RV))
	}
	return nil
}

func (o *watching) bookmark() error {
	meta := map[string]any{"resourceVersion": strconv.FormatInt(o.at, 10)}
	if o.initial {
		meta["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	o.initial = false
	return o.event(watch.Bookmark, map[string]any{"apiVersion": o.kind.GroupVersion().String(), "kind": o.kind.Kind, "metadata": meta})
}

// failure sends an error, after which the watch is over.
func (o *watching) failure(err error) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(statusOf(err))
	if err != nil {
		return err
	}
	form := o.form
	o.form.as = ""
	defer func() { o.form = form }()
	return o.event(watch.Error, content)
}

func (o *watching) event(what watch.EventType, content map[string]any) error {
	if o.form.as == "Table" && what == watch.Bookmark {
		content = map[string]any{"apiVersion": content["apiVersion"], "kind": content["kind"], "metadata": content["metadata"]}
	}
	raw, err := o.s.encode(o.kind, o.form, content)
	if err != nil {
		return err
	}
	if o.form.protobuf {
		err = o.frame(what, raw)
	} else {
		err = json.NewEncoder(o.out).Encode(map[string]any{"type": what, "object": json.RawMessage(bytes.TrimSpace(raw))})
	}
	o.flush()
	return err
}

// frame writes an event in protobuf, with its length before it.
func (o *watching) frame(what watch.EventType, raw []byte) error {
	var event bytes.Buffer
	e := &metav1.WatchEvent{Type: string(what), Object: runtime.RawExtension{Raw: raw}}
	if err := protobuf.NewRawSerializer(o.s.scheme, o.s.scheme).Encode(e, &event); err != nil {
		return err
	}
	_, err := protobuf.LengthDelimitedFramer.NewFrameWriter(o.out).Write(event.Bytes())
	return err
}
