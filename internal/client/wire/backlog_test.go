package wire

import (
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/ordered"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// hostEvent is an event of a host, of which some fill a batch.
func hostEvent(verb, name, more string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Host","apiVersion":"example.com/v1","metadata":{"name":%q},"pad":%q%s}}`+"\n",
		verb, name, strings.Repeat("x", eventBatchBytes/3), more)
}

// watching reads an answer to a watch with the help of a pool.
func watching(p *ordered.Pool, body io.Reader) watch.Interface {
	s := &restSource{resource: hosts, lists: newLists(hosts.Kind), helpers: p}
	return s.read(io.NopCloser(body), s.event)
}

// cameIn says what a watch brings, up to its end.
func cameIn(w watch.Interface) (all []string) {
	for e := range w.ResultChan() {
		switch o := e.Object.(type) {
		case *source.Unreadable:
			all = append(all, fmt.Sprint(e.Type, " ", o.Err))
		case metav1.Object:
			all = append(all, fmt.Sprint(e.Type, " ", o.GetName(), " ", o.GetResourceVersion()))
		}
	}
	return all
}

// pieces is a reader that returns an answer in pieces, as a connection does.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(into []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(into, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

// TestG5EventsComeAsTheServerSentThemWhoeverDecodesThem reads watches of good and bad events and
// bookmarks, some of them cut, in pieces of any size, with and without helpers: what comes, and
// what ends the watch, are the same.
func TestG5EventsComeAsTheServerSentThemWhoeverDecodesThem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		for n := range rapid.IntRange(0, 60).Draw(rt, "events") {
			name := fmt.Sprint("host-", n%7)
			switch rapid.IntRange(0, 80).Draw(rt, "event") {
			case 0:
				text.WriteString(hostEvent("MODIFIED", name, `,"a":1,"a":2`))
			case 1:
				text.WriteString(hostEvent("STRANGE", name, ""))
			case 2:
				text.WriteString(hostEvent("ERROR", name, ""))
			case 3, 4, 5, 6, 7, 8:
				fmt.Fprintf(&text, `{"type":"BOOKMARK","object":{"kind":"Host","apiVersion":"example.com/v1","metadata":{"resourceVersion":"%d"}}}`, n)
			case 9, 10, 11, 12, 13, 14:
				text.WriteString(hostEvent("DELETED", name, ""))
			default:
				text.WriteString(hostEvent("MODIFIED", name, fmt.Sprintf(`,"n":%d`, n)))
			}
		}
		sent := text.String()
		if rapid.IntRange(0, 2).Draw(rt, "cut") == 0 {
			sent = sent[:rapid.IntRange(0, len(sent)).Draw(rt, "at")]
		}
		size := rapid.IntRange(1, 100_000).Draw(rt, "piece")
		want := cameIn(watching(nil, &pieces{sent, 100}))
		pool := &ordered.Pool{Helpers: rapid.IntRange(1, 3).Draw(rt, "helpers"), Bytes: rapid.Int64Range(1, 1<<20).Draw(rt, "bytes")}
		got := cameIn(watching(pool, &pieces{sent, size}))
		if !assert.ObjectsAreEqual(want, got) {
			rt.Fatalf("came: %v, and without helpers %v", got, want)
		}
	})
}

// TestNoEventWaitsForTheNextOne sends events, alone and together, over a connection that then is
// silent: each comes, whether or not it fills a batch.
func TestNoEventWaitsForTheNextOne(t *testing.T) {
	for _, together := range []int{1, 2, 3, 4, 7} {
		synctest.Test(t, func(t *testing.T) {
			body, server := io.Pipe()
			w := watching(&ordered.Pool{Helpers: 2}, body)
			go func() {
				for round := range 3 {
					text := ""
					for n := range together {
						text += hostEvent("MODIFIED", fmt.Sprint(round, "-", n), "")
					}
					_, _ = server.Write([]byte(text))
					time.Sleep(time.Hour)
				}
				_ = server.Close()
			}()
			begun := time.Now()
			for round := range 3 {
				for n := range together {
					e := <-w.ResultChan()
					assert.Equal(t, fmt.Sprint(round, "-", n), e.Object.(objects.Object).GetName())
				}
				assert.Equal(t, time.Duration(round)*time.Hour, time.Since(begun))
			}
			assert.Empty(t, cameIn(w))
		})
	}
}

