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
	"regexp"
	"slices"
	"strings"
)

// closed are folders whose packages no program imports: programs, their tests, and what measures.
var closed = []string{"bench", "e2e", "examples", "internal", "testdata", "tools"}

// Names returns the exported names below a folder, sorted, each as "folder Name" or "folder
// Type.Name". Methods and fields that a type has by embedding are names of the embedded type.
func Names(root string) ([]string, error) {
	var names []string
	err := eachFile(root, 0, func(folder string, file *ast.File) {
		for _, name := range ofFile(file) {
			names = append(names, folder+" "+name)
		}
	})
	slices.Sort(names)
	return slices.Compact(names), err // a file of each operating system may declare one name
}

// eachFile calls f with each file below a folder that programs can import, and with its folder.
func eachFile(root string, mode parser.Mode, f func(folder string, file *ast.File)) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains(closed, name)):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|mode)
		if err != nil || file.Name.Name == "main" {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err == nil {
			f(filepath.ToSlash(folder), file)
		}
		return err
	})
}

// alone is what the comment of a name says that only the library itself needs.
var alone = regexp.MustCompile(`(?i)\b(for|by|of) (the )?packages? [\w./]+( and [\w./]+)? (alone|only)\b|` +
	`\b(only|solely|just|exported) (for|by) (the )?(packages?|library)\b|` +
	`\b(for|by) (this|the) library (alone|only)\b|\bprograms do not (use|call|need|get) (it|this|these|them)\b|\bnot (meant )?for programs\b`)

// Private returns the comments of exported names below a folder that say that programs have no use
// for the name, each as "folder: comment". Such a name belongs to internal/doors.
func Private(root string) (all []string, err error) {
	err = eachFile(root, parser.ParseComments, func(folder string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			var name string
			var docs []*ast.CommentGroup
			switch n := n.(type) {
			case *ast.FuncDecl:
				name, docs = n.Name.Name, []*ast.CommentGroup{n.Doc}
			case *ast.GenDecl:
				name, docs = "A", []*ast.CommentGroup{n.Doc} // of several names
			case *ast.TypeSpec:
				name, docs = n.Name.Name, []*ast.CommentGroup{n.Doc, n.Comment}
			case *ast.ValueSpec:
				name, docs = n.Names[0].Name, []*ast.CommentGroup{n.Doc, n.Comment}
			case *ast.Field:
				if len(n.Names) > 0 {
					name, docs = n.Names[0].Name, []*ast.CommentGroup{n.Doc, n.Comment}
				}
			}
			for _, doc := range docs {
				text := strings.Join(strings.Fields(doc.Text()), " ")
				if ast.IsExported(name) && alone.MatchString(text) {
					all = append(all, folder+": "+text)
				}
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
	})
	slices.Sort(all)
	return slices.Compact(all), err
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
