package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Programs of users, by module: testdata/programs/kates/otel/span is a program of the module in
// kates/otel. Those of the root are in testdata/programs/root.
//
//go:embed testdata/programs
var embedded embed.FS

var programs, _ = fs.Sub(embedded, "testdata/programs")

// program is a program of a user.
type program struct {
	name, source string
	output       string // what it prints
}

var wanted = regexp.MustCompile(`(?m)^\t*// Output: (.*)$`)

// programsOf returns the programs of a module, in order.
func programsOf(all fs.FS, m *goModule) (found []program, err error) {
	dir := m.dir
	if dir == "." {
		dir = "root"
	}
	files, err := fs.Glob(all, path.Join(dir, "*", "main.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(all, file)
		if err != nil {
			return nil, err
		}
		output := wanted.FindSubmatch(text)
		if output == nil {
			return nil, fmt.Errorf("%s has no comment that says what it prints: // Output: …", file)
		}
		found = append(found, program{path.Base(path.Dir(file)), string(text), string(output[1])})
	}
	if len(found) == 0 {
		err = fmt.Errorf("no program uses %s: write tools/release/testdata/programs/%s/NAME/main.go", m.path, dir)
	}
	return found, err
}

// use does with each released module what a user does: gets it, in an empty folder, from the proxy
// of a release, and builds and runs programs with it.
func use(ctx context.Context, out io.Writer, c *copied, all fs.FS) (err error) {
	configured, err := goEnv(ctx, "GOPROXY")
	if err != nil {
		return err
	}
	trusted, err := goEnv(ctx, "GONOSUMDB")
	if err != nil {
		return err
	}
	done, err := borrowCache(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	cache, err := goEnv(ctx, "GOMODCACHE")
	if err != nil {
		return err
	}
	sums, err := goEnv(ctx, "GOSUMDB")
	if err != nil {
		return err
	}
	if c.version == trial {
		sums = "off" // nobody gets a trial: what is in the module cache will do, without the network
	}
	env := []string{
		// The go command takes what somebody has set for good (go env -w) where a variable is empty.
		"GOENV=off", "GODEBUG=goindex=0", // the index of a module's files would outlive the version in the cache
		"GOMODCACHE=" + cache, "GOSUMDB=" + sums,
		"GOPROXY=file://" + filepath.ToSlash(c.proxy) + ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) + "," + configured,
		"GOPRIVATE=", "GONOPROXY=", // with either the go command asks its cache before any proxy
		"GONOSUMDB=" + strings.Trim(trusted+","+c.tree.prefix, ","),
		"GOFLAGS=", // a user may have none
	}
	var failed []error
	for _, m := range c.tree.released() {
		start := time.Now()
		found, err := programsOf(all, m)
		if err == nil {
			err = c.useModule(ctx, env, m, found)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.path, err))
			continue
		}
		fmt.Fprintf(out, "go get %s@%s: %d programs built and run, %.0f s\n", m.path, c.version, len(found), time.Since(start).Seconds())
	}
	return errors.Join(failed...)
}

// programTime is how long a program of a user may run. It is for one that hangs.
const programTime = 10 * time.Minute

// useModule gets one module, and builds and runs programs.
func (c *copied) useModule(ctx context.Context, env []string, m *goModule, all []program) error {
	dir, err := os.MkdirTemp("", "user-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, p := range all {
		if err := os.MkdirAll(filepath.Join(dir, p.name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, p.name, "main.go"), []byte(p.source), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/user"},
		{"get", m.path + "@" + c.version},
		{"mod", "tidy"},
		{"build", "-o", "bin/", "./..."},
	} {
		if _, err := run(ctx, dir, env, "go", args...); err != nil {
			return err
		}
	}
	for _, p := range all {
		limited, cancel := context.WithTimeout(ctx, programTime)
		printed, err := run(limited, dir, nil, filepath.Join(dir, "bin", p.name))
		cancel()
		if err != nil {
			return err
		}
		if printed = strings.TrimSpace(printed); printed != p.output {
			return fmt.Errorf("the program %s printed %q in place of %q", p.name, printed, p.output)
		}
	}
	return c.buildAll(ctx, env, dir, m)
}

// buildAll gets and builds all packages of a module that are for users.
func (c *copied) buildAll(ctx context.Context, env []string, dir string, m *goModule) error {
	listed, err := run(ctx, dir, env, "go", "list", "-find", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}", m.path+"/...")
	if err != nil {
		return err
	}
	get, build := []string{"get"}, []string{"build"}
	for _, line := range strings.Split(strings.TrimSpace(listed), "\n") {
		of, pkg, _ := strings.Cut(line, " ")
		if of == m.path && !isClosed(strings.TrimPrefix(strings.TrimPrefix(pkg, m.path), "/")) {
			get, build = append(get, pkg+"@"+c.version), append(build, pkg)
		}
	}
	if len(build) == 1 {
		return errors.New("it has no package for users")
	}
	if _, err := run(ctx, dir, env, "go", get...); err != nil {
		return err
	}
	_, err = run(ctx, dir, env, "go", build...)
	return err
}
