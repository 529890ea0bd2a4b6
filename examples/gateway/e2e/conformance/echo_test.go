package conformance

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/websocket"
)

// echo is the only container that there is: it answers as the suite's own echo-basic does, with
// what it has been asked.
type echo struct {
	address, namespace, pod string
	server                  *http.Server
}

// port is the one of the suite's containers.
const port = "3000"

// startEcho serves at an address.
func startEcho(address, namespace, pod string) (*echo, error) {
	e := &echo{address: address, namespace: namespace, pod: pod}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", e.answer)
	mux.HandleFunc("/status/{code}", status)
	mux.Handle("/ws", websocket.Handler(func(c *websocket.Conn) { _, _ = io.Copy(c, c) }))
	e.server = &http.Server{Handler: oneSlash(mux), ReadHeaderTimeout: time.Minute}
	go func() { _ = e.server.Serve(listener) }() // until close
	return e, nil
}

func (e *echo) close() error { return e.server.Close() }

// answer says what the request was. It waits before that if it is asked to.
func (e *echo) answer(w http.ResponseWriter, r *http.Request) {
	if delay := r.FormValue("delay"); delay != "" {
		d, err := time.ParseDuration(delay)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		select {
		case <-time.After(d):
		case <-r.Context().Done():
			return
		}
	}
	text, err := json.Marshal(map[string]any{
		"path": r.RequestURI, "host": r.Host, "method": r.Method, "proto": r.Proto, "headers": r.Header,
		"httpPort": port, "namespace": e.namespace, "pod": e.pod,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	setHeaders(w.Header(), r.Header["X-Echo-Set-Header"])
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// setHeaders sets headers that are given as "name:value, name:value". Names keep their letters'
// cases.
func setHeaders(h http.Header, asked []string) {
	for _, pair := range strings.Split(strings.Join(asked, ","), ",") {
		name, value, found := strings.Cut(strings.TrimSpace(pair), ":")
		switch value = strings.TrimSpace(value); {
		case !found:
		case len(h[name]) == 0:
			h[name] = []string{value}
		default:
			h[name][0] += "," + value
		}
	}
}

// status answers with the status that it is asked for.
func status(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(r.PathValue("code"))
	if err != nil || code < 200 || code > 599 {
		code = http.StatusBadRequest
	}
	w.WriteHeader(code)
}

// oneSlash keeps the mux from redirecting paths with two slashes.
func oneSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.ReplaceAll(r.URL.Path, "//", "/")
		next.ServeHTTP(w, r)
	})
}

// network reserves one of the networks 127.n.0.0/16 for a run of the tests, so that several runs
// on one machine do not meet. The listener keeps it.
func network() (n byte, keep net.Listener, err error) {
	for n := byte(64); n < 250; n++ {
		if keep, err = net.Listen("tcp", net.JoinHostPort(address(n, 0, 1), "64999")); err == nil {
			return n, keep, nil
		}
	}
	return 0, nil, errors.Join(errors.New("no loopback network is free"), err)
}

// address is one of the network.
func address(network, a, b byte) string { return net.IPv4(127, network, a, b).String() }
