package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// build makes the entry dir. It builds in a folder beside dir and then renames that in one step.
// The caller holds the entry's lock.
func (r recipe) build(ctx context.Context, dir string, lock held, progress io.Writer) error {
	fmt.Fprintf(progress, "building %s with %s, once for all tests of this machine: this takes minutes\n", r, r.toolchain)
	start := time.Now()
	if err := r.make(ctx, dir, lock, progress); err != nil {
		return fmt.Errorf("build %s: %w", r, err)
	}
	fmt.Fprintf(progress, "built %s in %s\n", r, time.Since(start).Round(time.Second))
	return nil
}

func (r recipe) make(ctx context.Context, dir string, lock held, progress io.Writer) error {
	// A builder that was killed leaves its folder. Nobody uses it now: the lock is held.
	prefix := filepath.Join(filepath.Dir(dir), ".building-"+filepath.Base(dir)+"-")
	left, err := filepath.Glob(globQuoted(prefix) + "*")
	for _, path := range left {
		if err == nil {
			err = os.RemoveAll(path)
		}
	}
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(prefix)+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // gone after a success
	if err := r.compile(ctx, tmp, lock, progress); err != nil {
		return err
	}
	for _, t := range []target{r.apiServer, r.etcd} {
		if err := os.Rename(filepath.Join(tmp, t.builtAs), filepath.Join(tmp, t.name)); err != nil {
			return err
		}
	}
	return publish(tmp, dir)
}

// globQuoted quotes what filepath.Glob would take for a pattern.
func globQuoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// compile builds both binaries with one go command, which then uses all cores while the larger
// one links.
func (r recipe) compile(ctx context.Context, out string, lock held, progress io.Writer) error {
	m := newMeter(progress, lock.writeProgress)
	defer m.start()()
	listed, err := r.run(ctx, lock, m, "list", "-deps", "-f", "{{.ImportPath}} {{.Stale}}", r.apiServer.pkg, r.etcd.pkg)
	if err != nil {
		return err
	}
	m.expect(counted(listed))
	_, err = r.run(ctx, lock, m, "build",
		"-v", // for the meter
		"-ldflags", strings.Join(r.ldflags, " "),
		"-o", out+string(filepath.Separator),
		r.apiServer.pkg, r.etcd.pkg)
	return err
}

// run runs a go command that uses the build cache as the build does, and returns its output. All
// else that it says goes to the meter.
//
// The linker leaves out what debuggers need, so the compiler need not make it: that is a tenth of
// its time. The standard library is compiled as for everything else on this machine, because most
// of it is in the build cache then. With -trimpath it would not be.
func (r recipe) run(ctx context.Context, lock held, m *meter, verb string, args ...string) (string, error) {
	cmd := newGoCommand(ctx, r.source, append([]string{verb,
		"-mod=readonly", // neither vendored nor resolved anew
		"-buildvcs=false",
		"-gcflags=all=-dwarf=false", "-gcflags=std=",
	}, args...)...)
	cmd.ExtraFiles = []*os.File{lock.file}
	// The meter is no *os.File. So Wait needs a limit for the pipes that the children of a killed
	// go command still hold.
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, m
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", m.explained(explained(verb, err))
	}
	return out.String(), nil
}

// counted returns how many packages the lines of `go list` have, and those that are not in the
// build cache. A program is among these until it is built, even if its package is there.
func counted(listed string) (total int, missing []string) {
	for line := range strings.Lines(listed) {
		path, stale, _ := strings.Cut(strings.TrimSpace(line), " ")
		total++
		if stale == "true" {
			missing = append(missing, path)
		}
	}
	return total, missing
}

// publish renames the finished folder tmp to dir. An existing dir is incomplete, or the caller
// would not have built; it is removed.
func publish(tmp, dir string) error {
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}
