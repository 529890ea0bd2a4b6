package mutants

import (
	"errors"
	"fmt"
	"go/ast"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The environment says which mutant a test binary is: the variable has its id.
const (
	variable = "KATES_MUTANT"
	active   = "mutantActive"
	extra    = "zz_mutants.go"
)

// id is the beginning of the name of the function that a mutant adds.
func (m mutant) id() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.name))
	return fmt.Sprintf("mutant%08x", h.Sum32())
}

// weave returns the files of the root module that have mutants, with all of them. Each mutant is a
// copy of its function, broken, and the function calls the copy if that mutant is active. So all
// mutants are compiled and linked once. What cannot be woven is an error that names the mutant.
func weave(s sources, mutants []mutant, read func(file string) ([]byte, error)) (map[string]string, error) {
	var errs []error
	of := map[string]map[int][]mutant{} // the mutants of each function, by file
	for _, m := range mutants {
		i, err := s.function(m.in)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		if file := s.functions[i].file; of[file] == nil {
			of[file] = map[int][]mutant{}
		}
		of[s.functions[i].file][i] = append(of[s.functions[i].file][i], m)
	}
	files := map[string]string{}
	for file, functions := range of {
		source, err := read(file)
		if err != nil {
			return nil, err
		}
		woven, copies := string(source), ""
		for i, f := range slices.Backward(s.functions) { // from the end of the file: offsets stay
			if len(functions[i]) == 0 {
				continue
			}
			declaration, broken, err := f.weave(woven[f.from:f.to], functions[i])
			if err != nil {
				errs = append(errs, err)
				continue
			}
			woven, copies = woven[:f.from]+declaration+woven[f.to:], copies+broken
		}
		files[file] = woven + copies
		files[filepath.Join(filepath.Dir(file), extra)] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(%q)\n",
			s.packages[file], active, variable)
	}
	return files, errors.Join(errs...)
}

// weave returns the function that calls its mutants, and the mutants.
func (f function) weave(text string, mutants []mutant) (declaration, copies string, err error) {
	text, d, err := withNames(text)
	if err != nil {
		return "", "", fmt.Errorf("%s: %s: %w", mutants[0].name, f.name, err)
	}
	var errs []error
	calls := ""
	for _, m := range mutants {
		broken, err := replaced(text, m.old, m.new)
		if err == nil {
			_, err = declared(broken)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", m.name, f.name, err))
			continue
		}
		calls += fmt.Sprintf("case %q: %s; ", m.id(), d.call(m.id()))
		name := d.at(d.Name.Pos())
		copies += "\n" + broken[:name] + m.id() + broken[name:] + "\n"
	}
	body := d.at(d.Body.Lbrace) + 1
	return text[:body] + " switch " + active + " { " + calls + "};" + text[body:], copies, errors.Join(errs...)
}

// withNames names the receiver and the parameters that have no name, so that they can be passed on.
func withNames(text string) (string, declaration, error) {
	d, err := declared(text)
	if err != nil {
		return "", d, err
	}
	if recovers(d.Body) {
		return "", d, errors.New("it recovers, which a function that it calls cannot do for it")
	}
	var b strings.Builder
	end, n := 0, 0
	name := func(from, to int, after string) {
		n++
		fmt.Fprintf(&b, "%smutant%d%s", text[end:from], n, after)
		end = to
	}
	for _, f := range append(fieldsOf(d.Recv), d.Type.Params.List...) {
		if len(f.Names) == 0 {
			name(d.at(f.Pos()), d.at(f.Pos()), " ")
		}
		for _, ident := range f.Names {
			if ident.Name == "_" {
				name(d.at(ident.Pos()), d.at(ident.End()), "")
			}
		}
	}
	text = b.String() + text[end:]
	d, err = declared(text)
	return text, d, err
}

func fieldsOf(list *ast.FieldList) []*ast.Field {
	if list == nil {
		return nil
	}
	return slices.Clone(list.List)
}

// call is the statement in place of the body that calls the copy of that name.
func (d declaration) call(id string) string {
	names := func(list *ast.FieldList) (all []string) {
		for _, f := range fieldsOf(list) {
			for _, ident := range f.Names {
				all = append(all, ident.Name)
			}
		}
		return all
	}
	call := id + d.Name.Name
	if d.Recv != nil {
		call = names(d.Recv)[0] + "." + call
	}
	if types := names(d.Type.TypeParams); len(types) > 0 {
		call += "[" + strings.Join(types, ", ") + "]"
	}
	call += "(" + strings.Join(names(d.Type.Params), ", ")
	if n := d.Type.Params.NumFields(); n > 0 {
		if _, ok := d.Type.Params.List[len(d.Type.Params.List)-1].Type.(*ast.Ellipsis); ok {
			call += "..."
		}
	}
	if d.Type.Results.NumFields() > 0 {
		return "return " + call + ")"
	}
	return call + "); return"
}