// TestEventsThatComeTogetherAreDecodedSideBySide sends events that take a second each to decode.
// One that comes alone, and all of them where there is one core, are decoded where they are read.
func TestEventsThatComeTogetherAreDecodedSideBySide(t *testing.T) {
	for _, c := range []struct {
		helpers, events int
		takes           time.Duration
	}{{3, 1, 1}, {3, 4, 1}, {1, 4, 2}, {-1, 4, 4}} {
		synctest.Test(t, func(t *testing.T) {
			many := strings.Repeat("x", eventBatchBytes)
			var running, most atomic.Int64
			b := newBacklog(&ordered.Pool{Helpers: c.helpers}, func(e frames.Event) (watch.Event, error) {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second)
				running.Add(-1)
				return watch.Event{}, nil
			}, func(watch.Event, error) error { return nil })
			begun := time.Now()
			for n := range c.events {
				require.NoError(t, b.add(frames.Event{Object: []byte(many)}, n+1 < c.events))
			}
			require.NoError(t, b.flush())
			assert.Equal(t, c.takes*time.Second, time.Since(begun))
			assert.LessOrEqual(t, most.Load(), int64(max(c.helpers, 0)+1))
			b.close()
		})
	}
}

// TestG3NoMoreOfAWatchIsReadThanABufferWhileNobodyTakesEvents counts what is read of an answer
// without an end.
func TestG3NoMoreOfAWatchIsReadThanABufferWhileNobodyTakesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		more := &again{event: hostEvent("MODIFIED", "a", "")}
		w := watching(&ordered.Pool{Helpers: 2}, more)
		synctest.Wait()
		before := more.read.Load()
		assert.LessOrEqual(t, before, int64(64<<10))
		for range 5 {
			<-w.ResultChan()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.LessOrEqual(t, more.read.Load(), before+64<<10)
		w.Stop()
		synctest.Wait() // G11: nothing of it is left, or this test does not end
		_, open := <-w.ResultChan()
		assert.False(t, open)
	})
}

// again has one event, over and over.
type again struct {
	event string
	read  atomic.Int64
}

func (e *again) Read(into []byte) (int, error) {
	n := 0
	for n < len(into) {
		n += copy(into[n:], e.event[(int(e.read.Load())+n)%len(e.event):])
	}
	e.read.Add(int64(n))
	return n, nil
}

// TestG11AWatchThatIsStoppedDecodesNoMore stops a watch while helpers decode for it.
func TestG11AWatchThatIsStoppedDecodesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var decoded atomic.Int64
		s := &restSource{resource: hosts, helpers: &ordered.Pool{Helpers: 2}}
		w := s.read(io.NopCloser(&again{event: hostEvent("MODIFIED", "a", "")}), func(frames.Event) (apiruntime.Object, error) {
			time.Sleep(time.Second)
			decoded.Add(1)
			return &metav1.PartialObjectMetadata{}, nil
		})
		<-w.ResultChan()
		w.Stop()
		w.Stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		n := decoded.Load()
		time.Sleep(time.Hour)
		assert.Equal(t, n, decoded.Load())
		_, open := <-w.ResultChan()
		assert.False(t, open)
	})
}

// TestWithOneCoreAnEventIsHandedOutBeforeTheNextIsRead shows that nothing is copied there.
func TestWithOneCoreAnEventIsHandedOutBeforeTheNextIsRead(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	raw := []byte("an object")
	handed := 0
	b := newBacklog(&ordered.Pool{}, func(e frames.Event) (watch.Event, error) {
		require.Equal(t, reflect.ValueOf(raw).Pointer(), reflect.ValueOf(e.Object).Pointer())
		return watch.Event{}, nil
	}, func(watch.Event, error) error {
		handed++
		return nil
	})
	for n := range 3 {
		require.NoError(t, b.add(frames.Event{Object: raw}, true))
		assert.Equal(t, n+1, handed)
	}
	b.close()
}

// TestG8AnEventThatPanicsInAHelperIsAnObjectThatDoesNotDecode lets a type's own decoder panic.
func TestG8AnEventThatPanicsInAHelperIsAnObjectThatDoesNotDecode(t *testing.T) {
	d := newDecoder(hosts, reflect.TypeFor[panics](), false)
	s := &restSource{resource: hosts, helpers: &ordered.Pool{Helpers: 2}}
	text := ""
	for n := range 12 {
		text += hostEvent("MODIFIED", fmt.Sprint(n), "")
	}
	w := s.read(io.NopCloser(strings.NewReader(text)), func(e frames.Event) (apiruntime.Object, error) {
		return d.decode(e.Object, e.Encoding)
	})
	n := 0
	for e := range w.ResultChan() {
		require.Equal(t, fmt.Sprint(n), e.Object.(objects.Object).GetName())
		require.ErrorContains(t, objects.Fault(e.Object.(objects.Object)), "the user's mistake")
		n++
	}
	assert.Equal(t, 12, n)
}
