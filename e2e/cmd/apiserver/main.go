// Command apiserver builds the kube-apiserver and etcd that the end-to-end tests run, unless they
// are in the cache, and prints the folder that holds them. The tests do the same; this command
// fills the cache in advance.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kates-go/kates/e2e/internal/binaries"
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
