// Command troubled is a program with troubles, to look at: on a real API server with 20,000
// objects of six kinds and steady changes, it has a kind that it may not read, one that is not
// served, a watch that brings nothing, an object that does not decode, and a reconciler that
// fails. Its status page is to say so.
//
//	go run ./cmd/troubled                     ten minutes, on 127.0.0.1:8085
//	go run ./cmd/troubled -objects 2000 -for 1m -listen 127.0.0.1:0
//
// It prints the address of the page, and the path of a kubeconfig of the same cluster for
// snapwatch and kubectl, whose user may not read everything either.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kates-go/kates/e2e/internal/troubled"
)

func main() {
	var o troubled.Options
	flag.IntVar(&o.Objects, "objects", 20_000, "how many objects the cluster has")
	flag.IntVar(&o.Rate, "rate", 50, "changes per second")
	flag.StringVar(&o.Listen, "listen", "127.0.0.1:8085", "the address of the status page")
	howLong := flag.Duration("for", 10*time.Minute, "how long it runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *howLong)
	defer cancel()
	err := troubled.Run(ctx, o, func(w *troubled.World) {
		fmt.Printf("status page: http://%s/debug/kates/\nmetrics:     http://%s/metrics\nkubeconfig:  %s\n", w.Address, w.Address, w.Kubeconfig)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "troubled:", err)
		os.Exit(1)
	}
}
