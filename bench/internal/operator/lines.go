package operator

import (
	"go/scanner"
	"go/token"
	"strings"
)

// Lines returns how many lines of code the variant has: lines of its sources that contain more
// than blanks and comments.
func (v Variant) Lines() (n int) {
	for _, source := range v.Sources {
		n += LinesOf(source)
	}
	return n
}

// LinesOf returns how many lines of a Go source contain more than blanks and comments.
func LinesOf(source string) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), nil, 0) // the scanner skips comments
	lines := make(map[int]bool)
	for {
		at, what, text := s.Scan()
		switch {
		case what == token.EOF:
			return len(lines)
		case what == token.SEMICOLON && text == "\n":
			continue // a semicolon that the scanner inserted
		}
		first := file.Line(at)
		for line := range 1 + strings.Count(text, "\n") { // a raw string may have several lines
			lines[first+line] = true
		}
	}
}
