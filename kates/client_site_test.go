package kates_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// site is a cluster that has config maps and secrets, with versions, for holders of tokens. It may
// have several servers.
type site struct {
	uid string

	mu      sync.Mutex
	changed *sync.Cond
	rev     int
	now     map[string]*kates.Unstructured // by path
	history []siteEvent
	refuse  func(token string, r *http.Request) int // a status, 0 for none
	hold    func(token string, r *http.Request) <-chan struct{}
	seen    []siteRequest
	watches map[string]int // open ones, by resource
	gaps    int            // how often a resource that was watched had no open watch
	cut     map[string]context.CancelFunc
}

// siteEvent is one change of one object.
type siteEvent struct {
	rev      int
	resource string
	Type     string              `json:"type"`
	Object   *kates.Unstructured `json:"object"`
}

// siteRequest is a request that was let in.
type siteRequest struct{ token, what, server string }

func newSite(uid string) *site {
	s := &site{uid: uid, rev: 100, now: map[string]*kates.Unstructured{}, watches: map[string]int{}, cut: map[string]context.CancelFunc{}}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// serve starts a server of the site, with TLS and HTTP/2 or without both.
func (s *site) serve(t *testing.T, http2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	if server.EnableHTTP2 = http2; http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// with returns a configuration for one of the servers.
func with(server *httptest.Server, token string) *rest.Config {
	config := &rest.Config{Host: server.URL, BearerToken: token}
	if server.TLS != nil {
		config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	return config
}

// rule sets who is refused what.
func (s *site) rule(refuse func(token string, r *http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// revoke refuses a token from now on, and ends what it has open.
func (s *site) revoke(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.refuse
	s.refuse = func(of string, r *http.Request) int {
		switch {
		case of == token:
			return http.StatusUnauthorized
		case before != nil:
			return before(of, r)
		}
		return 0
	}
	for key, cut := range s.cut {
		if strings.HasPrefix(key, token+" ") {
			cut()
		}
	}
}

// count returns how many requests with a token were let in, of all if none is given.
func (s *site) count(token string, what ...string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		for _, w := range what {
			if (token == "" || r.token == token) && r.what == w {
				n++
			}
		}
	}
	return n
}

// put stores an object, or deletes it: nil.
func (s *site) put(resource, name string, u *kates.Unstructured) *kates.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := resource + "/" + name
	old := s.now[path]
	if u == nil && old == nil {
		return nil
	}
	s.rev++
	e := siteEvent{rev: s.rev, resource: resource, Type: "ADDED"}
	switch {
	case u == nil:
		e.Type, e.Object = "DELETED", old.DeepCopy()
		delete(s.now, path)
	default:
		e.Object = u.DeepCopy()
		e.Object.SetUID(types.UID(fmt.Sprintf("%s-%d", name, s.rev)))
		if old != nil {
			e.Type = "MODIFIED"
			e.Object.SetUID(old.GetUID())
		}
		s.now[path] = e.Object
	}
	e.Object.SetResourceVersion(strconv.Itoa(s.rev))
	s.history = append(s.history, e)
	s.changed.Broadcast()
	return e.Object
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	path := r.URL.Path[strings.Index(r.URL.Path, "/api"):] // a server may have a prefix
	s.mu.Lock()
	status, hold := 0, (<-chan struct{})(nil)
	if s.refuse != nil {
		status = s.refuse(token, r)
	}
	if s.hold != nil {
		hold = s.hold(token, r)
	}
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if status != 0 {
		answerStatus(w, status, "the test refuses "+path)
		return
	}
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/api/v1/"), "namespaces/ns/"), "/")
	switch resource := parts[0]; {
	case path == "/api/v1/namespaces/kube-system":
		s.note(token, "cluster", r)
		answerJSON(w, map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kube-system", "uid": s.uid}})
	case resource != "configmaps" && resource != "secrets":
		s.note(token, "discovery", r)
		siteDiscovery(w, path)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, token, resource)
	case r.Method == http.MethodGet && len(parts) == 1:
		s.list(w, r, token, resource)
	default:
		s.one(w, r, token, parts)
	}
}

func (s *site) note(token, what string, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, siteRequest{token, what, r.Host})
}

func siteDiscovery(w http.ResponseWriter, path string) {
	verbs := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	switch path {
	case "/api":
		answerJSON(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case "/apis":
		answerJSON(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
	case "/api/v1":
		answerJSON(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": verbs},
			map[string]any{"name": "secrets", "singularName": "secret", "namespaced": true, "kind": "Secret", "verbs": verbs},
		}})
	default:
		answerStatus(w, http.StatusNotFound, "no "+path)
	}
}

// list answers with everything, in one page.
func (s *site) list(w http.ResponseWriter, r *http.Request, token, resource string) {
	what := "list"
	if r.URL.Query().Get("limit") == "1" {
		what = "probe"
	}
	s.note(token, what, r)
	s.mu.Lock()
	items := []any{}
	for path, u := range s.now {
		if strings.HasPrefix(path, resource+"/") {
			items = append(items, shaped(r, u).Object)
		}
	}
	of := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}[resource]
	kind := shaped(r, &kates.Unstructured{Object: map[string]any{"kind": of, "apiVersion": "v1"}})
	list := map[string]any{"kind": kind.GetKind() + "List", "apiVersion": kind.GetAPIVersion(), "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.rev)}, "items": items}
	raw, _ := json.Marshal(list)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

// shaped returns an object in the form that a request asks for.
func shaped(r *http.Request, u *kates.Unstructured) *kates.Unstructured {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return u
	}
	short := &kates.Unstructured{Object: map[string]any{"metadata": u.Object["metadata"]}}
	short.SetAPIVersion("meta.k8s.io/v1")
	short.SetKind("PartialObjectMetadata")
	return short
}

// watch sends what happens from a version on, until the client or the test ends it.
func (s *site) watch(w http.ResponseWriter, r *http.Request, token, resource string) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	what := "watch"
	var first []siteEvent
	s.mu.Lock()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		what = "list"
		for path, u := range s.now {
			if strings.HasPrefix(path, resource+"/") {
				first = append(first, siteEvent{Type: "ADDED", Object: u})
			}
		}
		mark := &kates.Unstructured{Object: map[string]any{"kind": "ConfigMap", "apiVersion": "v1"}}
		mark.SetResourceVersion(strconv.Itoa(s.rev))
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		first, from = append(first, siteEvent{Type: "BOOKMARK", Object: mark}), s.rev
	}
	s.seen = append(s.seen, siteRequest{token, what, r.Host})
	s.watches[resource]++
	s.cut[fmt.Sprintf("%s %p", token, r)] = cancel
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for events := first; ctx.Err() == nil; events = s.next(ctx, resource, &from) {
		for _, e := range events {
			e.Object = shaped(r, e.Object)
			raw, _ := json.Marshal(e)
			_, _ = w.Write(append(raw, '\n'))
		}
		_ = http.NewResponseController(w).Flush()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cut, fmt.Sprintf("%s %p", token, r))
	if s.watches[resource]--; s.watches[resource] == 0 {
		s.gaps++
	}
}

