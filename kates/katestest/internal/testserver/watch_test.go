package testserver

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// piped is an answer that is read while it is written.
type piped struct {
	*httptest.ResponseRecorder
	out io.Writer
}

func (p piped) Write(b []byte) (int, error) { return p.out.Write(b) }

// events are those of a watch until its end, and how long that took.
func (s tested) events(query string) (all []*unstructured.Unstructured, took time.Duration) {
	s.Helper()
	in, out := io.Pipe()
	began := time.Now()
	go func() {
		defer func() { _ = out.Close() }()
		s.ServeHTTP(piped{httptest.NewRecorder(), out}, httptest.NewRequest(http.MethodGet, configMaps+"?watch=1&"+query, nil))
	}()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var e struct {
			Type   string
			Object map[string]any
		}
		require.NoError(s, json.Unmarshal(lines.Bytes(), &e))
		e.Object["event"] = e.Type
		all = append(all, &unstructured.Unstructured{Object: e.Object})
	}
	return all, time.Since(began)
}

func kindsOfEvents(all []*unstructured.Unstructured) (kinds []any) {
	for _, e := range all {
		kinds = append(kinds, e.Object["event"])
	}
	return kinds
}

func TestABookmarkComesEachMinuteAndTwoSecondsBeforeTheEnd(t *testing.T) {
	inBubble(t, func(s tested) {
		s.made(configMaps, "a", "")
		all, took := s.events("allowWatchBookmarks=true&timeoutSeconds=150")
		assert.Equal(t, []any{"ADDED", "BOOKMARK", "BOOKMARK", "BOOKMARK"}, kindsOfEvents(all))
		assert.Equal(t, 150*time.Second, took)
		assert.Equal(t, "true", all[1].GetAnnotations()["k8s.io/initial-events-end"], "the first one ends the first events")
		assert.Empty(t, all[2].GetAnnotations())
	})
}

func TestAShortWatchHasNoBookmark(t *testing.T) {
	inBubble(t, func(s tested) {
		all, took := s.events("allowWatchBookmarks=true&timeoutSeconds=2")
		assert.Empty(t, all)
		assert.Equal(t, 2*time.Second, took)
	})
}

func TestAStreamedListOfAVersionInTheFutureFailsByAnEvent(t *testing.T) {
	inBubble(t, func(s tested) {
		all, took := s.events("allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1000")
		require.Equal(t, []any{"ERROR"}, kindsOfEvents(all))
		assert.EqualValues(t, http.StatusGatewayTimeout, all[0].Object["code"])
		assert.Equal(t, patience, took)
	})
}

func TestAListOfAVersionThatComesSoonIsAnsweredThen(t *testing.T) {
	inBubble(t, func(s tested) {
		rv, began := s.store.RV()+2, time.Now()
		var answered time.Duration
		go func() {
			code, _ := s.ask(http.MethodGet, configMaps+"?resourceVersion="+strconv.FormatInt(rv, 10), "")
			assert.Equal(t, http.StatusOK, code)
			answered = time.Since(began)
		}()
		s.settle()
		time.Sleep(time.Second)
		s.made(configMaps, "a", "")
		s.made(configMaps, "b", "")
		s.settle()
		assert.Equal(t, time.Second, answered)
	})
}

func TestAWatchThatWaitsForAVersionEndsWithItsClient(t *testing.T) {
	inBubble(t, func(s tested) {
		ctx, end := context.WithCancel(s.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet,
				configMaps+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1000", nil).WithContext(ctx))
		}()
		s.settle()
		require.False(t, closed(over))
		end()
		s.settle()
		assert.True(t, closed(over))
	})
}
