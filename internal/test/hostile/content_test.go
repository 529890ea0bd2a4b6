package hostile

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

// TestG8AnObjectThatDoesNotDecodeIsLeftOutAloneAndTheWatchGoesOn: numbers that Go cannot hold, and
// members of the wrong type. The next object of the same watch is shown.
func TestG8AnObjectThatDoesNotDecodeIsLeftOutAloneAndTheWatchGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		member  string
		forms   []string // in which it does not decode
		decodes []string
	}{
		"a number beyond float64": {`"generation":1e999`, inJSON, nil},
		"a number beyond int64":   {`"generation":99999999999999999999999`, []string{typed}, []string{untyped}},
		"labels that are a text":  {`"labels":"none"`, []string{typed}, []string{untyped}},
	} {
		for _, form := range append(append([]string{}, c.forms...), c.decodes...) {
			t.Run(name+", "+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t, false)
					s.put("x")
					r := newReader(t, s, form, kates.Tuning{})
					time.Sleep(time.Second)
					r.expect("x@101")
					s.tell(func(a *answer) {
						a.start()
						a.raw("ADDED", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"default","name":"odd",`+
							`"uid":"u","resourceVersion":"102",`+c.member+`}}`))
						a.event("ADDED", configMap("y", "103"))
						a.hold()
					})
					time.Sleep(time.Minute)
					want := []string{"x@101", "y@103"}
					invalid := "[odd]"
					if len(c.decodes) > 0 && form == untyped {
						want, invalid = []string{"odd@102", "x@101", "y@103"}, "[]"
					}
					if got := r.expect(want...); fmt.Sprint(got.invalid) != invalid {
						t.Errorf("%v are invalid", got.invalid)
					}
					r.says("")
				})
			})
		}
	}
}

// TestG8DataThatIsNoUTF8IsShownAndTheWatchGoesOn: a server stores such data in protobuf as it
// came, and only names have to be UTF-8. In JSON it sends none.
func TestG8DataThatIsNoUTF8IsShownAndTheWatchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, false)
		s.put("x")
		r := newReader(t, s, proto, kates.Tuning{})
		time.Sleep(time.Second)
		r.expect("x@101")
		s.tell(func(a *answer) {
			a.start()
			o := configMap("odd", "102")
			o.Data["a"] = "?"
			a.raw("ADDED", []byte(strings.Replace(string(encode(o, a.protobuf)), "?", "\xff", 1)))
			a.event("ADDED", configMap("y", "103"))
			a.hold()
		})
		time.Sleep(time.Minute)
		r.expect("odd@102", "x@101", "y@103")
		r.says("")
	})
}

// TestG5G6AListShowsWhatAWatchThatCannotBeReadDoesNot: the server's watches are broken for good,
// its lists are not. One in four failures is followed by a list.
func TestG5G6AListShowsWhatAWatchThatCannotBeReadDoesNot(t *testing.T) {
	for _, form := range all {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, false)
				s.put("x")
				r := newReader(t, s, form, kates.Tuning{})
				time.Sleep(time.Second)
				r.expect("x@101")
				s.tell(with(func(o *corev1.ConfigMap) { o.Name = "" }))
				s.put("x")
				s.put("y")
				time.Sleep(5 * time.Minute)
				r.expect("x@102", "y@103")
				r.says("without a name")
			})
		})
	}
}

// TestAnEventThatMakesSenseEndsTheErrorOfABookmarkThatDidNot: the watch has gone on, and the error
// was about the bookmark alone.
func TestAnEventThatMakesSenseEndsTheErrorOfABookmarkThatDidNot(t *testing.T) {
	for name, then := range map[string]func(*answer){
		"an event":   func(a *answer) { a.event("ADDED", configMap("y", "102")) },
		"a bookmark": func(a *answer) { a.bookmark("102", false) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, false)
				s.put("x")
				r := newReader(t, s, untyped, kates.Tuning{})
				time.Sleep(time.Second)
				s.tell(func(a *answer) {
					a.start()
					a.bookmark("50", false)
					a.wait()
					a.wait()
					then(a)
					a.hold()
				})
				time.Sleep(3 * time.Second)
				r.says("a bookmark at version 50, and the watch was at 101 before")
				time.Sleep(3 * time.Second)
				r.says("")
				if got := r.query().State; got != kates.StateSynced {
					t.Errorf("it is %s", got)
				}
			})
		})
	}
}

// TestAWatchThatBringsNothingNewAndEndsSaysNothingOfHowNewTheObjectsAre: QueryStatus.Heard is what
// a fleet knows a stale cluster by.
func TestAWatchThatBringsNothingNewAndEndsSaysNothingOfHowNewTheObjectsAre(t *testing.T) {
	for name, lie := range map[string]func(*answer){
		"nothing": func(a *answer) { a.start() },
		"an old event": func(a *answer) {
			a.start()
			a.event("ADDED", configMap("x", "101"))
		},
	} {
		for _, form := range all {
			t.Run(name+", "+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t, false)
					s.put("x")
					r := newReader(t, s, form, kates.Tuning{})
					time.Sleep(time.Second)
					r.expect("x@101")
					began := time.Now()
					s.tell(lie)
					time.Sleep(patience)
					synctest.Wait()
					if heard := r.query().Heard; heard.After(began) {
						t.Errorf("the server was heard %s after it began to lie", heard.Sub(began))
					}
					s.tell(nil)
					r.heals("x@101")
					if heard := r.query().Heard; !heard.After(began.Add(patience)) {
						t.Error("the server was not heard when it told the truth")
					}
				})
			})
		}
	}
}
