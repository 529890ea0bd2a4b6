package katestest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest"
)

type server func(*http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

const text = "0123456789abcdef"

// texts is a server that answers every request with text, and counts them.
func texts(asked *int) http.RoundTripper {
	return server(func(r *http.Request) (*http.Response, error) {
		*asked++
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	})
}

// piped is a server that answers every request with what is written to w.
func piped() (w *io.PipeWriter, _ http.RoundTripper) {
	r, w := io.Pipe()
	return w, server(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: r, Request: req}, nil
	})
}

const configMaps = "/api/v1/configmaps"

func ask(ctx context.Context, rt http.RoundTripper, method, target string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://api.test"+target, nil)
	if err != nil {
		return nil, err
	}
	return rt.RoundTrip(r)
}

// get reads a whole answer.
func get(t *testing.T, rt http.RoundTripper, target string) (string, error) {
	t.Helper()
	resp, err := ask(t.Context(), rt, "GET", target)
	if err != nil {
		return "", err
	}
	defer func() { assert.NoError(t, resp.Body.Close()) }()
	got, err := io.ReadAll(resp.Body)
	return string(got), err
}

func TestWithoutRulesEverythingPassesAndIsRecorded(t *testing.T) {
	var asked int
	f := katestest.NewFaults(t, 1)
	rt := f.Wrap(texts(&asked))
	got, err := get(t, rt, configMaps+"?limit=1")
	require.NoError(t, err)
	assert.Equal(t, text, got)
	requests := f.Requests(katestest.Match{Verb: "list", Resource: "configmaps"})
	require.Len(t, requests, 1)
	assert.Equal(t, "1", requests[0].Query.Get("limit"))
	assert.Equal(t, http.StatusOK, requests[0].Status)
	assert.Empty(t, f.Open(katestest.Match{}))
	assert.Empty(t, f.Requests(katestest.Match{Verb: "watch"}))
}

func TestARuleHitsByCountAndUntilItIsStopped(t *testing.T) {
	var asked int
	f := katestest.NewFaults(t, 1)
	rt := f.Wrap(texts(&asked))
	rule := f.On(katestest.Match{Resource: "configmaps"}).After(1).Times(2).Fail(nil)
	other := f.On(katestest.Match{Resource: "secrets"}).Fail(errors.New("gone"))
	var failed []int
	for i := range 5 {
		if _, err := get(t, rt, configMaps); err != nil {
			assert.ErrorIs(t, err, syscall.ECONNREFUSED)
			failed = append(failed, i)
		}
	}
	assert.Equal(t, []int{1, 2}, failed)
	assert.Equal(t, 2, rule.Hits())
	assert.Equal(t, 3, asked, "what fails is not sent")
	_, err := get(t, rt, "/api/v1/secrets")
	assert.EqualError(t, err, "gone")
	assert.EqualError(t, f.Requests(katestest.Match{Resource: "secrets"})[0].Err, "gone")
	other.Stop()
	_, err = get(t, rt, "/api/v1/secrets")
	assert.NoError(t, err)
}

func TestTheSameSeedFailsTheSameRequests(t *testing.T) {
	run := func(seed uint64, others int) (failed string) {
		var asked int
		f := katestest.NewFaults(t, seed)
		rt := f.Wrap(texts(&asked))
		f.On(katestest.Match{Resource: "configmaps"}).Probability(0.3).Fail(nil)
		f.On(katestest.Match{Resource: "secrets"}).Probability(0.3).Fail(nil)
		for range 200 {
			_, err := get(t, rt, configMaps)
			failed += fmt.Sprint(err != nil)[:1]
			for range others {
				_, _ = get(t, rt, "/api/v1/secrets")
			}
		}
		return failed
	}
	assert.Equal(t, run(7, 0), run(7, 3), "requests that a rule does not match do not change what it does")
	assert.NotEqual(t, run(7, 0), run(8, 0))
	assert.InDelta(t, 60, strings.Count(run(7, 0), "t"), 25)
	t.Setenv("KATESTEST_SEED", "12345")
	assert.Equal(t, uint64(12345), katestest.NewFaults(nil, 0).Seed())
}

// failing is a test that fails; it records the log.
type failing struct {
	recorder
	logs []string
}

func (f *failing) Failed() bool { return true }
func (f *failing) Logf(format string, args ...any) {
	f.logs = append(f.logs, fmt.Sprintf(format, args...))
}

