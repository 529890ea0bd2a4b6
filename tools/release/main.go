// Command release makes a release of the modules of this repository, and uses it as a user does.
//
//	release -version v0.1.0 -out FOLDER   # checks, makes and tries a release; prints its tags
//	release -try                          # makes and tries what is in the tree, for nobody
//
// It works on a copy. It never changes the tree, and it makes no tag there and pushes nothing.
//
// In the tree the modules require each other by a placeholder, and a replace leads to the folder.
// Users get neither. In the copy each module requires the others in the version of the release,
// without a replace, and its go.sum has their checksums. The copy is a clone with one commit more,
// which has all this, and with the tags. FOLDER has the copy (source) and what a module proxy
// serves of it (proxy).
//
// First it checks that everything is ready, and names all that is not: the version, the tree, the
// change log, what the documents say, the exported API beside that of the last version, the go.mod
// files and the licences. At the end it builds and runs programs that get the modules from the
// proxy. They are in testdata/programs, by module. With -try the checks are the last two alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	o := options{programs: programs}
	flag.StringVar(&o.version, "version", "", "the `version` to release")
	flag.StringVar(&o.out, "out", "", "a new or an empty `folder` for the release")
	flag.StringVar(&o.root, "root", ".", "the `folder` of the repository")
	flag.BoolVar(&o.try, "try", false, "make and try what is in the tree, committed or not, and remove it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := release(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

// options is what the command line says.
type options struct {
	root, version, out string
	try                bool
	programs           fs.FS // of users, by module
}

// trial is the version of a release that is made only to be tried.
const trial = "v0.0.0-try"

// release does what the command is for.
func release(ctx context.Context, out io.Writer, o options) (err error) {
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	if o.try {
		if o.version != "" || o.out != "" {
			return errors.New("-try takes neither a version nor a folder")
		}
		o.version = trial
		if o.out, err = os.MkdirTemp("", "release-*"); err != nil {
			return err
		}
		defer os.RemoveAll(o.out)
		trusted, err := trustEveryOwner()
		if err != nil {
			return err
		}
		defer trusted()
	}
	if o.version == "" || o.out == "" {
		return errors.New("a version and a folder have to be given (make release VERSION=v1.2.3)")
	}
	if err := checkForm(o.version); err != nil {
		return err
	}
	if o.out, err = emptyFolder(o.out); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(o.out)
		}
	}()
	t, err := readTree(ctx, o.root)
	if err != nil {
		return err
	}
	if err := ready(ctx, out, t, o); err != nil {
		return err
	}
	c, err := newCopy(ctx, t, o.out, o.version, o.try)
	if err != nil {
		return fmt.Errorf("make %s: %w", o.version, err)
	}
	fmt.Fprintf(out, "%s: %d modules in %s\n", o.version, len(t.released()), c.proxy)
	if err := c.compareWithGit(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "the tags of the copy give the same modules")
	if err := use(ctx, out, c, o.programs); err != nil {
		return fmt.Errorf("use %s as a user does: %w", o.version, err)
	}
	if !o.try {
		c.explain(out)
	}
	return nil
}

// emptyFolder makes a folder, and returns its absolute path.
func emptyFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: a release gets a folder of its own, so remove what is there or name another", dir)
	}
	return dir, err
}

// ready checks all that has to be right before a release is made. It is an error that names all
// that is not.
func ready(ctx context.Context, out io.Writer, t *tree, o options) error {
	checks := []func() ([]string, error){
		func() ([]string, error) { return t.problems(o.version), nil },
		func() ([]string, error) { return checkLicences(ctx, out, t) },
	}
	if !o.try {
		checks = append(checks,
			func() ([]string, error) { return checkTags(ctx, t, o.version) },
			func() ([]string, error) { return checkClean(ctx, t) },
			func() ([]string, error) { return checkChangelog(t, o.version) },
			func() ([]string, error) { return checkFetched(ctx, t, o.version) },
			func() ([]string, error) { return checkDocuments(ctx, t, o.version) },
			func() ([]string, error) { return checkAPI(ctx, out, t, o.version) })
	}
	var all []string
	for _, check := range checks {
		problems, err := check()
		if err != nil {
			return err
		}
		all = append(all, problems...)
	}
	for _, problem := range all {
		fmt.Fprintln(out, "-", problem)
	}
	if len(all) > 0 {
		return fmt.Errorf("%s is not ready: %d to mend, see above", o.version, len(all))
	}
	return nil
}
