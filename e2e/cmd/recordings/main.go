// Command recordings makes the recordings in testdata/recordings anew, on a real API server:
//
//	go run ./cmd/recordings              all of them
//	go run ./cmd/recordings drain        one
//	go run ./cmd/recordings -to /tmp/x   in another folder
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/e2e/internal/rollouts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	to := flag.String("to", filepath.Join("..", "testdata", "recordings"), "the folder")
	flag.Parse()
	if err := run(ctx, *to, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "recordings:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, to string, names []string) (err error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	c, err := cluster.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	for _, s := range rollouts.Scenarios() {
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		file := filepath.Join(to, s.Name+".recording")
		if err := s.Record(ctx, c.Config, file); err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d bytes\n", file, info.Size())
	}
	return nil
}
