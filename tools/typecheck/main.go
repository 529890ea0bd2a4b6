// Command typecheck fails if Go packages do not compile for another system.
//
//	typecheck -os darwin -tags lockorder ./...
//
// It parses the packages, their tests and all that they import, and checks the types, as the
// compiler does before it generates code. Nothing is compiled and nothing is cached: for a system
// on which nothing is ever run here, this takes a twentieth of the time that `go vet` takes, which
// compiles all that is imported.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	system := flag.String("os", "", "the system: a `GOOS`")
	tags := flag.String("tags", "", "build tags, separated by commas")
	flag.Parse()
	if err := check(os.Stderr, ".", *system, *tags, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
}

// What the types of a package need, of it and of what it imports.
const needed = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedTypesInfo | packages.NeedSyntax

// check checks the packages that the patterns name, from a folder, and writes what is wrong.
// Without cgo: there is no C compiler for the other system.
func check(out io.Writer, dir, system, tags string, patterns []string) error {
	if system == "" || len(patterns) == 0 {
		return errors.New("-os and a pattern of packages have to be given")
	}
	found, err := packages.Load(&packages.Config{
		Mode:       needed,
		Dir:        dir,
		Env:        append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		BuildFlags: []string{"-tags=" + tags},
		Tests:      true,
	}, patterns...)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%v name no package", patterns)
	}
	said := map[string]bool{} // a package has its errors again in the form that its tests see
	packages.Visit(found, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if text := e.Error(); !said[text] {
				said[text] = true
				fmt.Fprintln(out, text)
			}
		}
	})
	if len(said) > 0 {
		return fmt.Errorf("this does not compile for %s: %d errors", system, len(said))
	}
	return nil
}