func TestATestThatFailsPrintsTheSeed(t *testing.T) {
	inner := &failing{recorder: recorder{TB: t}}
	katestest.NewFaults(inner, 99)
	for _, cleanup := range inner.cleanups {
		cleanup()
	}
	assert.Equal(t, []string{"the faults were drawn with seed 99: KATESTEST_SEED=99 draws them again"}, inner.logs)
}

func TestAStatusIsWhatAnAPIServerWouldAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked int
		f := katestest.NewFaults(t, 1)
		client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://api.test"}, &http.Client{Transport: f.Wrap(texts(&asked))})
		require.NoError(t, err)
		list := func() error {
			_, err := client.Resource(metav1.SchemeGroupVersion.WithResource("configmaps")).List(t.Context(), metav1.ListOptions{})
			return err
		}
		rule := f.On(katestest.Match{}).Times(1).Status(403, "", 0)
		assert.True(t, apierrors.IsForbidden(list()))
		rule.Stop()
		rule = f.On(katestest.Match{}).Times(1).Status(410, metav1.StatusReasonExpired, 0)
		assert.True(t, apierrors.IsResourceExpired(list()))
		rule.Stop()
		started := time.Now()
		rule = f.On(katestest.Match{}).Status(429, "", 1500*time.Millisecond)
		err = list()
		assert.True(t, apierrors.IsTooManyRequests(err))
		seconds, ok := apierrors.SuggestsClientDelay(err)
		assert.True(t, ok)
		assert.Equal(t, 2, seconds)
		assert.Equal(t, 11, rule.Hits(), "client-go repeats what it was told to repeat")
		assert.Equal(t, 20*time.Second, time.Since(started))
		assert.Zero(t, asked)
	})
}

func TestALostAnswerIsOneThatTheServerHasGiven(t *testing.T) {
	var asked int
	f := katestest.NewFaults(t, 1)
	rt := f.Wrap(texts(&asked))
	f.On(katestest.Match{Verb: "create"}).Lose()
	_, err := ask(t.Context(), rt, "POST", "/api/v1/namespaces/a/configmaps")
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, 1, asked)
}

func TestAHeldRequestIsSentAndAHeldAnswerGivenWhenTheRuleStops(t *testing.T) {
	for name, c := range map[string]struct {
		hold func(*katestest.Trigger) *katestest.Rule
		sent int
	}{
		"request": {(*katestest.Trigger).Hold, 0},
		"answer":  {(*katestest.Trigger).HoldAnswer, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked int
				f := katestest.NewFaults(t, 1)
				rt := f.Wrap(texts(&asked))
				rule := c.hold(f.On(katestest.Match{}))
				got := make(chan string)
				go func() {
					s, err := get(t, rt, configMaps)
					assert.NoError(t, err)
					got <- s
				}()
				require.NoError(t, f.Wait(t.Context(), func() bool { return rule.Hits() == 1 }))
				synctest.Wait()
				assert.Equal(t, c.sent, asked)
				rule.Stop()
				assert.Equal(t, text, <-got)
				assert.Equal(t, 1, asked)

				c.hold(f.On(katestest.Match{}))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := ask(ctx, rt, "GET", configMaps)
				assert.ErrorIs(t, err, context.DeadlineExceeded, "who asked may give up")
			})
		})
	}
}

func TestATransportCanBeUnwrapped(t *testing.T) {
	next := http.DefaultTransport
	wrapped := katestest.NewFaults(t, 1).Wrap(next)
	assert.Equal(t, next, wrapped.(interface{ WrappedRoundTripper() http.RoundTripper }).WrappedRoundTripper())
}

func TestMistakesInATriggerPanic(t *testing.T) {
	on := func() *katestest.Trigger { return katestest.NewFaults(t, 1).On(katestest.Match{}) }
	for name, mistake := range map[string]func(){
		"After(-1)":        func() { on().After(-1) },
		"Times(0)":         func() { on().Times(0) },
		"Probability(1.5)": func() { on().Probability(1.5) },
		"Status(200)":      func() { on().Status(200, "", 0) },
		"Cut(-1)":          func() { on().Cut(-1) },
		"Delay(-1ns)":      func() { on().Delay(-1) },
	} {
		func() {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), name) }()
			mistake()
		}()
	}
}
