package project

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Path is the way to a field: the names of members, as JSON has them. It leads through a list into
// each of its elements, and through a map by a key.
type Path []string

var errEmpty = errors.New("a path without a name, or with an empty one")

// ParsePath reads a path: names with dots between them. A name with other characters than letters,
// digits, -, _, / and $ is in brackets and quotes:
//
//	metadata.labels["app.kubernetes.io/name"]
//
// A backslash makes a dot part of a name, too.
func ParsePath(text string) (Path, error) {
	all, err := parsePaths(text)
	if err == nil && len(all) != 1 {
		err = errors.New("there is a comma in it")
	}
	if err != nil {
		return nil, fmt.Errorf("the path %q: %w", text, err)
	}
	return all[0], nil
}

// ParseKeep reads paths with commas between them.
func ParseKeep(text string) (*Keep, error) {
	all, err := parsePaths(text)
	if err != nil {
		return nil, fmt.Errorf("the paths %q: %w", text, err)
	}
	return NewKeep(all...)
}

// parsePaths reads paths with commas between them.
func parsePaths(text string) (all []Path, err error) {
	var path Path
	for {
		var name string
		if name, text, err = nextName(text); err != nil {
			return nil, err
		}
		path = append(path, name)
		for strings.HasPrefix(text, "[") {
			if name, text, err = quotedName(text[1:]); err != nil {
				return nil, err
			}
			path = append(path, name)
		}
		switch {
		case text == "":
			return append(all, path), nil
		case text[0] == '.':
			text = text[1:]
		case text[0] == ',':
			all, path, text = append(all, path), nil, strings.TrimLeft(text[1:], " ")
		default:
			return nil, fmt.Errorf("%q where a dot was to be", text[0])
		}
	}
}

// nextName reads a name up to what cannot be in one.
func nextName(text string) (name, rest string, err error) {
	var read []byte
	at := 0
	for ; at < len(text) && !strings.ContainsRune(".,[", rune(text[at])); at++ {
		if text[at] == '\\' && at+1 < len(text) {
			at++
		}
		read = append(read, text[at])
	}
	if len(read) == 0 {
		return "", "", errEmpty
	}
	return string(read), text[at:], nil
}

// quotedName reads a name in quotes and the bracket behind it.
func quotedName(text string) (name, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(text)
	if err == nil {
		name, err = strconv.Unquote(quoted)
	}
	if err != nil || !strings.HasPrefix(text[len(quoted):], "]") {
		return "", "", errors.New(`brackets are around a name in quotes: metadata.labels["app.kubernetes.io/name"]`)
	}
	if name == "" {
		return "", "", errEmpty
	}
	return name, text[len(quoted)+1:], nil
}

// String returns the path as [ParsePath] reads it.
func (p Path) String() string {
	var text strings.Builder
	for i, name := range p {
		switch {
		case strings.IndexFunc(name, special) >= 0 && i > 0:
			text.WriteString("[" + strconv.Quote(name) + "]")
			continue
		case strings.IndexFunc(name, special) >= 0: // at the beginning there are no brackets
			name = escaped.Replace(name)
		}
		if i > 0 {
			text.WriteByte('.')
		}
		text.WriteString(name)
	}
	return text.String()
}

var escaped = strings.NewReplacer(`\`, `\\`, `.`, `\.`, `,`, `\,`, `[`, `\[`)

// special reports whether a character makes quotes necessary.
func special(c rune) bool {
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	return !letter && !strings.ContainsRune("-_/$", c)
}
