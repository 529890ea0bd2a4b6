package hostile

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates"
)

// lie is what watches are answered with after a good start.
type lie struct {
	name string
	tell func(*answer)
	// says is in the error of the query's status at the end. "": the watch is all right.
	says string
	// forms are those that the lie is for; nil: all.
	forms []string
	// watches is how many watches may be opened. 0: as many as the pauses between failures allow.
	watches int
	// flickers: the watch is all right from time to time.
	flickers bool
	secure   bool // over TLS and HTTP/2
	tuning   kates.Tuning
}

const (
	// patience is how long each lie is told.
	patience = 10 * time.Minute
	// mostWatches is how many watches the pauses allow in that time, which grow to 30 s.
	mostWatches = 36
)

// TestG5G8AWatchThatIsBrokenOrHostileTakesNothingBackAndIsNotOpenedInALoop: nothing that is shown
// goes, or goes back. The status says what is wrong. There are pauses, and few lists. No more is
// read than the bound allows. When the server tells the truth again, its changes are shown.
func TestG5G8AWatchThatIsBrokenOrHostileTakesNothingBackAndIsNotOpenedInALoop(t *testing.T) {
	rows := 0
	for _, table := range [][]lie{endings, objects, failures, positions, bodies, sizes, frames, pages} {
		for _, l := range rounds.Some(table) {
			forms := l.forms
			if forms == nil {
				forms = all
			}
			for _, form := range forms {
				rows++
				t.Run(l.name+", "+form, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { l.isTold(t, form) })
				})
			}
		}
	}
	t.Logf("%d rows", rows)
}

func (l lie) isTold(t *testing.T, form string) {
	s := newServer(t, l.secure)
	s.put("x")
	r := newReader(t, s, form, l.tuning)
	time.Sleep(time.Second)
	r.expect("x@101")
	s.put("x")
	time.Sleep(time.Second)
	r.expect("x@102")
	r.says("")

	s.tell(l.tell)
	for range 10 {
		time.Sleep(patience / 10)
		if got := r.expect("x@102"); len(got.deltas)+len(got.invalid) > 0 {
			t.Errorf("%+v", got)
		}
		if err := r.ready(); err != nil {
			t.Errorf("it is no longer ready: %v", err)
		}
	}
	if !l.flickers {
		r.says(l.says)
	}
	lists, watches := s.asked()
	if watches > cmp.Or(l.watches, mostWatches) {
		t.Errorf("%d watches", watches)
	}
	if lists > mostWatches/unreadable+1 && !strings.Contains(l.name, "410") {
		t.Errorf("%d lists", lists)
	}
	if s.written > 8*bound {
		t.Errorf("%d bytes were read", s.written)
	}

	s.tell(nil)
	s.put("y")
	time.Sleep(5 * time.Minute)
	got := r.expect("x@102", "y@103")
	if fmt.Sprint(got.deltas) != "[add y]" {
		t.Errorf("%v", got.deltas)
	}
	r.says("")
}

// unreadable is how many watches in a row may be unreadable before a list is made.
const unreadable = 4
