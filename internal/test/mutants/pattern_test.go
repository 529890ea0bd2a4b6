package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replaced returns a function declaration in which the one place that looks like old reads new.
// Both are an expression, or both are statements, or clauses of a switch or a select. Comments and
// the layout of the code make no difference. A block `{ ... }` in old is any block; the same block
// in new is what the block was.
func replaced(text, old, new string) (string, error) {
	d, err := declared(text)
	if err != nil {
		return "", err
	}
	p, err := parse(old, new)
	if err != nil {
		return "", err
	}
	found := p.find(d.Body)
	if len(found) != 1 {
		return "", fmt.Errorf("%q occurs %d times, not once", old, len(found))
	}
	f := found[0]
	for _, block := range f.blocks {
		new = strings.Replace(new, "{ ... }", text[d.at(block.Pos()):d.at(block.End())], 1)
	}
	if p.wrap {
		new = "(" + new + ")"
	}
	result := text[:d.at(f.first.Pos())] + new + text[d.at(f.last.End()):]
	if result == text {
		return "", fmt.Errorf("%q is what is there", new)
	}
	return result, nil
}

// declaration is that of a function with a body.
type declaration struct {
	*ast.FuncDecl
	set *token.FileSet
}

const clause = "package p\n"

func declared(text string) (declaration, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", clause+text, parser.SkipObjectResolution)
	if err != nil {
		return declaration{}, err
	}
	decl, ok := file.Decls[0].(*ast.FuncDecl)
	if !ok || decl.Body == nil {
		return declaration{}, fmt.Errorf("a function has no body")
	}
	return declaration{decl, set}, nil
}

// at is where a position is in the text.
func (d declaration) at(p token.Pos) int { return d.set.Position(p).Offset - len(clause) }

// pattern is what is searched for: one expression, or statements in a row. Clauses can be those of
// a switch or those of a select.
type pattern struct {
	expression ast.Expr
	statements [][]ast.Stmt
	wrap       bool // the new expression needs parentheses
}

// found is a place that looks like a pattern, and what its blocks `{ ... }` stand for.
type found struct {
	first, last ast.Node
	blocks      []*ast.BlockStmt
}

const anyBlock = "anyBlock"

func parse(old, new string) (pattern, error) {
	text := strings.ReplaceAll(old, "{ ... }", "{"+anyBlock+"}")
	expression, err := parser.ParseExpr(text)
	replacement, none := parser.ParseExpr(strings.ReplaceAll(new, "{ ... }", "{}"))
	if err == nil && none == nil {
		_, wrap := replacement.(*ast.BinaryExpr)
		return pattern{expression: expression, wrap: wrap}, nil
	}
	var p pattern
	for _, around := range []string{"%s", "switch {\n%s\n}", "select {\n%s\n}"} {
		source := "package p\nfunc _() {\n" + fmt.Sprintf(around, text) + "\n}"
		var file *ast.File
		if file, err = parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution); err != nil {
			continue
		}
		list := file.Decls[0].(*ast.FuncDecl).Body.List
		if around != "%s" {
			list = bodyOf(list[0])
		}
		if len(list) > 0 {
			p.statements = append(p.statements, list)
		}
	}
	if len(p.statements) == 0 {
		return p, fmt.Errorf("%q is neither an expression nor statements: %w", old, err)
	}
	return p, nil
}

