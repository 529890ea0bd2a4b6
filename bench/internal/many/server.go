// Package many is for the benchmark of a fleet: many small API servers in one process, of which
// some accept connections and never answer, and a fleet that watches them in another.
package many

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// Serve runs a number of servers on the loopback interface, and prints their addresses, one to a
// line. The last ones hang. It serves until stdin ends.
func Serve(clusters, hung, objects int, stdin io.Reader, stdout io.Writer) error {
	for i := range clusters {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer func() { _ = listener.Close() }()
		if i < clusters-hung {
			go func() { _ = http.Serve(listener, newServer(i, objects)) }() // ends with the process
		} else {
			go hang(listener)
		}
		if _, err := fmt.Fprintln(stdout, "http://"+listener.Addr().String()); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, stdin)
	return err
}

// hang accepts connections, and never answers. It ends with the process.
func hang(listener net.Listener) {
	var held []net.Conn // not to be collected, which would close them
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		held = append(held, c)
		_ = held
	}
}

type object = map[string]any

// server is a cluster of config maps and services that speaks enough of the API: discovery, the
// namespace kube-system, lists, and watches from any version.
type server struct {
	name string

	mu      sync.Mutex
	objects map[string][]object // by resource
	version int
	log     []event
	changed chan struct{} // closed at the next event
}

type event struct {
	resource string
	line     []byte
}

func newServer(i, n int) *server {
	s := &server{name: fmt.Sprint("cluster-", i), objects: make(map[string][]object), changed: make(chan struct{})}
	for resource, kind := range map[string]string{"configmaps": "ConfigMap", "services": "Service"} {
		for j := range n {
			s.version++
			s.objects[resource] = append(s.objects[resource], object{
				"apiVersion": "v1", "kind": kind,
				"metadata": object{
					"namespace": "default", "name": fmt.Sprintf("o-%05d", j), "uid": fmt.Sprintf("%s-%s-%d", s.name, kind, j),
					"resourceVersion": strconv.Itoa(s.version), "creationTimestamp": "2026-01-01T00:00:00Z",
					"labels": object{"app": "x", "cluster": s.name}, "annotations": object{"mark": ""},
				},
			})
		}
	}
	return s
}

// ServeHTTP answers a request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch path := r.URL.Path; {
	case path == "/touch":
		s.touch(q.Get("mark"))
	case path == "/api":
		reply(w, http.StatusOK, object{"kind": "APIVersions", "versions": []string{"v1"}})
	case path == "/apis":
		reply(w, http.StatusOK, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
	case path == "/api/v1":
		reply(w, http.StatusOK, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{
			resource("configmaps", "ConfigMap", true), resource("services", "Service", true), resource("namespaces", "Namespace", false),
		}})
	case path == "/api/v1/namespaces/kube-system":
		reply(w, http.StatusOK, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "kube-system", "uid": s.name, "resourceVersion": "1"}})
	case path == "/api/v1/configmaps" || path == "/api/v1/services":
		switch resource := path[len("/api/v1/"):]; {
		case q.Get("sendInitialEvents") == "true":
			failure(w, http.StatusUnprocessableEntity, "Invalid")
		case q.Get("watch") != "":
			since, _ := strconv.Atoi(q.Get("resourceVersion"))
			s.watch(w, r, resource, since)
		default:
			s.list(w, resource, q.Get("limit") == "1")
		}
	default:
		failure(w, http.StatusNotFound, "NotFound")
	}
}

func resource(name, kind string, namespaced bool) object {
	return object{"name": name, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": []string{"get", "list", "watch", "create"}}
}

func failure(w http.ResponseWriter, code int, reason string) {
	reply(w, code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason})
}

func reply(w http.ResponseWriter, code int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}

func (s *server) list(w http.ResponseWriter, resource string, one bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := map[string]string{"configmaps": "ConfigMapList", "services": "ServiceList"}[resource]
	metadata, items := object{"resourceVersion": strconv.Itoa(s.version)}, s.objects[resource]
	if one && len(items) > 1 {
		metadata["continue"], items = "more", items[:1]
	}
	reply(w, http.StatusOK, object{"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": items})
}

// touch changes a config map.
func (s *server) touch(mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	o := s.objects["configmaps"][s.version%len(s.objects["configmaps"])]
	metadata := o["metadata"].(object)
	metadata["resourceVersion"], metadata["annotations"] = strconv.Itoa(s.version), object{"mark": mark}
	line, err := json.Marshal(object{"type": "MODIFIED", "object": o})
	if err != nil {
		panic(err) // maps and strings
	}
	s.log = append(s.log, event{"configmaps", append(line, '\n')})
	close(s.changed)
	s.changed = make(chan struct{})
}

// watch sends the events after a version. Those of objects that exist from the start have none.
func (s *server) watch(w http.ResponseWriter, r *http.Request, resource string, since int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	s.mu.Lock()
	at := max(0, len(s.log)-(s.version-since)) // each event is one version
	s.mu.Unlock()
	for {
		s.mu.Lock()
		events, changed := s.log[at:], s.changed
		at = len(s.log)
		s.mu.Unlock()
		for _, e := range events {
			if e.resource == resource {
				if _, err := w.Write(e.line); err != nil {
					return
				}
			}
		}
		if flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
