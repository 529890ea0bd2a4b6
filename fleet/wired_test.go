package fleet

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest"
)

type wire = map[string]any

// wired is a small API server behind a real connection, which is in memory so that it can live in
// a bubble of synctest. It has config maps and services, and may lie.
type wired struct {
	name    string
	network *katestest.Network

	mu      sync.Mutex
	version int
	objects map[string]wire // by resource and name
	log     []wiredEvent
	changed chan struct{}                                          // closed at the next event
	cut     chan struct{}                                          // closed when the open watches end
	lie     func(w http.ResponseWriter, r *http.Request) (is bool) // instead of the truth
	asked   []string                                               // verbs and paths of writes
}

type wiredEvent struct {
	version  int
	resource string
	line     []byte
}

var wiredKinds = map[string]string{"configmaps": "ConfigMap", "services": "Service"}

func newWired(t *testing.T, name string) *wired {
	t.Helper()
	s := &wired{
		name: name, network: katestest.NewNetwork(t), version: 100, objects: make(map[string]wire),
		changed: make(chan struct{}), cut: make(chan struct{}),
	}
	listener, err := s.network.Listen(name + ".test:80")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}}
	server.Start()
	t.Cleanup(func() { s.tell(nil); s.network.Reset(); server.Close() })
	return s
}

func (s *wired) config() *rest.Config {
	return &rest.Config{Host: "http://" + s.name + ".test:80", Dial: s.network.DialContext}
}

// tell changes what the server says, and ends the open watches. Nil is the truth.
func (s *wired) tell(lie func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie = lie
	close(s.cut)
	s.cut = make(chan struct{})
}

// put makes or changes an object, as another program does.
func (s *wired) put(resource, name string) wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store(resource, name, nil)
}

func (s *wired) store(resource, name string, sent wire) wire {
	s.version++
	key, what := resource+"/"+name, "MODIFIED"
	if s.objects[key] == nil {
		what = "ADDED"
	}
	o := s.object(resource, name, s.version)
	for _, field := range []string{"labels", "annotations"} {
		if sent[field] != nil {
			o["metadata"].(wire)[field] = sent[field]
		}
	}
	s.objects[key] = o
	s.tellAll(what, resource, o)
	return o
}

// tellAll brings an event to all watches.
func (s *wired) tellAll(what, resource string, o wire) {
	line, _ := json.Marshal(wire{"type": what, "object": o})
	s.log = append(s.log, wiredEvent{s.version, resource, append(line, '\n')})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *wired) object(resource, name string, version int) wire {
	return wire{"apiVersion": "v1", "kind": wiredKinds[resource], "metadata": wire{
		"namespace": "default", "name": name, "uid": s.name + "-" + resource + "-" + name, "resourceVersion": strconv.Itoa(version),
	}}
}

// writes are the verbs and paths of the writes that have arrived.
func (s *wired) writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *wired) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	lie := s.lie
	if r.Method != http.MethodGet {
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	}
	s.mu.Unlock()
	if lie != nil && lie(w, r) {
		return
	}
	switch path := r.URL.Path; {
	case path == "/api":
		say(w, wire{"kind": "APIVersions", "versions": []string{"v1"}})
	case path == "/apis":
		say(w, wire{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
	case path == "/api/v1":
		say(w, wire{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{
			wiredResource("configmaps", true), wiredResource("services", true), wiredResource("namespaces", false),
		}})
	case path == "/api/v1/namespaces/kube-system":
		say(w, wire{"apiVersion": "v1", "kind": "Namespace", "metadata": wire{"name": "kube-system", "uid": s.name, "resourceVersion": "1"}})
	case strings.HasPrefix(path, wiredObjects):
		s.single(w, r)
	case asksFor(r) == "":
		refuse(w, http.StatusNotFound, "NotFound")
	case r.URL.Query().Get("sendInitialEvents") == "true":
		refuse(w, http.StatusUnprocessableEntity, "Invalid")
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	default:
		s.list(w, r)
	}
}

func wiredResource(name string, namespaced bool) wire {
	kind := wiredKinds[name]
	if kind == "" {
		kind = "Namespace"
	}
	return wire{"name": name, "kind": kind, "namespaced": namespaced, "verbs": []string{"get", "list", "watch", "create", "patch", "delete"}}
}

func say(w http.ResponseWriter, body wire) { sayWith(w, http.StatusOK, body) }

func sayWith(w http.ResponseWriter, code int, body wire) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}

func refuse(w http.ResponseWriter, code int, reason string) {
	sayWith(w, code, wire{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason})
}

// asksFor returns the resource whose objects a request lists or watches; "": it does not.
func asksFor(r *http.Request) string {
	resource := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	if r.Method != http.MethodGet || wiredKinds[resource] == "" {
		return ""
	}
	return resource
}

func (s *wired) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	items := []any{}
	for key, o := range s.objects {
		if strings.HasPrefix(key, asksFor(r)+"/") && selects(r, o) {
			items = append(items, o)
		}
	}
	version := s.version
	s.mu.Unlock()
	say(w, wire{"kind": wiredKinds[asksFor(r)] + "List", "apiVersion": "v1", "metadata": wire{"resourceVersion": strconv.Itoa(version)}, "items": items})
}

// selects: a selector of labels is one that wants a label to be there.
func selects(r *http.Request, o wire) bool {
	label := r.URL.Query().Get("labelSelector")
	labels, _ := o["metadata"].(wire)["labels"].(wire)
	return label == "" || labels[label] != nil
}

func (s *wired) watch(w http.ResponseWriter, r *http.Request) {
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	for {
		s.mu.Lock()
		events, changed := slices.Clone(s.log), s.changed
		s.mu.Unlock()
		for _, e := range events {
			if e.version > since {
				since = e.version
				if e.resource == asksFor(r) {
					_, _ = w.Write(e.line)
				}
			}
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

const wiredObjects = "/api/v1/namespaces/default/"

// single gets, deletes, or applies an object as it is sent.
func (s *wired) single(w http.ResponseWriter, r *http.Request) {
	resource, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, wiredObjects), "/")
	var sent wire
	_ = json.NewDecoder(r.Body).Decode(&sent)
	metadata, _ := sent["metadata"].(wire)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[resource+"/"+name]
	switch {
	case r.Method == http.MethodPatch:
		say(w, s.store(resource, name, metadata))
	case before == nil:
		refuse(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodDelete:
		s.version++
		before["metadata"].(wire)["resourceVersion"] = strconv.Itoa(s.version)
		delete(s.objects, resource+"/"+name)
		s.tellAll("DELETED", resource, before)
		say(w, before)
	default:
		say(w, before)
	}
}