// bodyOf returns the statements of a block, or of a node that has them in a list of its own.
func bodyOf(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.SwitchStmt:
		return n.Body.List
	case *ast.SelectStmt:
		return n.Body.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

func (p pattern) find(body *ast.BlockStmt) (all []found) {
	compare := func(wanted, is any, first, last ast.Node) {
		f := found{first: first, last: last}
		if f.alike(reflect.ValueOf(wanted), reflect.ValueOf(is)) {
			all = append(all, f)
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && p.expression != nil {
			compare(p.expression, e, e, e)
		}
		for _, wanted := range p.statements {
			if s, ok := n.(ast.Stmt); ok && len(wanted) == 1 && s != ast.Stmt(body) {
				compare(wanted[0], s, s, s)
			}
			list := bodyOf(n)
			if _, ok := n.(*ast.SwitchStmt); ok || len(wanted) == 1 {
				continue // the body is a block, which comes next
			}
			for i := 0; i+len(wanted) <= len(list); i++ {
				part := list[i : i+len(wanted)]
				compare(wanted, part, part[0], part[len(part)-1])
			}
		}
		return true
	})
	return all
}

// alike is whether the code has the structure of the pattern.
func (f *found) alike(wanted, is reflect.Value) bool {
	if wanted.IsValid() != is.IsValid() || wanted.IsValid() && wanted.Type() != is.Type() {
		return false
	}
	switch wanted.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Interface:
		return f.alike(wanted.Elem(), is.Elem())
	case reflect.Pointer:
		if block, ok := wanted.Interface().(*ast.BlockStmt); ok && isAny(block) && !is.IsNil() {
			f.blocks = append(f.blocks, is.Interface().(*ast.BlockStmt))
			return true
		}
		return f.alike(wanted.Elem(), is.Elem())
	case reflect.Slice:
		if wanted.Len() != is.Len() {
			return false
		}
		for i := range wanted.Len() {
			if !f.alike(wanted.Index(i), is.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		return f.fieldsAlike(wanted, is)
	}
	return wanted.Equal(is)
}

// fieldsAlike compares no positions, but where there is no position there is no token either.
func (f *found) fieldsAlike(wanted, is reflect.Value) bool {
	for i := range wanted.NumField() {
		switch a := wanted.Field(i).Interface().(type) {
		case *ast.CommentGroup, *ast.Object: //lint:ignore SA1019 a field of ast.Ident has it
		case token.Pos:
			name := wanted.Type().Field(i).Name
			if (name == "Ellipsis" || name == "Assign") && a.IsValid() != is.Field(i).Interface().(token.Pos).IsValid() {
				return false
			}
		default:
			if !f.alike(wanted.Field(i), is.Field(i)) {
				return false
			}
		}
	}
	return true
}

func isAny(block *ast.BlockStmt) bool {
	if block == nil || len(block.List) != 1 {
		return false
	}
	s, ok := block.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	name, ok := s.X.(*ast.Ident)
	return ok && name.Name == anyBlock
}

func TestAPatternIsFoundWhateverTheLayout(t *testing.T) {
	for what, c := range map[string]struct{ code, old, new, want string }{
		"an expression":        {"if a  ==\n\tb { c() }", `a == b`, `true`, "if true { c() }"},
		"a binary expression":  {"x := !f(1)", `f(1)`, `a || b`, "x := !(a || b)"},
		"a statement":          {"a(); b(1, // why\n2); c()", `b(1, 2)`, ``, "a(); ; c()"},
		"statements":           {"a()\n\n// why\nb()\nc()", "a()\nb()", `d()`, "d()\nc()"},
		"a case":               {"switch x { case 1: a()\ncase 2: b() }", `case 1: a()`, ``, "switch x { \ncase 2: b() }"},
		"a case of a select":   {"select { case <-x: a(); case <-y: b() }", `case <-y: b()`, `case <-y:`, "select { case <-x: a(); case <-y: }"},
		"in a case":            {"switch { case x: a(); b() }", "a()\nb()", `c()`, "switch { case x: c() }"},
		"a closure":            {"go func() { for { a() } }()", `a()`, `b()`, "go func() { for { b() } }()"},
		"an initial statement": {"if err := a(); err != nil { b() }", `err := a()`, `var err error`, "if var err error; err != nil { b() }"},
		"any block":            {"for a { b(); c() }", `for a { ... }`, `{ ... }`, "{ b(); c() }"},
		"a label":              {"loop: for { break loop }", `break loop`, `continue loop`, "loop: for { continue loop }"},
		"variadic":             {"f(a...); f(a)", `f(a...)`, ``, "; f(a)"},
	} {
		got, err := replaced("func _() { "+c.code+" }", c.old, c.new)
		if assert.NoError(t, err, what) {
			assert.Equal(t, "func _() { "+c.want+" }", got, what)
		}
	}
}

func TestAPatternIsFoundOnceOrItIsAnError(t *testing.T) {
	for code, want := range map[string]string{
		"func _() { b() }":          `"a()" occurs 0 times, not once`,
		"func _() { a(1); a(b) }":   `"a()" occurs 0 times, not once`,
		"func _() { a(); { a() } }": `"a()" occurs 2 times, not once`,
		"func _()":                  "a function has no body",
	} {
		_, err := replaced(code, "a()", "b()")
		require.EqualError(t, err, want)
	}
	_, err := replaced("func _() {}", "if {", "")
	require.ErrorContains(t, err, `"if {" is neither an expression nor statements`)
}