// recovers is whether a function stops a panic itself, and not in a closure.
func recovers(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, ok := call.Fun.(*ast.Ident)
			found = found || ok && name.Name == "recover"
		}
		_, closure := n.(*ast.FuncLit)
		return !closure
	})
	return found
}

func TestAFunctionCallsItsMutants(t *testing.T) {
	m := mutant{name: "m", old: "a()", new: "b()"}
	for what, c := range map[string]struct{ code, called, copied string }{
		"a function": {
			"func f() { a() }",
			`func f() { switch mutantActive { case "ID": IDf(); return; }; a() }`, "func IDf() { b() }",
		},
		"a method with results": {
			"func (v *V) f(x, y int) (n int, err error) { loop: for { a(); break loop }; return }",
			`func (v *V) f(x, y int) (n int, err error) { switch mutantActive { case "ID": return v.IDf(x, y); }; loop: for { a(); break loop }; return }`,
			"func (v *V) IDf(x, y int) (n int, err error) { loop: for { b(); break loop }; return }",
		},
		"nameless parameters": {
			"func (V) f(int, ...string) { a() }",
			`func (mutant1 V) f(mutant2 int, mutant3 ...string) { switch mutantActive { case "ID": mutant1.IDf(mutant2, mutant3...); return; }; a() }`,
			"func (mutant1 V) IDf(mutant2 int, mutant3 ...string) { b() }",
		},
		"type parameters": {
			"func f[K, V any](_ K, v V) bool { return a() }",
			`func f[K, V any](mutant1 K, v V) bool { switch mutantActive { case "ID": return IDf[K, V](mutant1, v); }; return a() }`,
			"func IDf[K, V any](mutant1 K, v V) bool { return b() }",
		},
		"a method of a generic type": {
			"func (v *V[_]) f() { go func() { recover(); a() }() }",
			`func (v *V[_]) f() { switch mutantActive { case "ID": v.IDf(); return; }; go func() { recover(); a() }() }`,
			"func (v *V[_]) IDf() { go func() { recover(); b() }() }",
		},
	} {
		called, copied, err := function{}.weave(c.code, []mutant{m})
		require.NoError(t, err, what)
		assert.Equal(t, strings.ReplaceAll(c.called, "ID", m.id()), called, what)
		assert.Equal(t, strings.ReplaceAll(c.copied, "ID", m.id()), strings.TrimSpace(copied), what)
	}
	_, _, err := function{name: "f"}.weave("func f() { recover(); a() }", []mutant{m})
	assert.ErrorContains(t, err, "m: f: it recovers")
}

func TestWhatCannotBeWovenIsNamed(t *testing.T) {
	const text = "package a\n\nfunc f() { a() }\n\nfunc g() { a() }\n"
	s := newSources()
	require.NoError(t, s.add("a/a.go", []byte(text)))
	require.NoError(t, s.add("b/b.go", []byte("package b\n\nfunc g() { a() }\n")))
	read := func(string) ([]byte, error) { return []byte(text), nil }
	_, err := weave(s, []mutant{
		{name: "renamed", in: "h", old: "a()"}, {name: "two", in: "g", old: "a()"},
		{name: "stale", in: "f", old: "b()"}, {name: "same", in: "f", old: "a()", new: "a()"},
		{name: "no code", in: "f", old: "a()", new: "if {"}, {name: "good", in: "f", old: "a()"},
	}, read)
	assert.EqualError(t, err, "renamed: no function is called h\ntwo: g may be a.g or b.g\n"+
		"stale: a.f: \"b()\" occurs 0 times, not once\nsame: a.f: \"a()\" is what is there\n"+
		"no code: a.f: 2:15: missing condition in if statement")

	files, err := weave(s, []mutant{{name: "m", in: "f", old: "a()"}, {name: "n", in: "a.g", old: "a()"}}, read)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		"a/" + extra: "package a\n\nimport \"os\"\n\nvar mutantActive = os.Getenv(\"KATES_MUTANT\")\n",
		"a/a.go": "package a\n\nfunc f() { switch mutantActive { case \"mutante80c2f78\": mutante80c2f78f(); return; }; a() }\n\n" +
			"func g() { switch mutantActive { case \"mutanteb0c3431\": mutanteb0c3431g(); return; }; a() }\n" +
			"\nfunc mutanteb0c3431g() {  }\n\nfunc mutante80c2f78f() {  }\n",
	}, files)
}
