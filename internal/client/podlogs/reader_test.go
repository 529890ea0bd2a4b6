package podlogs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kates-go/kates/internal/loops/attempts"
)

// log is what a reader has given.
type log struct {
	text   strings.Builder
	events []Event
	given  func() // after each event
}

// mostGiven is more than any of these tests writes. A reader that repeats itself ends there.
const mostGiven = 2000

func (l *log) give(ctx context.Context, e Event) error {
	if len(l.events) == mostGiven {
		return errors.New("lines come again and again")
	}
	l.text.WriteString(e.Output)
	l.events = append(l.events, e)
	if l.given != nil {
		l.given()
	}
	return ctx.Err()
}

// reader returns a reader of the cluster's pod, and what it will give.
func (c *cluster) reader(o corev1.PodLogOptions) (*Reader, *log) {
	l := &log{}
	o.Container = "app"
	return &Reader{
		Config: Config{
			Source: c, Clock: clock.RealClock{}, Logger: logr.Discard(), Idle: 5 * time.Second,
			Backoff: attempts.Backoff{First: 100 * time.Millisecond, Most: 10 * time.Second},
		},
		Pod: types.NamespacedName{Namespace: "prod", Name: "web"}, UID: "uid-1",
		Options: o, Give: l.give,
	}, l
}

// follow is a reader that follows the log.
func (c *cluster) follow() (*Reader, *log) {
	return c.reader(corev1.PodLogOptions{Follow: true})
}

// TestEveryLineComesOnceWhateverHappensToConnections cuts connections in the middle of lines, ends
// them in good order, makes them silent, refuses requests, and starts the container again.
func TestEveryLineComesOnceWhateverHappensToConnections(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(seed)
			c.faults = true
			go c.live()
			r, got := c.follow()
			r.Run(t.Context())
			require.Equal(t, c.text(), got.text.String(), "seed %d: %+v",
				seed, got.events[len(got.events)-1])
			last := got.events[len(got.events)-1]
			require.Equal(t, Event{Closed: true}, last, "seed %d: %+v",
				seed, got.events[len(got.events)-1])
		})
		if t.Failed() {
			return // each of the others would take as long
		}
	}
}

func TestALogThatIsNotFollowedIsReadOnAfterACut(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(seed)
			c.live()
			c.faults = true
			r, got := c.reader(corev1.PodLogOptions{})
			r.Run(t.Context())
			all := c.text()
			all = all[strings.Index(all, "end of life 1")+len("end of life 1"):]
			if last := got.events[len(got.events)-1]; last.Err == nil {
				// An end in good order looks like the end of the log.
				require.True(t, strings.HasPrefix(all, got.text.String()), "seed %d: %+v",
					seed, got.events[len(got.events)-1])
			}
		})
	}
}

func TestAReaderThatNobodyReadsHoldsOneLineAndGoesOnLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0)
		c.start()
		r, got := c.follow()
		read := make(chan struct{})
		got.given = func() { <-read }
		done := make(chan struct{})
		go func() { defer close(done); r.Run(t.Context()) }()
		for range 1000 {
			c.write("line\n")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		assert.Len(t, got.events, 1)
		assert.Equal(t, 1, c.requests, "the time in which nobody reads is no silence")
		c.exit(0)
		close(read)
		<-done
		assert.Equal(t, c.text(), got.text.String())
	})
}

func TestASilentConnectionIsOpenedAgainWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0)
		c.start()
		c.write("a\n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second)
		defer cancel()
		r, got := c.follow()
		r.Run(ctx)
		assert.Equal(t, "a\n", got.text.String())
		assert.Len(t, got.events, 1, "nothing is given after the end of the context")
		assert.Equal(t, 13, c.requests, "each after 5 s")
	})
}

func TestPausesGrowWhileNothingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0) // the container waits
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		r, _ := c.follow()
		r.Run(ctx)
		assert.Less(t, c.requests, 70)
		assert.Greater(t, c.requests, 40)
	})
}

