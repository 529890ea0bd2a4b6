package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/page"
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

// pagePath is where the status page is.
const pagePath = "/debug/kates/"

// handlerOf has the status page of a client, and whether the client is healthy and ready.
func handlerOf(client *kates.Client, status *page.Page) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(pagePath, status)
	mux.Handle("GET /{$}", http.RedirectHandler(pagePath, http.StatusFound))
	mux.HandleFunc("GET /healthz", client.Healthz)
	mux.HandleFunc("GET /readyz", client.Readyz)
	return mux
}
