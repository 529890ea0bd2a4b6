// Package firstbuild measures how long the first build of a program takes that uses a library:
// with an empty build cache, and all modules there. The programs are the least that keep a picture
// of pods.
package firstbuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Program is one of them: a package of this module.
type Program struct{ Name, Title string }

// Programs are all programs, in the order of columns.
var Programs = []Program{
	{"withkates", "kates"},
	{"withinformers", "client-go informers"},
	{"withruntime", "controller-runtime"},
}

// Package is the program's path.
func (p Program) Package() string {
	return "github.com/kates-go/kates/bench/internal/firstbuild/" + p.Name
}

// Built says what a build took.
type Built struct {
	Took, CPU time.Duration
	Packages  int // that were compiled, the standard library's included
	Bytes     int64
}

// Build builds the program in a folder of the module, with a cache of its own.
func (p Program) Build(ctx context.Context, dir string) (b Built, err error) {
	cache, err := os.MkdirTemp("", "kates-build-*")
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	program := filepath.Join(cache, "program")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, p.Package())
	build.Dir, build.Env = dir, append(os.Environ(), "GOCACHE="+filepath.Join(cache, "cache"), "GOFLAGS=-buildvcs=false")
	begun := time.Now()
	if out, err := build.CombinedOutput(); err != nil {
		return b, fmt.Errorf("build %s: %w: %s", p.Name, err, out)
	}
	b.Took, b.CPU = time.Since(begun), build.ProcessState.UserTime()+build.ProcessState.SystemTime()
	info, err := os.Stat(program)
	if err != nil {
		return b, err
	}
	b.Bytes = info.Size()
	list := exec.CommandContext(ctx, "go", "list", "-deps", p.Package())
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return b, fmt.Errorf("list what %s needs: %w", p.Name, err)
	}
	b.Packages = len(strings.Fields(string(out)))
	return b, nil
}
