package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/kates-go/kates/kates"
)

// server is the listener of --serve.
type server struct {
	http *http.Server
	// url of the status page.
	url  string
	done chan struct{}
}

// loopback is where a page is served if the address names no host: what a cluster has in it is
// not for the network.
const loopback = "127.0.0.1"

// serve listens on an address, and answers until the returned server is closed.
func serve(ctx context.Context, address string, handler http.Handler) (*server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--serve=%s is not an address: use :8080, or HOST:PORT", address)
	}
	if host == "" {
		host = loopback
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("--serve: %w", err)
	}
	if addr, ok := l.Addr().(*net.TCPAddr); ok && addr.IP.IsLoopback() {
		handler = localOnly(handler)
	}
	s := &server{
		http: &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: log.New(io.Discard, "", 0), // it would be in the middle of the screen
		},
		url:  "http://" + l.Addr().String() + pagePath,
		done: make(chan struct{}),
	}
	go func() { // until close
		defer close(s.done)
		_ = s.http.Serve(l) // it always ends with an error: that it was closed
	}()
	return s, nil
}

func (s *server) close() error {
	if s == nil {
		return nil
	}
	err := s.http.Close()
	<-s.done
	return err
}

// localOnly refuses requests for other names than those of this machine. A web site that has its
// name resolve to this machine would otherwise read the page in its visitor's browser.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this page is for http://localhost and http://127.0.0.1", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// pagePath is where the status page is.
const pagePath = "/debug/kates"

var errNotReady = errors.New("not ready")

// handlerFor has the health of a client.
func handlerFor(client *kates.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := client.Ready(); err != nil {
			http.Error(w, fmt.Sprintf("%v: %v", errNotReady, err), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