// watched waits until each stream of a rotated has one watch.
func (s *site) watched(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.watches["configmaps"] == 2 && s.watches["secrets"] == 1
	}, time.Minute, time.Millisecond)
}

// next waits for changes after a version.
func (s *site) next(ctx context.Context, resource string, from *int) (events []siteEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil && *from == s.rev {
		s.changed.Wait()
	}
	for _, e := range s.history[max(0, *from-100):] {
		if e.resource == resource {
			events = append(events, e)
		}
	}
	*from = s.rev
	return events
}

// one answers a request for one object.
func (s *site) one(w http.ResponseWriter, r *http.Request, token string, parts []string) {
	s.note(token, r.Method, r)
	resource, name := parts[0], ""
	if len(parts) > 1 {
		name = parts[1]
	}
	sent := &kates.Unstructured{}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		raw, _ := io.ReadAll(r.Body)
		if err := sent.UnmarshalJSON(raw); err != nil {
			answerStatus(w, http.StatusBadRequest, err.Error())
			return
		}
		name = sent.GetName()
		answerJSON(w, s.put(resource, name, sent).Object)
		return
	}
	s.mu.Lock()
	u := s.now[resource+"/"+name]
	s.mu.Unlock()
	if r.Method == http.MethodDelete && u != nil {
		u = s.put(resource, name, nil)
	}
	if u == nil {
		answerStatus(w, http.StatusNotFound, "no "+name)
		return
	}
	answerJSON(w, u.Object)
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// answerStatus answers as an API server refuses.
func answerStatus(w http.ResponseWriter, code int, message string) {
	reasons := map[int]metav1.StatusReason{
		http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reasons[code], Message: message,
	})
}

// thing is a config map or a secret with a number in its labels.
func thing(kind, name string, number int) *kates.Unstructured {
	u := &kates.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetLabels(map[string]string{"n": strconv.Itoa(number)})
	return u
}

// numberOf is the number of a thing.
func numberOf(t testing.TB, o kates.Object) int {
	t.Helper()
	n, err := strconv.Atoi(o.GetLabels()["n"])
	require.NoError(t, err)
	return n
}
