// Package probes serves the health checks of the examples.
package probes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Flag is the help of the flag -listen.
const Flag = "serve /healthz and /readyz at this address (:8080 is that of 127.0.0.1 alone; empty: not at all)"

// Health is a kates.Client, or a fleet.Fleet.
type Health interface {
	Healthz(w http.ResponseWriter, r *http.Request)
	Readyz(w http.ResponseWriter, r *http.Request)
}

// Serve serves the health checks at an address until stop is called, and nothing if it is empty.
// An address without a host is that of the loopback interface: a probe of a kubelet needs 0.0.0.0.
func Serve(address string, of Health) (at string, stop func(), err error) {
	if address == "" {
		return "", func() {}, nil
	}
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("-listen %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", of.Healthz)
	mux.HandleFunc("/readyz", of.Readyz)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return listener.Addr().String(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close() // a request does not end
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			panic(err) // Serve returns nothing else after Shutdown
		}
	}, nil
}
