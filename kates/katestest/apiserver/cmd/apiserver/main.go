// Command apiserver builds the kube-apiserver and etcd of package apiserver, unless they are in
// the cache, and prints the folder that holds them. The tests do the same; this command does it
// ahead of them, where a step of a pipeline or the time-out of `go test` asks for that:
//
//	go run github.com/kates-go/kates/kates/katestest/apiserver/cmd/apiserver
//
// Arguments are versions of Kubernetes, such as 1.35: it builds each of them, one after the other,
// and prints a folder for each. Without arguments it builds the version that $KATES_KUBERNETES
// names, else the newest.
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
	versions := os.Args[1:]
	if len(versions) == 0 {
		versions = []string{""}
	}
	for _, version := range versions {
		set, err := binaries.Ensure(ctx, version, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, "apiserver:", err)
			os.Exit(1)
		}
		fmt.Println(set.Dir)
	}
}