func TestOfAContainerThatRestartsWhatItWroteLastIsReadFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0)
		c.start()
		c.write("a\n")
		r, got := c.follow()
		got.given = func() {
			if got.given = nil; len(got.events) == 1 { // before the reader reads on
				c.change(func() { // at once: write makes some lines a bit late
					first := c.instances[0]
					first.entries = append(first.entries, entry{time.Now(), "last words"})
				})
				c.exit(exitedWith)
				c.start()
				c.write("b\n")
				c.exit(0)
			}
		}
		r.Run(t.Context())
		assert.Equal(t, "a\nlast wordsb\n", got.text.String())
	})
}

func TestTheLogOfAPodThatIsGoneHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0)
		c.start()
		c.write("a\n")
		r, got := c.follow()
		time.AfterFunc(time.Minute, func() {
			c.exit(0)
			c.change(func() { c.pod = nil })
		})
		r.Run(t.Context())
		assert.Equal(t, []Event{{Closed: true}}, got.events[1:])
	})
}

func TestAnotherPodOfTheNameIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0)
		c.start()
		c.write("another's\n")
		r, got := c.follow()
		r.UID = "uid-0"
		time.AfterFunc(time.Minute, func() { c.exit(0) })
		r.Run(t.Context())
		require.Len(t, got.events, 1)
		assert.True(t, apierrors.IsNotFound(got.events[0].Err), "%v", got.events[0].Err)
	})
}

func TestAnAnswerThatAnotherTryDoesNotChangeEndsTheLog(t *testing.T) {
	for name, change := range map[string]func(*cluster){
		"no such pod":       func(c *cluster) { c.pod = nil },
		"no such container": func(c *cluster) { c.pod.Spec.Containers[0].Name = "other" },
	} {
		for _, follow := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(0)
				change(c)
				r, got := c.reader(corev1.PodLogOptions{Follow: follow})
				r.Run(t.Context())
				require.Len(t, got.events, 1, name)
				assert.True(t, got.events[0].Closed)
				assert.Error(t, got.events[0].Err)
			})
		}
	}
}

// TestLongLinesComeInPieces cuts the connection in the middle of a line of three pieces.
func TestLongLinesComeInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0)
		long := strings.Repeat("x", 2*mostOutput+100) + "\n"
		c.start()
		c.write("a\n", long, "b\n")
		r, got := c.follow()
		got.given = func() {
			if len(got.events) == 2 { // one piece of it
				c.change(func() { c.instances[0].entries[1].text = long })
				got.given = nil
			}
		}
		time.AfterFunc(time.Second, func() { c.exit(0) })
		r.Source = &cutter{cluster: c, after: mostOutput * 3 / 2}
		r.Run(t.Context())
		assert.Equal(t, c.text(), got.text.String())
		assert.Len(t, got.events, 6)
		assert.Equal(t, got.events[1].Timestamp, got.events[3].Timestamp)
		assert.NotEmpty(t, got.events[1].Timestamp)
	})
}

func TestTheLimitCountsAcrossConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0)
		c.start()
		c.write("first\n", "second\n")
		stamp := c.instances[0].entries[0].at.Format(time.RFC3339Nano)
		limit := int64(len(stamp + " first\n"))
		r, got := c.reader(corev1.PodLogOptions{Follow: true, LimitBytes: &limit})
		r.Run(t.Context())
		assert.Equal(t, "first\n", got.text.String())
		assert.Equal(t, Event{Closed: true}, got.events[len(got.events)-1])
	})
}

// TestALogThatAnswersNowAndThenIsReadToItsEnd refuses many requests, but never too many in a row.
func TestALogThatAnswersNowAndThenIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(0)
		c.start()
		c.write("no end of line")
		c.exit(0)
		r, got := c.follow()
		r.Source = &refuser{cluster: c, inARow: mostFailures - 1}
		r.Run(t.Context())
		assert.Equal(t, c.text(), got.text.String())
		assert.Equal(t, Event{Closed: true}, got.events[len(got.events)-1])
	})
}
