package demo

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Loopback maps the address of an endpoint, 10.a.b.c, to one of the loopback interface, 127.a.b.c,
// which no EndpointSlice can have.
func Loopback(address string) string {
	if rest, ok := strings.CutPrefix(address, "10."); ok {
		return "127." + rest
	}
	return address
}

// backends are the servers of the application: one for each endpoint. All of them run all the
// time, and EndpointSlices say which ones count.
type backends struct {
	port    int // the same one for all
	servers []*http.Server
	done    chan struct{}
}

// startBackends starts a server for each endpoint. An answer says which Service and endpoint it is
// from.
func startBackends(endpoints map[string][]string) (*backends, error) {
	b := &backends{done: make(chan struct{})}
	for service, addresses := range endpoints {
		for _, address := range addresses {
			if err := b.start(service, address); err != nil {
				b.close()
				return nil, fmt.Errorf("the demonstration has its endpoints on the loopback interface, at 127.0.0.0/8: %w", err)
			}
		}
	}
	return b, nil
}

func (b *backends) start(service, address string) error {
	l, err := net.Listen("tcp", net.JoinHostPort(Loopback(address), strconv.Itoa(b.port)))
	if err != nil {
		return err
	}
	b.port = l.Addr().(*net.TCPAddr).Port
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s %s\n", service, address) }),
	}
	b.servers = append(b.servers, server)
	go func() { // until close
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // Serve returns nothing else after Close
		}
		b.done <- struct{}{}
	}()
	return nil
}

func (b *backends) close() {
	for _, s := range b.servers {
		_ = s.Close()
	}
	for range b.servers {
		<-b.done
	}
}
