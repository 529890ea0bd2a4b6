package hostile

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates"
)

// streamed returns a lie told by watches that stream a list; what comes after the items is the
// test's.
func streamed(after func(*answer)) func(*answer) {
	return func(a *answer) {
		if a.r.URL.Query().Get("sendInitialEvents") != "true" {
			a.watch()
			return
		}
		a.start()
		a.items()
		after(a)
	}
}

// item returns a streamed list with one more item, and all that a list needs after it.
func item(change func(*corev1.ConfigMap)) func(*answer) {
	return streamed(func(a *answer) {
		o := configMap("lie", "90")
		change(o)
		a.event("ADDED", o)
		a.bookmark("101", true)
		a.hold()
	})
}

// initials are streamed lists that are broken or hostile. Nothing of such a list is shown.
var initials = []lie{
	{name: "no bookmark, and an end", says: "ended in the middle of the initial list", tell: streamed(func(*answer) {})},
	{name: "half an item", says: "in the middle of an event", tell: streamed(halfAnEvent)},
	{name: "a bookmark without a version", says: `a bookmark at version "", which is no version`, tell: streamed(func(a *answer) { a.bookmark("", true); a.hold() })},
	{name: "a bookmark at 0", says: `a bookmark at version "0", which is no version`, tell: streamed(func(a *answer) { a.bookmark("0", true); a.hold() })},
	{name: "a bookmark that does not end the list, and an end", says: "ended in the middle of the initial list", tell: streamed(func(a *answer) { a.bookmark("101", false) })},
	{name: "an item of another kind", says: "kind Secret (v1) in place of a ConfigMap (v1)", tell: streamed(func(a *answer) { a.event("ADDED", secret()); a.hold() })},
	{name: "an item of another namespace", says: `in the namespace "other"`, tell: item(func(o *corev1.ConfigMap) { o.Namespace = "other" })},
	{name: "an item without a name", says: "without a name", tell: item(func(o *corev1.ConfigMap) { o.Name = "" })},
	{name: "an item with a name that cannot be", says: `the name "..", which cannot be`, tell: item(func(o *corev1.ConfigMap) { o.Name = ".." })},
	{name: "a deletion without a name", says: "without a name", tell: streamed(func(a *answer) {
		a.event("DELETED", configMap("", "90"))
		a.hold()
	})},
	{name: "an unknown type", says: `unknown type "ITEM"`, tell: streamed(func(a *answer) { a.event("ITEM", configMap("lie", "90")); a.hold() })},
	{name: "an error without a Status", says: "is a ConfigMap, and no Status", tell: streamed(func(a *answer) {
		a.raw("ERROR", encode(configMap("x", "90"), a.protobuf))
		a.hold()
	})},
	{name: "an error 500", says: "says InternalError", tell: streamed(func(a *answer) { a.event("ERROR", failure(500, "InternalError")); a.hold() })},
	{name: "an item that never ends", says: "larger than the client reads", forms: inJSON, tell: streamed(func(a *answer) {
		a.text(`{"type":"ADDED","object":{"a":"`)
		a.endless("a")
	})},
	{name: "a page", says: "a page of HTML", tell: refuses(200, "text/html", page)},
	{name: "a Status", says: "a Status in place of an event", forms: inJSON, tell: func(a *answer) { a.say(failure(403, "Forbidden")) }},
}

// TestG1G8AStreamedListThatIsBrokenOrHostileIsNotShownInPart: until the whole list is there, there
// is no snapshot, and Ready says why.
func TestG1G8AStreamedListThatIsBrokenOrHostileIsNotShownInPart(t *testing.T) {
	for _, l := range rounds.Some(initials) {
		forms := l.forms
		if forms == nil {
			forms = all
		}
		for _, form := range forms {
			t.Run(l.name+", "+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { l.isStreamed(t, form) })
			})
		}
	}
}

func (l lie) isStreamed(t *testing.T, form string) {
	s := newServer(t, false)
	s.streams = true
	s.put("x")
	s.tell(l.tell)
	r := newReader(t, s, form, kates.Tuning{Lists: kates.StreamedLists})
	time.Sleep(patience)
	r.expect()
	r.says(l.says)
	if r.ready() == nil {
		t.Error("it is ready")
	}
	if lists, watches := s.asked(); lists > 0 || watches > mostWatches {
		t.Errorf("%d lists, %d watches", lists, watches)
	}
	if s.written > 8*bound {
		t.Errorf("%d bytes were read", s.written)
	}
	s.tell(nil)
	r.heals("x@101")
	if err := r.ready(); err != nil {
		t.Error(err)
	}
	if lists, _ := s.asked(); lists > 0 {
		t.Error("it was not streamed")
	}
}

// TestG1AStreamedListThatDoesNotEndComesInPages: the bookmark that ends it is missing, and the
// connection stays.
func TestG1AStreamedListThatDoesNotEndComesInPages(t *testing.T) {
	for name, after := range map[string]func(*answer){
		"it is silent": func(a *answer) { a.hold() },
		"it has bookmarks that do not end it": func(a *answer) {
			for range 1000 {
				a.bookmark("101", false)
				a.wait()
			}
		},
		"it has the last item again and again": func(a *answer) {
			for range 1000 {
				a.event("MODIFIED", configMap("x", "101"))
				a.wait()
			}
		},
	} {
		for _, form := range all {
			t.Run(name+", "+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t, false)
					s.streams = true
					s.put("x")
					s.tell(streamed(after))
					r := newReader(t, s, form, kates.Tuning{Lists: kates.StreamedLists})
					time.Sleep(25 * time.Second)
					r.expect()
					r.heals("x@101")
					if lists, _ := s.asked(); lists != 1 {
						t.Errorf("%d lists", lists)
					}
				})
			})
		}
	}
}

// TestG5AListThatEndsTwiceIsOneList: what comes after the first end is the watch's.
func TestG5AListThatEndsTwiceIsOneList(t *testing.T) {
	for _, form := range all {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, false)
				s.streams = true
				s.put("x")
				s.tell(streamed(func(a *answer) {
					a.bookmark("101", true)
					a.bookmark("101", true)
					a.event("ADDED", configMap("y", "102"))
					a.bookmark("102", true)
					a.hold()
				}))
				r := newReader(t, s, form, kates.Tuning{Lists: kates.StreamedLists})
				time.Sleep(time.Minute)
				r.expect("x@101", "y@102")
				r.says("")
				if r.query().Restarts != 0 {
					t.Error("there was another list")
				}
			})
		})
	}
}
