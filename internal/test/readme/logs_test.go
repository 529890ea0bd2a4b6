package readme

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const logsFile = "../../../docs/logs.md"

// notLibrary are folders whose code is not the library's, or logs nothing of its own.
var notLibrary = []string{
	"bench", "e2e", "examples", "tools", "internal/base/lockorder", "internal/test/suite",
	"kates/katestest/internal/trial", "kates/katestest/internal/testserver",
}

// logLine is a call of a logger, or a row of the table.
type logLine struct {
	where  string
	parts  []string // of the message, in order; between them is what depends on the case
	levels []string
	keys   []string
}

// says reports whether a row is about a line: the parts of one are in the other, in order.
func (row logLine) says(line logLine) bool {
	whole := strings.Join(row.parts, "…")
	for _, part := range line.parts {
		i := strings.Index(whole, strings.TrimSpace(part))
		if i < 0 {
			return false
		}
		whole = whole[i+len(strings.TrimSpace(part)):]
	}
	return len(line.parts) > 0 && (len(line.parts) > 1 || len(row.parts) > 1 || strings.Join(row.parts, "") == line.parts[0])
}

func tableOfLogs(t *testing.T) (rows []logLine) {
	text, err := os.ReadFile(logsFile)
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "| message | level |")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[0], "-") || strings.TrimSpace(cells[0]) == "keys" {
			continue
		}
		row := logLine{where: strings.TrimSpace(cells[0]), levels: strings.Split(strings.TrimSpace(cells[1]), ", ")}
		for part := range strings.SplitSeq(row.where, "…") {
			if part = strings.TrimSpace(part); part != "" {
				row.parts = append(row.parts, part)
			}
		}
		for key := range strings.SplitSeq(cells[2], ",") {
			row.keys = append(row.keys, strings.Trim(key, "` "))
		}
		rows = append(rows, row)
	}
	return rows
}

// sourceLogs are the calls of loggers in the library's sources, and all string literals there.
func sourceLogs(t *testing.T) (lines []logLine, literals []string) {
	files := token.NewFileSet()
	require.NoError(t, filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		below, _ := filepath.Rel("../../..", path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(notLibrary, below) || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && below != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value)
					literals = append(literals, text)
				}
				if call, ok := n.(*ast.CallExpr); ok {
					lines = append(lines, loggedBy(call, decl, files.Position(call.Pos()).String())...)
				}
				return true
			})
		}
		return nil
	}))
	return lines, literals
}

var aLogger = regexp.MustCompile(`(?i)log`)

// loggedBy reads a call of a logger: one line, or several whose messages are set before.
func loggedBy(call *ast.CallExpr, in ast.Decl, where string) (lines []logLine) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Info" && sel.Sel.Name != "Error" || !aLogger.MatchString(textOf(sel.X)) {
		return nil
	}
	level, args := sel.Sel.Name, call.Args
	if level == "Error" {
		args = args[1:]
	}
	verbose := regexp.MustCompile(`V\((\w+)\)`).FindStringSubmatch(textOf(sel.X))
	if verbose != nil {
		level = "V(" + verbose[1] + ")"
	}
	var keys []string
	for i, arg := range args[1:] {
		if lit, ok := arg.(*ast.BasicLit); ok && i%2 == 0 {
			key, _ := strconv.Unquote(lit.Value)
			keys = append(keys, key)
		}
	}
	for _, parts := range messages(args[0], in) {
		lines = append(lines, logLine{where, parts, []string{level}, keys})
	}
	return lines
}

// messages are the parts of what an expression may be.
func messages(e ast.Expr, in ast.Decl) (all [][]string) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return [][]string{{text}}
	case *ast.BinaryExpr:
		lefts, rights := messages(e.X, in), messages(e.Y, in)
		if len(lefts) == 0 {
			return rights
		}
		if len(rights) == 0 {
			return lefts
		}
		for _, left := range lefts {
			for _, right := range rights {
				all = append(all, slices.Concat(left, right))
			}
		}
	case *ast.Ident:
		set := func(names []ast.Expr, values []ast.Expr) {
			for i, name := range names {
				if id, ok := name.(*ast.Ident); ok && id.Name == e.Name && len(values) == len(names) {
					all = append(all, messages(values[i], in)...)
				}
			}
		}
		ast.Inspect(in, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				set(n.Lhs, n.Rhs)
			case *ast.ValueSpec:
				var names []ast.Expr
				for _, id := range n.Names {
					names = append(names, id)
				}
				set(names, n.Values)
			}
			return true
		})
	}
	return all
}

func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return textOf(e.X) + "." + e.Sel.Name
	case *ast.BasicLit:
		return e.Value
	case *ast.CallExpr:
		var args []string
		for _, a := range e.Args {
			args = append(args, textOf(a))
		}
		return textOf(e.Fun) + "(" + strings.Join(args, ",") + ")"
	}
	return ""
}

func TestTheTableOfLogLinesIsThatOfTheCode(t *testing.T) {
	rows := tableOfLogs(t)
	lines, literals := sourceLogs(t)
	require.Greater(t, len(rows), 40)
	require.Greater(t, len(lines), 40)
	camel := regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
	for _, line := range lines {
		if strings.Contains(line.parts[0], "panicked") && strings.Contains(strings.Join(line.parts, ""), "for good") {
			continue // a panic is never permanent
		}
		found := slices.ContainsFunc(rows, func(row logLine) bool {
			for _, key := range line.keys {
				if !slices.Contains(row.keys, key) {
					return false
				}
			}
			level := line.levels[0]
			return row.says(line) && (slices.Contains(row.levels, level) || level == "Info" && slices.Contains(row.levels, "V(2)"))
		})
		assert.True(t, found, "%s: no row of docs/logs.md has this: %s %q, with the keys %q", line.where, line.levels[0], line.parts, line.keys)
		for _, key := range line.keys {
			assert.Regexp(t, camel, key, line.where)
			assert.NotEqual(t, "error", key, "%s: klog's key is err", line.where)
		}
	}
	for _, row := range rows {
		for _, part := range row.parts {
			assert.True(t, slices.ContainsFunc(literals, func(text string) bool {
				return strings.Contains(text, part) || strings.Contains(part, strings.TrimSpace(text)) && len(text) > 10
			}),
				"docs/logs.md: nothing logs %q", row.where)
		}
	}
}
