package hostile

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/kates"
)

// TestG1G5EventsOfAStreamThatIsCompressedInPiecesComeAtOnce: Kubernetes 1.37 compresses a streamed
// list and the events after it. Whatever it flushes is a member of gzip of its own. No event may
// wait for the next one, which may be hours away.
func TestG1G5EventsOfAStreamThatIsCompressedInPiecesComeAtOnce(t *testing.T) {
	for _, form := range all {
		for name, secure := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			t.Run(form+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { comeAtOnce(t, form, secure) })
			})
		}
	}
}

func comeAtOnce(t *testing.T, form string, secure bool) {
	s := newServer(t, secure)
	s.streams, s.zips = true, true
	s.put("x0")
	s.put("x1")
	r := newReader(t, s, form, kates.Tuning{Lists: kates.StreamedLists, CompressedLists: true})
	want := []string{"x0@101", "x1@102"}
	time.Sleep(time.Second)
	r.expect(want...)
	for i := range 3 {
		name := fmt.Sprint("y", i)
		s.put(name)
		want = append(want, fmt.Sprint(name, "@", 103+i))
		time.Sleep(time.Second)
		r.expect(want...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The two objects, the bookmark and three changes.
	if s.lists > 0 || s.watches != 1 || s.members != 6 {
		t.Errorf("%d lists, %d watches, %d members of gzip", s.lists, s.watches, s.members)
	}
}
