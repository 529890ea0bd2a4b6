// Package replay is a server of pods, services and config maps. Its watches send events that were
// encoded in advance, as fast as they are read. It forwards everything else to a real API server,
// so that discovery is the real one ([Start]). A second one, [Steady], sends events at a steady
// rate, and needs no other server.
package replay

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// A Server serves on the loopback interface, without authentication, from Start to Stop.
type Server struct {
	// URL is the server's address.
	URL string

	objects []kind
	http    *http.Server
	behind  http.Handler
	going   chan struct{}
	once    sync.Once
	done    chan struct{} // closed to end the watches

	mu      sync.Mutex
	encoded map[string]*encoding // by media type
}

// Start starts a server with a number of objects of each kind. The events are spread over kinds
// and objects. It forwards what it does not know to the server of the configuration.
func Start(config *rest.Config, objects, events int) (*Server, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("start a replay: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("start a replay: %w", err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a replay: %w", err)
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), objects: kinds(objects, events), behind: proxy,
		going: make(chan struct{}), done: make(chan struct{}), encoded: map[string]*encoding{},
	}
	s.http = &http.Server{Handler: s}
	go func() { _ = s.http.Serve(listener) }() // ends on Stop
	return s, nil
}

// Stop ends all requests and the server.
func (s *Server) Stop() error {
	close(s.done)
	return s.http.Close()
}

// Go starts the events, in open watches and in future ones.
func (s *Server) Go() { s.once.Do(func() { close(s.going) }) }

// Marks returns what the objects show after all events, by namespace/name.
func (s *Server) Marks() map[string]string {
	marks := map[string]string{}
	for _, k := range s.objects {
		for _, e := range k.events {
			marks[e.key()] = e.mark
		}
	}
	return marks
}

const protobufType = "application/vnd.kubernetes.protobuf"

// ServeHTTP answers lists and watches of all namespaces.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := -1
	for i, k := range s.objects {
		if r.Method == http.MethodGet && r.URL.Path == "/api/v1/"+k.resource {
			at = i
		}
	}
	if at < 0 {
		s.behind.ServeHTTP(w, r)
		return
	}
	mediaType := "application/json"
	if strings.Contains(r.Header.Get("Accept"), protobufType) {
		mediaType = protobufType
	}
	e, err := s.encode(mediaType)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	q := r.URL.Query()
	if watch := q.Get("watch"); watch == "true" || watch == "1" {
		s.watch(w, r, mediaType, e.kinds[at], q.Get("sendInitialEvents") == "true")
		return
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(e.kinds[at].list) // a client that has gone needs no answer
}

// watch sends a stream until its client or the server ends.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, mediaType string, k encodedKind, initial bool) {
	if mediaType == protobufType {
		mediaType += ";stream=watch"
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	if initial {
		if _, err := w.Write(k.initial); err != nil {
			return
		}
	}
	if err := flush(); err != nil {
		return
	}
	select {
	case <-s.going:
	case <-r.Context().Done():
		return
	case <-s.done:
		return
	}
	if _, err := w.Write(k.events); err != nil || flush() != nil {
		return
	}
	select {
	case <-r.Context().Done():
	case <-s.done:
	}
}

// encode returns everything in a media type. The first call takes a while.
func (s *Server) encode(mediaType string) (*encoding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.encoded[mediaType]; e != nil {
		return e, nil
	}
	e, err := encodeAll(mediaType, s.objects)
	if err != nil {
		return nil, errors.Join(errors.New("encode the replay"), err)
	}
	s.encoded[mediaType] = e
	return e, nil
}
