package katestest_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates/katestest"
)

func TestAnAnswerIsCutTruncatedOrCorruptedAtAByte(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*katestest.Trigger)
		want  string // the expected text, without garbage
		err   error
	}{
		"cut":                   {func(t *katestest.Trigger) { t.Cut(5) }, text[:5], io.ErrUnexpectedEOF},
		"cut before anything":   {func(t *katestest.Trigger) { t.Cut(0) }, "", io.ErrUnexpectedEOF},
		"cut behind the end":    {func(t *katestest.Trigger) { t.Cut(100) }, text, nil},
		"truncated":             {func(t *katestest.Trigger) { t.Truncate(5) }, text[:5], nil},
		"corrupted":             {func(t *katestest.Trigger) { t.Corrupt(5) }, text[:5], nil},
		"corrupted from byte 0": {func(t *katestest.Trigger) { t.Corrupt(0) }, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var asked int
			f := katestest.NewFaults(t, 1)
			c.fault(f.On(katestest.Match{}))
			got, err := get(t, f.Wrap(texts(&asked)), configMaps)
			assert.Equal(t, c.err, err)
			if strings.HasPrefix(name, "corrupted") {
				assert.Len(t, got, len(text))
				again, _ := get(t, f.Wrap(texts(&asked)), configMaps)
				assert.Equal(t, got, again, "the same seed, the same garbage")
				got = strings.TrimRightFunc(got, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' })
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// watching opens a watch and reads it line by line.
func watching(t *testing.T, f *katestest.Faults) (server *io.PipeWriter, lines *bufio.Reader, body io.ReadCloser) {
	t.Helper()
	server, rt := piped()
	resp, err := ask(t.Context(), f.Wrap(rt), "GET", configMaps+"?watch=true")
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return server, bufio.NewReaderSize(resp.Body, 16), resp.Body
}

var watches = katestest.Match{Verb: "watch", Resource: "configmaps"}

func TestADelayKeepsTheOrderAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := katestest.NewFaults(t, 1)
		server, lines, _ := watching(t, f)
		rule := f.Now(watches).Delay(time.Minute)
		started := time.Now()
		line := func(want string, after time.Duration) {
			t.Helper()
			got, err := lines.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, want+"\n", got)
			assert.Equal(t, after, time.Since(started))
		}
		go func() {
			_, _ = io.WriteString(server, "one\n")
			time.Sleep(30 * time.Second)
			_, _ = io.WriteString(server, "two\n")
			time.Sleep(time.Hour)
			_, _ = io.WriteString(server, "three\n")
			_ = server.Close()
		}()
		line("one", time.Minute)
		line("two", 90*time.Second)
		time.AfterFunc(time.Hour, rule.Stop)
		line("three", time.Hour+90*time.Second)
		_, err := lines.ReadString('\n')
		assert.Equal(t, io.EOF, err)
	})
}

func TestTheHeadOfAnAnswerIsDelayedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked int
		f := katestest.NewFaults(t, 1)
		f.On(katestest.Match{}).Delay(time.Minute)
		started := time.Now()
		resp, err := ask(t.Context(), f.Wrap(texts(&asked)), "GET", configMaps)
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(started))
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, text, string(got))
		assert.Equal(t, time.Minute, time.Since(started), "the body came at the same time")
		require.NoError(t, resp.Body.Close())
	})
}

func TestAnOpenWatchStallsAndGoesOnWhenTheRuleStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := katestest.NewFaults(t, 1)
		server, lines, _ := watching(t, f)
		go func() {
			_, _ = io.WriteString(server, "one\n")
			_, _ = io.WriteString(server, "two\n")
		}()
		got, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "one\n", got)
		synctest.Wait()
		rule := f.Now(watches).Stall(2)
		assert.Equal(t, 1, rule.Hits())
		came := make(chan string)
		go func() {
			s, _ := lines.ReadString('\n')
			came <- s
		}()
		select {
		case s := <-came:
			assert.Fail(t, "it is stalled", s)
		case <-time.After(time.Hour):
		}
		f.Heal()
		assert.Equal(t, "two\n", <-came)
	})
}

func TestOpenWatchesAreCutNowAndOnlyThoseThatMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := katestest.NewFaults(t, 1)
		_, lines, body := watching(t, f)
		assert.Zero(t, f.Now(katestest.Match{Resource: "secrets"}).Cut(0).Hits())
		assert.Len(t, f.Open(watches), 1)
		failed := make(chan error)
		go func() {
			_, err := lines.ReadByte()
			failed <- err
		}()
		synctest.Wait()
		rule := f.Now(watches).Cut(0)
		assert.Equal(t, io.ErrUnexpectedEOF, <-failed)
		rule.Stop()
		_, err := body.Read(make([]byte, 1))
		assert.Equal(t, io.ErrUnexpectedEOF, err, "what is broken stays so")
		require.NoError(t, body.Close())
		assert.Empty(t, f.Open(watches))
	})
}

func TestBytesOfAnOpenWatchAreCountedFromWhereItIs(t *testing.T) {
	f := katestest.NewFaults(t, 1)
	server, _, body := watching(t, f)
	go func() { _, _ = io.WriteString(server, text) }()
	_, err := io.ReadFull(body, make([]byte, 4))
	require.NoError(t, err)
	f.Now(watches).Cut(6)
	got, err := io.ReadAll(body)
	assert.Equal(t, io.ErrUnexpectedEOF, err)
	assert.Equal(t, text[4:10], string(got))
}

func TestAStalledReadEndsWithTheRequestsContextByCloseAndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := katestest.NewFaults(t, 1)
		f.On(watches).Stall(0)
		_, rt := piped()
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := ask(ctx, f.Wrap(rt), "GET", configMaps+"?watch=true")
		require.NoError(t, err)
		time.AfterFunc(time.Minute, cancel)
		_, err = resp.Body.Read(make([]byte, 1))
		assert.Equal(t, context.Canceled, err)
		require.NoError(t, resp.Body.Close())

		_, _, body := watching(t, f)
		time.AfterFunc(time.Minute, func() { assert.NoError(t, body.Close()) })
		_, err = body.Read(make([]byte, 1))
		assert.Error(t, err)

		server, _, body := watching(t, f)
		go func() {
			_, _ = io.WriteString(server, "one")
			_ = server.CloseWithError(syscall.ECONNRESET)
		}()
		_, err = body.Read(make([]byte, 1))
		assert.Equal(t, syscall.ECONNRESET, err, "the connection is broken")
	})
}

func TestAServerFeelsASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := katestest.NewFaults(t, 1)
		server, _, body := watching(t, f)
		sent := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				n, err := server.Write(make([]byte, 1<<10))
				if sent += n; err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		assert.Less(t, sent, 200<<10)
		read, err := io.CopyN(io.Discard, body, 300<<10)
		require.NoError(t, err)
		synctest.Wait()
		assert.Greater(t, int64(sent), read-1)
		require.NoError(t, body.Close())
		<-done
	})
}
