// Package exported lists what programs can name of this repository: the exported declarations,
// methods and fields of all packages that they can import. A new name is a promise, so the list is
// a file, and a change of the list is a decision.
package exported

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// closed are folders whose packages no program imports: programs, their tests, and what measures.
var closed = []string{"bench", "e2e", "examples", "internal", "testdata", "tools"}

// Names returns the exported names below a folder, sorted, each as "folder Name" or "folder
// Type.Name". Methods and fields that a type has by embedding are names of the embedded type.
func Names(root string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains(closed, name)):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil || file.Name.Name == "main" {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, name := range ofFile(file) {
			names = append(names, filepath.ToSlash(folder)+" "+name)
		}
		return err
	})
	slices.Sort(names)
	return slices.Compact(names), err // a file of each operating system may declare one name
}

// ofFile returns the exported names that a file declares.
func ofFile(file *ast.File) (names []string) {
	for _, declared := range file.Decls {
		switch declared := declared.(type) {
		case *ast.FuncDecl:
			name := declared.Name.Name
			if declared.Recv != nil {
				name = receiver(declared.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range declared.Specs {
				names = append(names, ofSpec(spec)...)
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(strings.Split(name, "."), func(part string) bool { return !ast.IsExported(part) })
	})
}

// receiver is the name of the type of a method.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	}
	return ""
}

// ofSpec returns the names of constants, of variables, or of a type with its fields or methods.
func ofSpec(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names = append(names, name.Name)
		}
	case *ast.TypeSpec:
		names = append(names, spec.Name.Name)
		var members *ast.FieldList
		switch t := spec.Type.(type) {
		case *ast.StructType:
			members = t.Fields
		case *ast.InterfaceType:
			members = t.Methods
		default:
			return names
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				names = append(names, spec.Name.Name+"."+name.Name)
			}
		}
	}
	return names
}
