// Package readme checks that the Go code in README.md and docs compiles, so that it can be copied.
// Blocks are compiled and vetted in a module that uses this one, and never run.
package readme

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// Block is a fenced block of Go code.
type Block struct {
	// Line is the line of its first line of code in the document, from 1.
	Line int
	// Source is the code, with the fence's indentation removed.
	Source string
}

// Blocks returns the fenced blocks of markdown whose info string starts with "go" (```go). It
// fails for a fence that is not closed, and for a block that is not a whole Go file. The error
// names the lines of all of these.
func Blocks(markdown string) ([]Block, error) {
	var blocks []Block
	var errs []error
	lines := strings.SplitAfter(markdown, "\n")
	for i := 0; i < len(lines); i++ {
		open, ok := openingFence(lines[i])
		if !ok {
			continue
		}
		start := i + 1
		var source strings.Builder
		for i++; i < len(lines) && !open.closedBy(lines[i]); i++ {
			source.WriteString(open.unindent(lines[i]))
		}
		if i == len(lines) {
			errs = append(errs, fmt.Errorf("line %d: the fence is not closed", start))
			break
		}
		if open.language != "go" {
			continue
		}
		block := Block{Line: start + 1, Source: source.String()}
		if err := block.check(); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", start, err))
		}
		blocks = append(blocks, block)
	}
	return blocks, errors.Join(errs...)
}

// check reports whether b starts as a Go file.
func (b Block) check() error {
	_, err := parser.ParseFile(token.NewFileSet(), "", b.Source, parser.PackageClauseOnly)
	if err != nil {
		return fmt.Errorf("a Go block must be a whole file, with a package clause: %w", err)
	}
	return nil
}

// fence is the line that opens a block; see "Fenced code blocks" in the
// CommonMark specification.
type fence struct {
	indent   int
	marker   byte // ` or ~
	length   int  // at least 3
	language string
}

func openingFence(line string) (fence, bool) {
	text := strings.TrimRight(line, " \t\r\n")
	rest := strings.TrimLeft(text, " \t")
	f := fence{indent: len(text) - len(rest)}
	if rest == "" || (rest[0] != '`' && rest[0] != '~') {
		return fence{}, false
	}
	f.marker = rest[0]
	info := strings.TrimLeft(rest, string(f.marker))
	if f.length = len(rest) - len(info); f.length < 3 {
		return fence{}, false
	}
	if f.marker == '`' && strings.Contains(info, "`") { // a code span
		return fence{}, false
	}
	if words := strings.Fields(info); len(words) > 0 {
		f.language = strings.ToLower(words[0])
	}
	return f, true
}

func (f fence) closedBy(line string) bool {
	text := strings.TrimSpace(line)
	return len(text) >= f.length && strings.Trim(text, string(f.marker)) == ""
}

// unindent removes at most the fence's own indentation.
func (f fence) unindent(line string) string {
	n := 0
	for n < f.indent && n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return line[n:]
}
