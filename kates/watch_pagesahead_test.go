package kates_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

// library is a server of config maps in pages. It sends the items of a page only when it has been
// asked for the next one, except for the first page.
type library struct {
	pages int
	asked []chan struct{} // closed when a page has been asked for
	once  []sync.Once
	late  chan int // pages whose next one was not asked for
}

func newLibrary(pages int) *library {
	l := &library{pages: pages, asked: make([]chan struct{}, pages), once: make([]sync.Once, pages), late: make(chan int, 99)}
	for i := range l.asked {
		l.asked[i] = make(chan struct{})
	}
	return l
}

func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case "/api/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[`+
			`{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","list","watch"]}]}`)
	case "/api/v1/configmaps":
		switch q := r.URL.Query(); {
		case q.Get("watch") == "":
			l.page(w, r)
			return
		case q.Get("sendInitialEvents") != "": // it does not stream lists
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// page answers a request for a page.
func (l *library) page(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	l.once[n].Do(func() { close(l.asked[n]) })
	list, item := `"kind":"ConfigMapList","apiVersion":"v1"`, `"kind":"ConfigMap","apiVersion":"v1"`
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		list = `"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`
		item = `"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"`
	}
	next := ""
	if n+1 < l.pages {
		next = strconv.Itoa(n + 1)
	}
	meta, _ := json.Marshal(map[string]string{"resourceVersion": "9", "continue": next})
	fmt.Fprintf(w, `{%s,"metadata":%s,"items":[`, list, meta)
	_ = http.NewResponseController(w).Flush()
	if n > 0 && next != "" {
		select {
		case <-l.asked[n+1]:
		case <-r.Context().Done():
		case <-time.After(time.Minute): // nobody asks: the test fails
			l.late <- n
			for i := range l.asked {
				l.once[i].Do(func() { close(l.asked[i]) })
			}
		}
	}
	fmt.Fprintf(w, `{%s,"metadata":{"namespace":"ns","name":"map-%d","resourceVersion":"%d"}}]}`, item, n, n+1)
}

// TestG1ThePageAheadIsAskedForWhileOneIsRead has a server whose pages come to their end only when
// the next one has been asked for.
func TestG1ThePageAheadIsAskedForWhileOneIsRead(t *testing.T) {
	type typed struct{ Maps []*kates.ConfigMap }
	type untyped struct {
		Maps []*kates.Unstructured `kates:"configmaps"`
	}
	type short struct {
		Maps []*kates.PartialObjectMetadata `kates:"configmaps"`
	}
	inBubble(t, "typed", func(t *testing.T) { readsLibrary(t, func(s *typed) int { return len(s.Maps) }) })
	inBubble(t, "untyped", func(t *testing.T) { readsLibrary(t, func(s *untyped) int { return len(s.Maps) }) })
	inBubble(t, "metadata", func(t *testing.T) { readsLibrary(t, func(s *short) int { return len(s.Maps) }) })
}

func readsLibrary[S any](t *testing.T, count func(*S) int) {
	l := newLibrary(5)
	config := served(t, l)
	client, err := kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	snapshots, err := kates.Watch[S](t.Context(), client)
	require.NoError(t, err)
	for s, err := range snapshots.All(t.Context()) {
		require.NoError(t, err)
		assert.Equal(t, 5, count(s))
		break
	}
	assert.Empty(t, l.late)
}
