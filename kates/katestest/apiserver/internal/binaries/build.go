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
	cmd := newGoCommand(ctx, r.source, "build",
		"-mod=readonly", // neither vendored nor resolved anew
		"-buildvcs=false",
		"-trimpath",
		"-v", // for the meter
		"-ldflags", strings.Join(r.ldflags, " "),
		"-o", out+string(filepath.Separator),
		r.apiServer.pkg, r.etcd.pkg)
	cmd.ExtraFiles = []*os.File{lock.file}
	// The meter is no *os.File. So Wait needs a limit for the pipes that the children of a killed
	// go command still hold.
	m := newMeter(progress)
	cmd.Stdout, cmd.Stderr = m, m
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return m.explained(explained("build", err))
	}
	return nil
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
