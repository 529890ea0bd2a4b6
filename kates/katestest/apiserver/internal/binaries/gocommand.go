package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// newGoCommand returns a command that runs go in the folder dir.
func newGoCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GO111MODULE=on",
		"GOWORK=off",
		"GOFLAGS="+keptFlags(os.Getenv("GOFLAGS")),
		"CGO_ENABLED=0", // no C compiler, and binaries that outlive the machine's C library
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd
}

// keptFlags removes from GOFLAGS what is meant for the tests, such as -race, -tags or -modfile:
// the name of the cache entry does not cover it.
func keptFlags(goflags string) string {
	var kept []string
	for _, f := range strings.Fields(goflags) {
		switch name, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "="); name {
		case "modcacherw", "p":
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, " ")
}

// goCommand runs go in dir and returns its standard output.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	out, err := newGoCommand(ctx, dir, args...).Output()
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], context.Cause(ctx))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return out, explained(args[0], err)
}

// explained says what failed when the go command was run, and what to do if there is none.
func explained(verb string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("go %s: %w: the API server is built from source; put the folder of the go command into PATH", verb, err)
	}
	return fmt.Errorf("go %s: %w", verb, err)
}
