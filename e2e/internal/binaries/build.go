package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// build makes the entry dir. It builds in a folder beside dir and then renames that in one step.
// The caller holds the entry's lock.
func (r recipe) build(ctx context.Context, dir string, progress io.Writer) error {
	what := fmt.Sprintf("kube-apiserver %s and etcd %s", r.apiServer.version, r.etcd.version)
	fmt.Fprintf(progress, "building %s with %s: minutes, once\n", what, r.toolchain)
	start := time.Now()

	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".building-*")
	if err != nil {
		return fmt.Errorf("build %s: %w", what, err)
	}
	defer os.RemoveAll(tmp) // gone after a success
	if err := r.compile(ctx, tmp, progress); err != nil {
		return fmt.Errorf("build %s: %w", what, err)
	}
	for _, t := range []target{r.apiServer, r.etcd} {
		if err := os.Rename(filepath.Join(tmp, t.builtAs), filepath.Join(tmp, t.name)); err != nil {
			return fmt.Errorf("build %s: %w", what, err)
		}
	}
	if err := publish(tmp, dir); err != nil {
		return fmt.Errorf("build %s: %w", what, err)
	}
	fmt.Fprintf(progress, "built %s in %s\n", what, time.Since(start).Round(time.Second))
	return nil
}

// compile builds both binaries with one go command, which then uses all cores while the larger
// one links.
func (r recipe) compile(ctx context.Context, out string, progress io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "build",
		"-mod=readonly", // neither vendored nor resolved anew
		"-buildvcs=false",
		"-trimpath",
		"-ldflags", strings.Join(r.ldflags, " "),
		"-o", out+string(filepath.Separator),
		r.apiServer.pkg, r.etcd.pkg)
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(),
		"GOWORK=off",
		"GOFLAGS="+withoutInstrumentation(os.Getenv("GOFLAGS")),
		"CGO_ENABLED=0", // no C compiler, and binaries that outlive the machine's C library
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// These are not *os.File. So Wait needs a limit for the pipes that the children of a killed
	// go command still hold.
	cmd.Stdout, cmd.Stderr = progress, progress
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

// withoutInstrumentation removes flags such as -race from GOFLAGS, since they are for the tests
// only. It keeps those about modules and the network.
func withoutInstrumentation(goflags string) string {
	var kept []string
	for _, f := range strings.Fields(goflags) {
		switch name, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "="); name {
		case "race", "msan", "asan", "cover", "covermode", "coverpkg":
		default:
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, " ")
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
