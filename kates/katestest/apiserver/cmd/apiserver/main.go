// Command apiserver builds the kube-apiserver and etcd of package apiserver, unless they are in
// the cache, and prints the folder that holds them. The tests do the same; this command does it
// ahead of them, where a step of a pipeline or the time-out of `go test` asks for that:
//
//	go run github.com/kates-go/kates/kates/katestest/apiserver/cmd/apiserver
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kates-go/kates/kates/katestest/apiserver/internal/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set, err := binaries.Ensure(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
	fmt.Println(set.Dir)
}
