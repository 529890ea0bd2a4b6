package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// builder builds the test binary of one package after the other. `go test` would link it again
// for each fuzz test, which takes longer than a few hundred inputs do.
type builder struct {
	root      string // the module's folder
	module    string // its path
	cache     string // where go test keeps the inputs that it finds interesting
	temporary string
	args      []string

	dir string // the package of the binary, "" for none
	err error  // of its build
}

func newBuilder(root string, args []string) (*builder, error) {
	b := &builder{root: root, args: args}
	for into, command := range map[*string][]string{&b.module: {"list", "-m"}, &b.cache: {"env", "GOCACHE"}} {
		cmd := exec.Command("go", command...)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go %s: %w", strings.Join(command, " "), err)
		}
		*into = strings.TrimSpace(string(text))
	}
	var err error
	b.temporary, err = os.MkdirTemp("", "fuzzgate")
	return b, err
}

func (b *builder) binary() string { return filepath.Join(b.temporary, "fuzz.test") }

// build builds the test binary of a package, with the instruments of fuzzing.
func (b *builder) build(dir string, out io.Writer) error {
	if b.dir == dir {
		return b.err
	}
	// The name is of no matter: -fuzz has the binary instrumented.
	args := append([]string{"test", "-c", "-fuzz", "^Fuzz", "-o", b.binary()}, b.args...)
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	b.dir, b.err = dir, cmd.Run()
	if b.err != nil {
		b.err = fmt.Errorf("go test -c: %w", b.err)
	}
	return b.err
}

// tries is how often a fuzz test is begun that ends by a fault of package testing.
const tries = 3

// fuzz runs one fuzz test of the package that was built, and returns how many inputs it has
// executed.
func (b *builder) fuzz(test fuzzTest, limit string, out io.Writer) (execs int64, err error) {
	in, err := filepath.Rel(b.root, test.dir)
	if err != nil {
		return 0, err
	}
	cache := b.cache
	if strings.HasSuffix(limit, "x") { // inputs of former runs would use them up
		cache = b.temporary
	}
	args := []string{
		"-test.run", "^$", "-test.fuzz", "^" + test.name + "$", "-test.fuzztime", limit,
		"-test.fuzzminimizetime", "100x",
		"-test.fuzzcachedir", filepath.Join(cache, "fuzz", path.Join(b.module, filepath.ToSlash(in))),
	}
	for range tries {
		cmd := exec.Command(b.binary(), args...)
		cmd.Dir = test.dir
		output, failed := cmd.CombinedOutput()
		o := read(string(output))
		execs += o.execs
		switch {
		case failed == nil && o.execs > 0:
			return execs, nil
		case failed == nil:
			return execs, errors.New("it has executed nothing")
		case o.late && o.execs > 0: // it ran to its end
			return execs, nil
		case !o.late:
			fmt.Fprint(out, o.text)
			return execs, failed
		}
	}
	return execs, fmt.Errorf("%d times its time was over before it had executed anything", tries)
}
