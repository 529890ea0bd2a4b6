package kates_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// called notes what a function was called with, and when.
type called struct {
	since time.Time
	all   []string
}

func (c *called) note(text string) {
	c.all = append(c.all, fmt.Sprint(time.Since(c.since).Round(time.Millisecond), " ", text))
}

func (c *called) taken() []string {
	synctest.Wait()
	all := c.all
	c.all = nil
	return all
}

// TestAgainCallsAgainAfterATimeUnlessACallComesEarlier has a function that looks at something
// outside of the cluster every ten seconds.
func TestAgainCallsAgainAfterATimeUnlessACallComesEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
		c := &called{since: time.Now()}
		r := run(t, fake.Client, func(_ context.Context, m *maps) error {
			c.note(m.text())
			if len(m.ConfigMaps) == 2 {
				return nil
			}
			return fmt.Errorf("in other words: %w", kates.Again(10*time.Second))
		})
		<-time.After(25 * time.Second)
		assert.Equal(t, []string{"0s ", "10s ", "20s "}, c.taken())
		put(t, fake, "m", "1")
		<-time.After(14 * time.Second)
		assert.Equal(t, []string{"25s m1 ", "35s m1 "}, c.taken(), "a change takes its place")
		put(t, fake, "n", "1")
		<-time.After(time.Hour)
		assert.Equal(t, []string{"39s m1 n1 "}, c.taken())
		r.stop()
	})
}

// TestAgainIsForItsKeyAlone also asks for a call of a key that is gone.
func TestAgainIsForItsKeyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
		put(t, fake, "a", "1")
		put(t, fake, "b", "1")
		c := &called{since: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		done, left := make(chan error), 2
		go func() {
			done <- kates.RunEach(ctx, fake.Client, func(_ context.Context, key string, m *maps) error {
				c.note(key + ": " + m.text())
				switch {
				case key == "b":
					return nil
				case len(m.ConfigMaps) == 0:
					if left--; left < 0 {
						return nil
					}
				}
				return kates.Again(10 * time.Second)
			}, kates.Query{Name: "ConfigMaps", Key: kates.ByName})
		}()
		<-time.After(15 * time.Second)
		assert.Equal(t, []string{"0s a: a1 ", "0s b: b1 ", "10s a: a1 "}, c.taken())
		put(t, fake, "a", "2")
		<-time.After(13 * time.Second)
		assert.Equal(t, []string{"15s a: a2 ", "25s a: a2 "}, c.taken())
		assert.NoError(t, fake.Client.Delete(t.Context(), configMap("a"), nil))
		<-time.After(time.Hour)
		assert.Equal(t, []string{"28s a: ", "38s a: ", "48s a: "}, c.taken(), "until its end is done")
		put(t, fake, "a", "3")
		synctest.Wait()
		cancel()
		assert.NoError(t, <-done)
		<-time.After(time.Minute)
		assert.Equal(t, []string{"1h0m28s a: a3 "}, c.taken(), "nothing is called after the end")
	})
}

// TestAnErrorBesideAgainIsAnError: what is joined to it is neither lost nor forgiven.
func TestAnErrorBesideAgainIsAnError(t *testing.T) {
	for _, asked := range []error{kates.Again(time.Minute), kates.AgainWithBackoff()} {
		synctest.Test(t, func(t *testing.T) {
			fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
			told := 0
			r := run(t, fake.Client, func(context.Context, *maps) error {
				if told > 0 {
					return nil
				}
				return errors.Join(errOops, asked)
			}, kates.WithOnError(func(err error, _ int) { told++; assert.ErrorIs(t, err, errOops) }))
			<-time.After(time.Second)
			assert.Equal(t, 1, told)
			r.stop()
		})
	}
}

// TestBackoffIsATryThatIsNoError: it waits for something that is not there yet.
func TestBackoffIsATryThatIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		fake := katestest.New(t, katestest.WithClientOptions(kates.WithInterval(0), kates.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
		put(t, fake, "m", "1")
		c := &called{since: time.Now()}
		type deltas struct {
			maps
			Deltas []*kates.Delta
		}
		r := run(t, fake.Client, func(_ context.Context, m *deltas) error {
			c.note(fmt.Sprint(m.text(), len(m.Deltas)))
			if time.Since(c.since) < time.Second {
				return kates.AgainWithBackoff()
			}
			return nil
		}, kates.WithOnError(func(err error, _ int) { t.Error("told of", err) }))
		<-time.After(time.Hour)
		assert.Equal(t, []string{"0s m1 1", "100ms m1 1", "300ms m1 1", "700ms m1 1", "1.5s m1 1"}, c.taken(), "with the deltas of the try before")
		r.stop()
		assert.NotContains(t, log.String(), "function")
	})
}
